from __future__ import annotations

import gc

import pytest

from specmap.codemap import packed
from specmap.report import as_json
from tests.report.sample import sample_map


def test_nothing_is_lost() -> None:
    found = packed.loads(packed.dumps(sample_map()))
    assert found == sample_map()
    # Equality leaves out where an atom stands.
    assert as_json.dumps(found) == as_json.dumps(sample_map())


def test_a_value_is_written_once() -> None:
    text = packed.dumps(sample_map())
    assert text.count('"sglang/srt/speculative/eagle_worker.py"') == 1
    assert len(text) < len(as_json.dumps(sample_map())) / 2


def test_equal_maps_give_equal_texts() -> None:
    text = packed.dumps(sample_map())
    assert packed.dumps(packed.loads(text)) == text


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[[],[]]", '[["Gone"],[[0]]]', '[["tuple"],[1]]']
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        packed.loads(text)
    assert gc.isenabled()


def test_a_cut_text_is_refused() -> None:
    text = packed.dumps(sample_map())
    with pytest.raises(ValueError, match=r"."):
        packed.loads(text[: len(text) // 2])
