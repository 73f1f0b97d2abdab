from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.source import canonical
from specmap.errors import RulesError, SpecmapError
from specmap.scan.vocabulary import rules_folder
from specmap.verdicts.truths import read_batch
from specmap.verdicts.words import load_words

WORDS = load_words()


def test_every_assumption_has_a_reason() -> None:
    assert {assumed.key for assumed in WORDS.assumed.values()} == set(WORDS.reasons)


def test_tests_are_canonical() -> None:
    for test in (*WORDS.sizes, *(t for _, t in WORDS.assumed), *(t for _, t in WORDS.settled)):
        assert test == canonical(test)


@pytest.mark.parametrize("text", ["", "[verdict]\nsizes = []", "[verdict"])
def test_a_bad_table(tmp_path: Path, text: str) -> None:
    path = tmp_path / "vocabulary.toml"
    path.write_text(text)
    with pytest.raises(RulesError, match=r"vocabulary\.toml"):
        load_words(path)


def test_a_test_may_mean_something_in_one_phase_only(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.toml"
    text = (rules_folder() / "vocabulary.toml").read_text("utf-8")
    path.write_text(text.replace("settled = [", 'settled = [\n  "draft, verify: a.b := c.d",'))
    words = load_words(path)
    assert words.settling("verify", "a.b") == "c.d"
    assert words.settling("draft_extend", "a.b") is None


def test_a_batch() -> None:
    batch = read_batch("bs=4, veto=yes,hidden=unknown", WORDS)
    assert batch.size == 4
    assert batch.stated == {"veto": True, "hidden": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bs=0", "expected a number of requests"),
        ("bs=x", "expected a number of requests"),
        ("size=4", "there are bs, embeds"),
        ("veto=maybe", "expected veto=yes, veto=no or veto=unknown"),
    ],
)
def test_a_batch_that_is_none(text: str, message: str) -> None:
    with pytest.raises(SpecmapError, match=message):
        read_batch(text, WORDS)


def test_a_test_may_mean_something_in_one_file_only(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.toml"
    text = (rules_folder() / "vocabulary.toml").read_text("utf-8")
    lines = '"draft, runner.py: a.b := c.d", "other.py: a.b := e.f", "draft: a.b := g.h",'
    path.write_text(text.replace("settled = [", f"settled = [\n  {lines}"))
    words = load_words(path)
    assert words.settling("draft", "a.b", "sglang/srt/runner.py") == "c.d"
    assert words.settling("verify", "a.b", "sglang/srt/runner.py") is None
    assert words.settling("verify", "a.b", "sglang/srt/other.py") == "e.f"
    assert words.settling("draft", "a.b", "sglang/srt/elsewhere.py") == "g.h"


def test_every_call_of_a_function_may_mean_one_thing(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.toml"
    text = (rules_folder() / "vocabulary.toml").read_text("utf-8")
    path.write_text(text.replace("settled = [", 'settled = [\n  "a.b(...) := c.d", "a.b(x) := e",'))
    words = load_words(path)
    assert words.settling("verify", "a.b(1, c=f(2))") == "c.d"
    assert words.settling("verify", "a.b(x)") == "e"
    assert words.settling("verify", "a.bc(1)") is None
