from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from specmap import pipeline
from specmap.cli import command
from specmap.cli_review import Shown
from specmap.codemap.graph import CodeMap
from specmap.errors import SpecmapError, TargetError
from tests.fix.forks import FAULTS, whole
from tests.review_tree import RUNNER, commit, git, plant


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


@pytest.mark.parametrize(
    ("head", "encoding"),
    [("# -*- coding: latin-1 -*-\n", "latin-1"), ("", "utf-8-sig"), ("\x0c\n", "utf-8")],
)
def test_a_file_keeps_its_encoding(tmp_path: Path, head: str, encoding: str) -> None:
    folder = fork(tmp_path / "fork", "constant-term")
    path = folder / RUNNER
    text = f"{head}# größer\n" + path.read_text("utf-8")
    path.write_bytes(text.encode(encoding))
    shown = run(str(folder), "--write", "--no-cache", "-q")
    assert "1 applied" in shown.text
    rewritten = path.read_bytes().decode(encoding)
    assert rewritten.startswith(f"{head}# größer\n")
    assert "is_tree_supported = False" in text
    assert "is_tree_supported = False" not in rewritten


def test_written_once_then_nothing_is_left(tmp_path: Path) -> None:
    folder = str(fork(tmp_path / "fork", "bypass"))
    assert run(folder, "--write", "--no-cache", "-q").code == 0
    shown = run(folder, "--write", "--no-cache", "-q")
    assert shown.code == 0
    assert "nothing to rewrite" in shown.text


def test_what_is_only_refused_is_nothing_to_do(tmp_path: Path) -> None:
    plant(tmp_path / "fork")
    FAULTS["constant-term"][1](tmp_path / "fork")
    shown = run(str(tmp_path / "fork"), "--no-cache", "-q")
    assert "1 refused" in shown.text
    assert shown.code == 0


def test_the_copy_of_a_read_only_tree_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who runs as root can write anywhere, so the modes of the copy are looked at."""
    folder = fork(tmp_path / "fork", "constant-term")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    scan, modes = pipeline.scan_resolved, set[int]()

    def looked_at(tree: pipeline.Resolved, **options: Any) -> CodeMap:
        if tree.checkout.root != folder.resolve():
            modes.update(p.stat().st_mode & 0o200 for p in tree.checkout.root.rglob("*"))
        return scan(tree, **options)

    monkeypatch.setattr(pipeline, "scan_resolved", looked_at)
    shown = run(str(folder), "--diff", "--no-cache", "-q")
    assert "-        is_tree_supported = False\n" in shown.text
    assert modes == {0o200}


def test_the_diff_of_a_revision_is_taken_by_git_at_its_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork(tmp_path / "python", "constant-term")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = run("git:HEAD", "--diff", "--no-cache", "-q")
    (tmp_path / "fix.diff").write_text(shown.text, "utf-8")
    git(tmp_path, "apply", "fix.diff")
    assert "is_tree_supported" not in (tmp_path / "python" / RUNNER).read_text("utf-8")


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
