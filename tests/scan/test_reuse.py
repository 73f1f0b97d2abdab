"""When a kept map is the map of a changed tree, and when it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specmap.codemap.graph import CodeMap
from specmap.pipeline import scan_tree
from specmap.scan import build
from tests.review_tree import DRAFT, LAST_LINE, SYNC, VERIFY, edit, plant, scan

OTHER = "sglang/srt/models/other.py"
NEAR = "sglang/srt/managers/other.py"


class Forks:
    """A tree with a warm cache; ``map()`` tells whether it took a scan."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree = plant(folder / "tree")
        for file in (OTHER, NEAR):
            (self.tree / file).parent.mkdir(exist_ok=True)
            (self.tree / file).write_text("class Other:\n    pass\n", "utf-8")
        self._cache = folder / "cache"
        self._scans = 0
        scanned = build.scan

        def counted(*arguments: object, **named: object) -> CodeMap:
            self._scans += 1
            return scanned(*arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(build, "scan", counted)
        self.map()

    def map(self) -> tuple[CodeMap, bool]:
        """The map with the cache, and whether a scan was needed."""
        before = self._scans
        found = scan_tree(self.tree, cache_dir=self._cache)
        return found, self._scans > before


@pytest.fixture
def forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forks:
    return Forks(tmp_path, monkeypatch)


def _comments(tree: Path) -> None:
    above = "# Why: the graph reads it.\n\n"
    edit(tree, VERIFY, (LAST_LINE, f"        {above}        # Stored.\n{LAST_LINE}"))
    edit(tree, DRAFT, ("class ", f"{above}class "))


def _unread(tree: Path) -> None:
    edit(tree, OTHER, ("pass", "def run(self, rows):\n        return rows.item()"))


def _new_file(tree: Path) -> None:
    (tree / "sglang/srt/models/third.py").write_text("WIDTH = 3\n", "utf-8")


def _gone_file(tree: Path) -> None:
    (tree / OTHER).unlink()


@pytest.mark.parametrize("change", [_comments, _unread, _new_file, _gone_file])
def test_what_does_not_matter_takes_no_scan(forks: Forks, change: Callable[[Path], None]) -> None:
    change(forks.tree)
    found, scanned = forks.map()
    assert not scanned
    assert found == scan(forks.tree)


def _code(tree: Path) -> None:
    edit(tree, VERIFY, (LAST_LINE, SYNC + LAST_LINE))


def _store_from_outside(tree: Path) -> None:
    edit(tree, NEAR, ("pass", "def drop(self, worker):\n        worker.target_worker = None"))


def _worker_file(tree: Path) -> None:
    (tree / "sglang/srt/speculative/third.py").write_text("WIDTH = 3\n", "utf-8")


@pytest.mark.parametrize("change", [_code, _store_from_outside, _worker_file])
def test_what_may_matter_is_scanned(forks: Forks, change: Callable[[Path], None]) -> None:
    change(forks.tree)
    found, scanned = forks.map()
    assert scanned
    assert found == scan(forks.tree)


def test_comments_of_calls_are_read_anew(forks: Forks) -> None:
    call = "        result = self.target_worker"
    edit(forks.tree, VERIFY, (call, f"        # Verify all drafts.\n{call}"))
    found, scanned = forks.map()
    assert not scanned
    assert "Verify all drafts." in {edge.comment for edge in found.edges}
