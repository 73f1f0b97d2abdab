"""``specmap trace --live -- COMMAND`` on a real worker: what its user reads, and the exit code."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tests.live.expected import check_tokens
from tests.live.jobs import GREEDY, Job
from tests.live.serving import RESULT, Runs, served
from tests.live.test_trace import EAGER_V1, STEADY, V1

pytestmark = pytest.mark.live

GOOD = replace(V1, traced=False, command=True)
EAGER = replace(EAGER_V1, traced=False, command=True)


@pytest.mark.parametrize(("job", "code"), [(GOOD, 0), (EAGER, 1)], ids=str)
def test_the_exit_code_says_whether_a_phase_ran_eager(job: Job, code: int, runs: Runs) -> None:
    ended = runs.ended(job)
    assert ended.code == code, ended.log[-3000:]


@pytest.mark.parametrize("job", [GOOD, EAGER], ids=str)
def test_the_server_answers_as_ever(job: Job, runs: Runs) -> None:
    found = json.loads((runs.ended(job).folder / RESULT).read_text("utf-8"))
    check_tokens(served(found, job), runs[GREEDY[job.release]])


@pytest.mark.parametrize("job", [GOOD, EAGER], ids=str)
def test_the_report_has_every_phase_with_its_passes(job: Job, runs: Runs) -> None:
    ended = runs.ended(job)
    found = served(json.loads((ended.folder / RESULT).read_text("utf-8")), job)
    cycles = len(found.decoded)
    state = "GRAPH" if job.graphs else "EAGER"
    for phase, passes in zip(STEADY, (cycles, cycles, cycles - 1), strict=True):
        assert re.search(rf"\b{phase}\b.*\b{state}\b.*\b{passes}\b", ended.log), ended.log[-3000:]
    assert ("disable_cuda_graph" in ended.log) == (not job.graphs)
