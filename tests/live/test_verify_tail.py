"""A rewritten 0.5.9 serves on the CPU: tokens and accepted drafts are those of the unmodified one.

The tree in which nothing but the new way is left shows that greedy requests take it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

import pytest

from specmap.fixed import Request, fix_tree
from tests.live.environment import packages_of
from tests.live.expected import check_tokens
from tests.live.jobs import GREEDY, Job
from tests.live.serving import Runs

pytestmark = pytest.mark.live

RELEASE = "0.5.9"
OLD_WAY = "            accept_index_cpu = accept_index.tolist()\n"
_ONE_AT_A_TIME = Lock()
_KEPT: list[tempfile.TemporaryDirectory[str]] = []  # until the tests end


@cache
def files() -> Mapping[str, str]:
    """Return what the rewrite makes of the release's files."""
    package = packages_of(RELEASE) / "sglang"
    return fix_tree(Request(str(package), ("verify-tail",), unsafe=True)).report.after


@cache
def rewritten(only: bool) -> Path:
    """Return the folder of a tree with one wait; ``only``: the other way of the guard raises."""
    package = packages_of(RELEASE) / "sglang"
    _KEPT.append(tempfile.TemporaryDirectory(prefix="specmap-tail-"))
    folder = Path(_KEPT[-1].name)
    shutil.copytree(package, folder / "sglang", ignore=shutil.ignore_patterns("__pycache__"))
    assert files()
    for file, text in files().items():
        assert text.count(OLD_WAY) == 1
        raised = text.replace(OLD_WAY, "            raise AssertionError\n") if only else text
        (folder / file).write_text(raised, "utf-8")
    return folder


@dataclass(frozen=True, slots=True)
class Tail(Job):
    """A job on a rewritten tree."""

    only: bool = True
    page_size: int = 1

    def __str__(self) -> str:
        return f"{Job.__str__(self)}_tail_page-{self.page_size}"

    def arguments(self, checkpoints: Path) -> dict[str, object]:
        """Return the launch arguments, with the page size."""
        return {**Job.arguments(self, checkpoints), "page_size": self.page_size}

    def environment(self) -> dict[str, str]:
        """Return the variables that the process needs: its SGLang is the rewritten one."""
        with _ONE_AT_A_TIME:
            return {**Job.environment(self), "PYTHONPATH": str(rewritten(self.only))}


SHRINKS = (5, 14, 8, 18)
UNMODIFIED = {
    Tail(RELEASE, new_tokens=SHRINKS): Job(RELEASE, new_tokens=SHRINKS),
    Tail(RELEASE, topk=2, draft_tokens=6): Job(RELEASE, topk=2, draft_tokens=6),
}
PAGES = Tail(RELEASE, graphs=(), only=False, page_size=4)
REFUSED = Tail(RELEASE, graphs=(), page_size=4)


@pytest.mark.parametrize(("job", "stock"), UNMODIFIED.items(), ids=str)
def test_greedy_requests_get_the_same_with_one_wait(job: Tail, stock: Job, runs: Runs) -> None:
    check_tokens(runs[job], runs[GREEDY[RELEASE]])
    assert runs[job].tokens == runs[stock].tokens
    accepted = [batch.accepted for batch in runs[job].decoded]
    assert accepted == [batch.accepted for batch in runs[stock].decoded]
    assert len({count for batch in accepted for count in batch}) > 2


@pytest.mark.parametrize("job", [PAGES], ids=str)
def test_pages_of_more_tokens_keep_their_way(job: Tail, runs: Runs) -> None:
    check_tokens(runs[job], runs[GREEDY[RELEASE]])


@pytest.mark.parametrize("job", [REFUSED], ids=str)
def test_the_way_that_raises_is_the_one_of_pages(job: Tail, runs: Runs) -> None:
    assert runs.ended(job).code != 0
    assert "AssertionError" in runs.ended(job).log
