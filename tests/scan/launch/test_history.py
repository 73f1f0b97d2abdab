from __future__ import annotations

from pathlib import Path

import pytest

from specmap.errors import RulesError
from specmap.scan.launch.history import load_history

TEXT = """
releases = ["0.1", "0.2", "0.3", "0.10"]
[arguments]
"0.1 - 0.1" = ["--back"]
"0.1 - 0.2" = ["--old"]
"0.2 -" = ["--new"]
"0.3 -" = ["--back"]
[renamed]
"--old" = ["field", "--new", "0.2"]
"""


@pytest.mark.parametrize(
    ("flag", "release", "says"),
    [
        ("--old", "0.10", "last in 0.2, gone in 0.3, replaced by --new in 0.2"),
        ("--new", "0.1", "added in 0.2"),
        ("--new", "0.10", "in 0.2 to 0.10"),
        ("--new", None, "in 0.2 to 0.10"),
        ("--none", "0.2", ""),
        ("--back", "0.2", "last in 0.1, gone in 0.2, added in 0.3"),
    ],
)
def test_what_is_said(tmp_path: Path, flag: str, release: str | None, says: str) -> None:
    path = tmp_path / "arguments.toml"
    path.write_text(TEXT, "utf-8")
    assert load_history(path).about(flag, release) == says


def test_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "arguments.toml"
    path.write_text("releases = []\n", "utf-8")
    with pytest.raises(RulesError, match=r"arguments\.toml: 'arguments'"):
        load_history(path)
