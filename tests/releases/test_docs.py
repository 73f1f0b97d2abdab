"""Commands of the documentation that read a real release, run as they stand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import shown as docs
from tests.releases.trees import checkout_of
from tests.shown import PAGES, ROOT, commands, everything, run_shown

pytestmark = pytest.mark.releases

FORK = ROOT / "docs/fork-lost-its-graph.md"
RELEASED = sorted({o.page for o in everything() if o.needs_release and not o.parsed_only})


def plant_fork(folder: Path) -> None:
    """Copy SGLang 0.5.9 and make the change that the page about forks shows."""
    (patch,) = [text for _, text in docs.blocks(FORK, "diff")]
    tree = checkout_of("0.5.9").root
    shutil.copytree(tree / "sglang", folder / "python/sglang")
    subprocess.run(
        ["git", "apply", "-"], input=patch, cwd=folder, text=True, check=True, capture_output=True,
        env={"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(folder.parent)},
    )  # fmt: skip


@pytest.mark.parametrize("page", RELEASED)
def test_what_a_page_runs_on_releases(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, in one folder, with the user's cache."""
    world = docs.plant_world(tmp_path / "world")
    if page in (FORK.name, "README.md"):
        plant_fork(world / "fork")
    monkeypatch.chdir(world)
    (path,) = (p for p in PAGES if p.name == page)
    for one in commands(path):
        if one.needs_release and not one.parsed_only:
            run_shown(one, monkeypatch)


@pytest.mark.parametrize("page", ["README.md", "json.md"])
def test_the_programs_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(docs.plant_world(tmp_path / "world"))
    (path,) = (p for p in PAGES if p.name == page)
    for one in commands(path):
        if one.text.endswith("-o map.json"):
            run_shown(one, monkeypatch)
    for line, block in docs.blocks(path, "python"):
        exec(compile(block, f"{page}:{line}", "exec"), {})


def test_the_questions_in_jq_have_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they ask for is in the JSON; jq itself runs where it is installed."""
    monkeypatch.chdir(docs.plant_world(tmp_path / "world"))
    page = ROOT / "docs/json.md"
    (written,) = (one for one in commands(page) if one.text.endswith("-o map.json"))
    run_shown(written, monkeypatch)
    asked = [one for one in commands(page) if one.text.startswith("jq ")]
    assert len(asked) == 2
    for one in asked if shutil.which("jq") else ():
        done = subprocess.run(one.words, capture_output=True, text=True, check=True)
        assert "eagle" in done.stdout.lower()
