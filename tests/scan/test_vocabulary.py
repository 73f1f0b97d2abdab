from __future__ import annotations

from pathlib import Path

import pytest

from specmap.errors import RulesError
from specmap.scan.vocabulary import load_vocabulary


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[tree]\npackage = [\xff]\n", "can't decode byte 0xff"),
        (b"[tree\n", "line 1"),
        (b"[tree]\n", "missing or wrong key 'scheduler'"),
    ],
    ids=["not UTF-8", "not TOML", "a table is missing"],
)
def test_a_bad_file_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "words.toml"
    path.write_bytes(content)
    with pytest.raises(RulesError) as caught:
        load_vocabulary(path)
    message = str(caught.value)
    assert message.startswith("words.toml: ")
    assert says in message
    assert "\n" not in message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match=r"words\.toml: .*No such file"):
        load_vocabulary(tmp_path / "words.toml")
