from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from specmap.cli import command
from specmap.cli_review import Shown
from specmap.errors import SpecmapError, TargetError
from tests.fix.forks import FAULTS, whole
from tests.review_tree import RUNNER


def run(*arguments: str) -> Shown:
    shown = command.main(["fix", *arguments], standalone_mode=False)
    assert isinstance(shown, Shown)
    return shown


def fork(folder: Path, name: str) -> Path:
    whole(folder)
    FAULTS[name][1](folder)
    return folder


def test_a_report_changes_nothing_and_says_what_was_proven(tmp_path: Path) -> None:
    folder = fork(tmp_path / "fork", "constant-term")
    before = (folder / RUNNER).read_text("utf-8")
    shown = run(str(folder), "--no-cache", "-q")
    assert shown.code == 1
    assert "1 applied" in shown.text
    assert "proof, map: held" in shown.text
    assert (folder / RUNNER).read_text("utf-8") == before


def test_diff_json_and_patches(tmp_path: Path) -> None:
    folder = str(fork(tmp_path / "fork", "constant-term"))
    assert "-        is_tree_supported = False\n" in run(folder, "--diff", "--no-cache", "-q").text
    shown = run(folder, "--json", "--patch-dir", str(tmp_path / "p"), "--no-cache", "-q")
    content = json.loads(shown.text)
    assert [(a["rewrite"], a["outcome"], a["proven"]) for a in content["attempts"]] == [
        ("SPF101", "applied", True)
    ]
    assert content["files"] == [RUNNER]
    assert [p.name for p in (tmp_path / "p").iterdir()] == ["0001-SPF101-verify-excluded.patch"]


def test_written_once_then_nothing_is_left(tmp_path: Path) -> None:
    folder = str(fork(tmp_path / "fork", "bypass"))
    assert run(folder, "--write", "--no-cache", "-q").code == 0
    shown = run(folder, "--write", "--no-cache", "-q")
    assert shown.code == 0
    assert "nothing to rewrite" in shown.text


def test_pages() -> None:
    assert "SPF101  verify-excluded" in run("--explain", "all").text
    assert run("--explain", "verify-excluded").text.startswith("# SPF101 verify-excluded")
    with pytest.raises(SpecmapError, match="did you mean"):
        run("--explain", "verify-exclude")


def test_what_goes_wrong_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no such folder"):
        run(str(tmp_path / "gone"), "-q")
    result = CliRunner().invoke(command, ["fix", ".", "--write", "--diff"])
    assert "--write goes with neither" in result.output
