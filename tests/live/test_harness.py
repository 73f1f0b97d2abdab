"""The harness alone, no tracer: the real workers give the tokens of plain greedy decoding.

It proves the machine that judges the tracer: the tokens are right, the tapes are replayed where
the launch says so, and a lie in a tape or in a kernel would be seen.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.live.environment import python_of
from tests.live.expected import check_cycles, check_tokens
from tests.live.jobs import GREEDY, STEPS, Job
from tests.live.serving import HARNESS, Runs, plain_environment

pytestmark = pytest.mark.live

V1, V2 = Job("0.5.9"), Job("0.5.9", overlap=True)
NEW_V2 = Job("0.5.23", overlap=True)
TREE = Job("0.5.9", topk=2, draft_tokens=6)
EAGLE3 = Job("0.5.9", algorithm="EAGLE3", topk=2, draft_tokens=6)
PADDED = Job("0.5.9", graphs=(2, 4), new_tokens=(8, 4, 6))
EAGER_V1 = Job("0.5.9", graphs=())
EAGER_V2 = Job("0.5.23", overlap=True, graphs=())
LARGE_V1 = Job("0.5.9", new_tokens=(5, 14, 8, 18))
LARGE_V2 = Job("0.5.23", overlap=True, new_tokens=(5, 14, 8, 18))
TAPE = [V1, V2, NEW_V2, TREE, EAGLE3, PADDED]
EAGER = [EAGER_V1, EAGER_V2]
LARGE = [LARGE_V1, LARGE_V2]
WORKERS = {
    V1: "StandaloneWorker",
    V2: "StandaloneWorkerV2",
    NEW_V2: "StandaloneWorkerV2",
    EAGLE3: "EAGLEWorker",
}


@pytest.mark.parametrize("job", [*TAPE, *EAGER, *LARGE], ids=str)
def test_tokens_are_those_of_greedy_decoding(job: Job, runs: Runs) -> None:
    served = runs[job]
    check_tokens(served, runs[GREEDY[job.release]])
    assert [len(tokens) for tokens in served.tokens] == list(job.new_tokens)
    assert len(set(served.tokens)) == len(job.new_tokens)


@pytest.mark.parametrize("job", WORKERS, ids=str)
def test_the_worker_is_the_one_asked_for(job: Job, runs: Runs) -> None:
    assert runs[job].worker == WORKERS[job]


@pytest.mark.parametrize("job", [V1, V2, NEW_V2], ids=str)
def test_a_noisy_draft_is_accepted_now_and_then(job: Job, runs: Runs) -> None:
    seen = {count for batch in runs[job].decoded for count in batch.accepted}
    assert len(seen) > 2
    assert seen <= set(range(STEPS + 1))


@pytest.mark.parametrize("job", [*TAPE, *EAGER, *LARGE], ids=str)
def test_every_cycle_replays_what_was_captured_and_nothing_else(job: Job, runs: Runs) -> None:
    served = runs[job]
    assert all(tuple(sizes) == job.graphs for sizes in served.captured.values())
    check_cycles(job, served)


@pytest.mark.parametrize("job", LARGE, ids=str)
def test_the_batch_shrinks_below_the_captured_size(job: Job, runs: Runs) -> None:
    sizes = {batch.size for batch in runs[job].decoded}
    assert sizes >= {2, 3, 4}


@pytest.mark.parametrize("job", [V1, EAGER_V1, LARGE_V1], ids=str)
def test_v1_counts_of_batches_and_of_requests_agree(job: Job, runs: Runs) -> None:
    served = runs[job]
    assert sum(a.verifies for a in served.answers) == sum(b.size for b in served.decoded)
    kept = sum(sum(batch.accepted) + batch.size for batch in served.decoded)
    assert kept == sum(len(answer.tokens) - 1 for answer in served.answers)


@pytest.mark.parametrize("job", [replace(V1, fault="tape-runs-nothing")], ids=str)
def test_a_tape_that_runs_nothing_is_seen(job: Job, runs: Runs) -> None:
    with pytest.raises(AssertionError):
        check_tokens(runs[job], runs[GREEDY[job.release]])


@pytest.mark.parametrize("job", [replace(V1, fault="tape-not-counted")], ids=str)
def test_a_tape_that_is_not_counted_is_seen(job: Job, runs: Runs) -> None:
    check_tokens(runs[job], runs[GREEDY[job.release]])
    with pytest.raises(AssertionError):
        check_cycles(job, runs[job])


@pytest.mark.parametrize("job", [replace(TREE, fault="kernel-shows-siblings")], ids=str)
def test_a_kernel_that_shows_too_much_is_seen(job: Job, runs: Runs) -> None:
    with pytest.raises(AssertionError):
        check_tokens(runs[job], runs[GREEDY[job.release]])


def test_the_stand_in_kernels_are_those_of_sglang_in_triton() -> None:
    command = [str(python_of("0.5.23")), str(HARNESS / "fuzz.py"), "30"]
    environment = {**plain_environment(), **NEW_V2.environment()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    agreed = re.search(r"^30 agree, (\d+) tokens accepted$", done.stdout, re.MULTILINE)
    assert agreed is not None
    assert int(agreed[1]) > 0


FAILED_RANK = f"""
import os, signal, sys
sys.path.insert(0, {str(HARNESS)!r})
import driver

def rank(job, result, pipe):
    os.kill(os.getppid(), signal.SIGQUIT)

if __name__ == "__main__":
    sys.exit(driver.main("", "", target=rank))
"""


def test_a_rank_that_failed_is_seen_where_the_shell_ignores_its_signal(tmp_path: Path) -> None:
    """SGLang's scheduler tells its parent by SIGQUIT; in a shell's background it is ignored."""
    program = tmp_path / "failed.py"
    program.write_text(FAILED_RANK, "utf-8")
    background = ["sh", "-c", "trap '' QUIT; ulimit -c 0; exec \"$@\"", "sh"]
    ended = subprocess.run([*background, sys.executable, str(program)], check=False, timeout=60)
    assert ended.returncode == -signal.SIGQUIT
