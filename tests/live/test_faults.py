"""What goes wrong in the tracer, or around it, never reaches the server's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from specmap.codemap.event import Pass
from tests.live.expected import check_cycles, check_tokens
from tests.live.jobs import GREEDY, Job
from tests.live.observing import observed
from tests.live.serving import Runs
from tests.live.test_trace import EAGER_V1, V1

pytestmark = pytest.mark.live

BROKEN = {
    # on the scheduler's thread: before the rank starts, and at the first call of an entry
    "identity.Identity.see": V1,
    # on the scheduler's thread, at every decision that says no
    "reasons.Reasons._record": EAGER_V1,
    # on the thread that writes the files
    "log.Log.drain": V1,
}
RAISING = [replace(job, fault=f"agent-raises:{where}") for where, job in BROKEN.items()]
NO_FOLDER, FULL_DISK = replace(V1, place="no-folder"), replace(V1, place="full-disk")
BATCHES = 6
KILLED = replace(V1, fault=f"killed-after:{BATCHES}")


@pytest.mark.parametrize("job", [*RAISING, NO_FOLDER, FULL_DISK], ids=str)
def test_the_server_goes_on_with_the_same_tokens(job: Job, runs: Runs) -> None:
    check_tokens(runs[job], runs[GREEDY[job.release]])
    check_cycles(job, runs[job])


@pytest.mark.parametrize("job", [*RAISING, NO_FOLDER, FULL_DISK], ids=str)
def test_the_user_reads_one_line(job: Job, runs: Runs) -> None:
    [line] = runs.ended(job).said
    assert len(line) < 400


@pytest.mark.parametrize("job", RAISING, ids=str)
def test_the_line_names_what_was_raised(job: Job, runs: Runs) -> None:
    assert "RuntimeError: broken by a test" in runs.ended(job).said[0]


@pytest.mark.parametrize(
    ("job", "reason"),
    [(NO_FOLDER, "Not a directory"), (FULL_DISK, "No space left on device")],
    ids=str,
)
def test_the_line_names_the_folder_and_what_the_system_said(
    job: Job, reason: str, runs: Runs
) -> None:
    [line] = runs.ended(job).said
    assert reason in line
    assert str(runs.ended(job).folder) in line
    assert "the server goes on" in line


@pytest.mark.parametrize("job", [KILLED], ids=str)
def test_a_killed_rank_leaves_every_cycle_that_it_finished(job: Job, runs: Runs) -> None:
    whole = observed(runs.trace(replace(job, fault="")))
    assert runs.ended(job).code != 0
    cut = observed(runs.trace(job))
    assert not cut.rank.finished
    assert cut.rank.cycles == BATCHES
    assert (cut.rank.lost, cut.rank.cut_bytes) == (0, 0)

    def told(passes: Sequence[Pass]) -> list[Pass]:
        return [replace(p, start_ns=0, cpu_ns=0) for p in passes if p.cycle < BATCHES]

    assert told(cut.passes) == told(whole.passes)
