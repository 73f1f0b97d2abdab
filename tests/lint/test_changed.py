"""A test that a change adds to a graph decision: named where it stands, silent where it moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.rule import Confidence
from specmap.codemap.source import Span
from tests.lint.test_losses import (
    ASKED,
    CAN_RUN,
    IMPORTED,
    INIT,
    MODEL_RUNNER,
    fork,
    line_of,
    new,
    reviewed,
)
from tests.review_tree import RUNNER, commit, edit

__all__ = ["fork"]

BATCH = "forward_batch.batch_size"
LIMIT = f"{BATCH} <= self.max_bs"
SKIPS = 'getattr(forward_batch.spec_info, "skip_graph_runner", False)'
HELPER = f"""    def _allowed(self, forward_batch):
        if {BATCH} > 4:
            return False
        return True

"""
WITH_HELPER = (
    (ASKED, f"{ASKED}            and self._allowed(forward_batch)\n"),
    (INIT, f"{HELPER}{INIT}"),
)
RUNS = "    def can_run(self"
FITS = f"    def fits(self, forward_batch):\n        return {LIMIT}\n\n{RUNS}"
WIDE = f"        return {LIMIT} or forward_batch.is_small\n"

# Where the change stands, what it is, and what is named.
ADDED = {
    "a helper that is false for some batches": (MODEL_RUNNER, WITH_HELPER, f"if {BATCH} > 4"),
    "an attribute at an early return": (
        RUNNER,
        ((CAN_RUN, f"        if {SKIPS}:\n            return False\n{CAN_RUN}"),),
        f"if {SKIPS}",
    ),
    "an attribute among the terms": (
        RUNNER,
        ((LIMIT, f"{LIMIT} and not {SKIPS}"),),
        f"return {LIMIT} and",
    ),
    "a test beside what moved into a helper": (
        RUNNER,
        ((CAN_RUN, "        return self.fits(forward_batch)\n"),
         (RUNS, FITS.replace(LIMIT, f"{LIMIT} and forward_batch.is_small"))),
        f"return {LIMIT} and",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", ADDED)
def test_the_added_test_is_named(fork: Path, way: str) -> None:
    file, changes, at = ADDED[way]
    edit(fork / "python", file, *changes)
    report = reviewed()
    assert new(report) == [("SPM114", file, line_of(fork, file, at))]
    (finding,) = report.new
    assert finding.confidence is Confidence.MEDIUM
    assert "verify" in finding.match.phases
    assert {w.rpartition("::")[2] for w in finding.match.workers} >= {"EAGLEWorker", "NGRAMWorker"}


CAPPED = f"""{IMPORTED}

class CappedRunner(CudaGraphRunner):
    def can_run(self, forward_batch):
        return {{}}super().can_run(forward_batch)
"""
MAKES = ("= CudaGraphRunner(", "= CappedRunner(")
FROM = (
    IMPORTED.strip(),
    "from sglang.srt.model_executor.capped import CappedRunner",
)


def made_of_a_subclass(fork: Path, test: str) -> None:
    file = "sglang/srt/model_executor/capped.py"
    (fork / "python" / file).write_text(CAPPED.format(test), "utf-8")
    edit(fork / "python", MODEL_RUNNER, FROM, MAKES)


def test_the_own_limit_of_a_runner_that_derives_from_another_is_named(fork: Path) -> None:
    made_of_a_subclass(fork, f"{BATCH} <= 8 and ")
    (finding,) = reviewed().new
    assert finding.rule.id == "SPM114"
    assert finding.match.span == Span("sglang/srt/model_executor/capped.py", 6, 6)
    assert f"{BATCH} <= 8" in finding.match.message
    assert "verify" in finding.match.phases


def test_a_runner_that_derives_from_another_and_asks_only_it_is_silent(fork: Path) -> None:
    made_of_a_subclass(fork, "")
    assert new(reviewed()) == []


def test_a_helper_that_is_known_says_no_more_often(fork: Path) -> None:
    edit(fork / "python", MODEL_RUNNER, *WITH_HELPER)
    commit(fork, "a helper")
    more = "if forward_batch.is_odd:\n            return False\n        return True"
    edit(fork / "python", MODEL_RUNNER, ("return True", more))
    assert new(reviewed()) == [
        ("SPM114", MODEL_RUNNER, line_of(fork, MODEL_RUNNER, "if forward_batch.is_odd"))
    ]


SAME = {
    "renamed attribute": (RUNNER, (("max_bs", "max_batch_size"),)),
    "moved into a helper": (
        RUNNER,
        ((CAN_RUN, "        return self.fits(forward_batch)\n"), (RUNS, FITS)),
    ),
    "a local name": (
        RUNNER,
        ((CAN_RUN, f"        fits = {LIMIT}\n        return fits\n"),),
    ),
    "one more way to the graph": (RUNNER, ((CAN_RUN, WIDE),)),
}


@pytest.mark.parametrize("way", SAME)
def test_what_is_no_test_more_is_silent(fork: Path, way: str) -> None:
    file, changes = SAME[way]
    edit(fork / "python", file, *changes)
    assert new(reviewed()) == []


def test_out_of_a_helper_again(fork: Path) -> None:
    file, changes = SAME["moved into a helper"]
    edit(fork / "python", file, *changes)
    commit(fork, "moved")
    edit(fork / "python", file, *((now, was) for was, now in changes))
    assert new(reviewed()) == []
