"""``sglang.Engine`` with all its processes: the agent reaches the rank, and only the rank."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmap.codemap.event import State
from tests.live.jobs import GREEDY, Job
from tests.live.observing import observed
from tests.live.serving import Runs
from tests.live.test_trace import STEADY, V1

pytestmark = pytest.mark.live

ENGINE = replace(V1, program="engine")


@pytest.mark.parametrize("job", [ENGINE], ids=str)
def test_tokens_are_those_of_greedy_decoding(job: Job, runs: Runs) -> None:
    plain = runs[GREEDY[job.release]].tokens
    for answer, tokens, wanted in zip(runs.document(job), plain, job.new_tokens, strict=False):
        assert tuple(answer["tokens"]) == tokens[:wanted]


@pytest.mark.parametrize("job", [ENGINE], ids=str)
def test_one_process_of_the_engine_is_the_rank(job: Job, runs: Runs) -> None:
    rank = observed(runs.trace(job)).rank
    assert (rank.tp_rank, rank.pp_rank) == (0, 0)
    assert rank.arguments["speculative_algorithm"] == job.algorithm
    assert (rank.lost, rank.cut_bytes, rank.faults) == (0, 0, ())
    assert runs.ended(job).said == []


@pytest.mark.parametrize("job", [ENGINE], ids=str)
def test_counts_are_those_that_the_engine_reports(job: Job, runs: Runs) -> None:
    answers = runs.document(job)
    found = observed(runs.trace(job))
    verifies = sum(answer["spec_verify_ct"] for answer in answers)
    accept = found.rank.accept
    assert accept.requests == verifies
    assert accept.tokens == sum(answer["completion_tokens"] - 1 for answer in answers)
    assert sum(p.size for p in found.passes if p.phase == "verify") == verifies
    for phase in found.phases(STEADY):
        assert set(phase.counts) == {State.GRAPH}
