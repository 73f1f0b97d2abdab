"""The tracer on real workers: what it says is what SGLang itself and the tapes counted.

What is expected comes from the configuration (``expected``) and from SGLang's own counters, in
the very process that was traced; the tokens are those of the same run without a tracer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from specmap.codemap.event import Agreement, Pass, State
from specmap.codemap.verdict import Verdict
from specmap.join import joined
from tests.live.expected import OWNERS, check_cycles, check_tokens, cycles
from tests.live.jobs import GREEDY, STEPS, Job
from tests.live.observing import Observed, judged, mapped, observed
from tests.live.serving import Runs, Served

pytestmark = pytest.mark.live

FOUR = (5, 14, 8, 18)
V1 = Job("0.5.9", traced=True)
V2 = Job("0.5.9", overlap=True, traced=True)
NEW_V2 = Job("0.5.23", overlap=True, traced=True)
TREE = Job("0.5.9", algorithm="EAGLE3", topk=2, draft_tokens=6, traced=True)
EAGER_V1 = Job("0.5.9", graphs=(), traced=True)
EAGER_V2 = Job("0.5.23", overlap=True, graphs=(), traced=True)
LARGE_V1 = Job("0.5.9", new_tokens=FOUR, traced=True)
LARGE_V2 = Job("0.5.23", overlap=True, new_tokens=FOUR, traced=True)
PADDED = Job("0.5.9", graphs=(2, 4), new_tokens=(8, 4, 6), traced=True)
LIAR = replace(V1, fault="tape-not-counted")
TAPE, EAGER, LARGE = [V1, V2, NEW_V2, TREE, PADDED], [EAGER_V1, EAGER_V2], [LARGE_V1, LARGE_V2]
EVERY = [*TAPE, *EAGER, *LARGE]
STEADY = ("draft", "verify", "draft_extend")


def seen(runs: Runs, job: Job) -> Observed:
    """Return what the tracer says of a job, which has ended by then."""
    assert runs[job]
    return observed(runs.trace(job))


def decode_passes(found: Observed) -> list[list[Pass]]:
    """Return the passes of every decode cycle; cycle 0 is the prefill of all requests."""
    last = max(one.cycle for one in found.passes)
    return [[p for p in found.passes if p.cycle == number] for number in range(1, last + 1)]


def check_passes(job: Job, served: Served, found: Observed) -> None:
    """Compare every pass with the configuration, and the replays with the tapes."""
    sizes = [batch.size for batch in served.decoded]
    decoded = decode_passes(found)
    for batch, phases, passes in zip(served.decoded, cycles(job, sizes), decoded, strict=True):
        assert [(p.phase, p.size) for p in passes] == [(p.phase, p.size) for p in phases]
        for one, phase in zip(passes, phases, strict=True):
            replayed = phase.graph_size is not None
            assert one.state == (State.GRAPH if replayed else State.EAGER)
            assert one.graph_size == (phase.graph_size if replayed else -1)
            assert one.replays == replayed
        assert [(OWNERS[p.phase], p.graph_size) for p in passes if p.state is State.GRAPH] == list(
            batch.replays
        )


@pytest.mark.parametrize("job", EVERY, ids=str)
def test_tokens_are_the_same_without_a_tracer(job: Job, runs: Runs) -> None:
    assert runs[job].tokens == runs[replace(job, traced=False)].tokens
    check_tokens(runs[job], runs[GREEDY[job.release]])
    check_cycles(job, runs[job])


@pytest.mark.parametrize("job", EVERY, ids=str)
def test_every_pass_is_what_the_launch_and_the_tapes_say(job: Job, runs: Runs) -> None:
    check_passes(job, runs[job], seen(runs, job))


@pytest.mark.parametrize("job", [LIAR], ids=str)
def test_counts_that_differ_from_the_tapes_are_seen(job: Job, runs: Runs) -> None:
    with pytest.raises(AssertionError):
        check_passes(job, runs[job], seen(runs, job))


@pytest.mark.parametrize("job", EVERY, ids=str)
def test_the_rank_lost_nothing_and_knows_itself(job: Job, runs: Runs) -> None:
    served, rank = runs[job], seen(runs, job).rank
    assert (rank.tp_rank, rank.pp_rank, rank.finished) == (0, 0, True)
    assert (rank.lost, rank.cut_bytes, rank.faults) == (0, 0, ())
    assert rank.versions["sglang"] == job.release
    assert rank.arguments["speculative_num_steps"] == STEPS
    assert {p.worker for p in rank.phases} == {served.worker}
    assert rank.cycles == len(served.batches)
    assert runs.ended(job).said == []


@pytest.mark.parametrize("job", EVERY, ids=str)
def test_verify_steps_and_accepted_tokens_are_those_of_sglang(job: Job, runs: Runs) -> None:
    served, found = runs[job], seen(runs, job)
    verify = [p.accepted for cycle in decode_passes(found) for p in cycle if p.phase == "verify"]
    assert verify == [sum(batch.accepted) + batch.size for batch in served.decoded]
    accept = found.rank.accept
    assert accept.steps == len(served.decoded)
    assert accept.requests == sum(batch.size for batch in served.decoded)


@pytest.mark.parametrize("job", [V1, EAGER_V1, LARGE_V1], ids=str)
def test_steps_and_tokens_are_those_that_the_requests_got(job: Job, runs: Runs) -> None:
    # a request's own spec_accepted_tokens also counts drafts behind its last token
    answers, accept = runs[job].answers, seen(runs, job).rank.accept
    assert accept.requests == sum(answer.verifies for answer in answers)
    assert accept.tokens == sum(len(answer.tokens) - 1 for answer in answers)


@pytest.mark.parametrize("job", [V1, V2, NEW_V2, TREE], ids=str)
def test_a_full_cycle_is_three_replays_and_no_python_of_a_model(job: Job, runs: Runs) -> None:
    served = runs[job]
    full = [p for p in decode_passes(seen(runs, job)) if len(p) == len(STEADY)]
    assert len(full) >= len(served.decoded) - 1
    assert all(sum(one.replays for one in passes) == 3 for passes in full)
    assert all(not any(batch.layers.values()) for batch in served.decoded)
    assert all(batch.draft_forwards == 0 for batch in served.decoded)


@pytest.mark.parametrize("job", [*TAPE, *LARGE], ids=str)
def test_every_capture_was_seen(job: Job, runs: Runs) -> None:
    graphs = sum(len(sizes) for sizes in runs[job].captured.values())
    assert seen(runs, job).captures == graphs


@pytest.mark.parametrize("job", EAGER, ids=str)
def test_eager_phases_name_what_disabled_them(job: Job, runs: Runs) -> None:
    for phase in seen(runs, job).phases(STEADY):
        assert set(phase.counts) == {State.EAGER}
        [reason] = phase.reasons
        assert "disabled" in reason.text
        assert "disable_cuda_graph" in reason.text


@pytest.mark.parametrize("job", LARGE, ids=str)
def test_a_large_batch_names_both_numbers_and_the_cycle_of_the_switch(job: Job, runs: Runs) -> None:
    sizes = [batch.size for batch in runs[job].decoded]
    expected = cycles(job, sizes)
    for phase in seen(runs, job).phases(STEADY):
        own = [next((p for p in one if p.phase == phase.phase), None) for one in expected]
        batches = [p.size for p in own if p is not None and p.graph_size is None]
        assert {r.text: r.count for r in phase.reasons} == {
            f"bs {size} > largest captured 2": n for size, n in Counter(batches).items()
        }
        first = next(i for i, p in enumerate(own, 1) if p is not None and p.graph_size)
        assert [(s.state, s.first) for s in phase.stretches] == [
            (State.EAGER, 1),
            (State.GRAPH, first),
        ]


@pytest.mark.parametrize("job", [PADDED], ids=str)
def test_padding_is_counted_in_requests(job: Job, runs: Runs) -> None:
    sizes = [batch.size for batch in runs[job].decoded]
    for phase in seen(runs, job).phases(STEADY):
        own = [p for one in cycles(job, sizes) for p in one if p.phase == phase.phase]
        assert phase.real == sum(p.size for p in own)
        assert phase.padded == sum(p.graph_size or 0 for p in own)
        assert phase.padded > phase.real


@pytest.mark.parametrize("job", [V1, V2, NEW_V2, EAGER_V1, EAGER_V2], ids=str)
def test_the_static_verdict_of_the_same_launch_is_what_was_seen(job: Job, runs: Runs) -> None:
    worker = judged(job, runs.checkpoints).worker
    assert worker is not None
    assert worker.name == runs[job].worker
    verdicts = {phase.name.value: phase.verdict for phase in worker.phases}
    for phase in seen(runs, job).phases(STEADY):
        [state] = phase.counts
        assert verdicts[phase.phase] == Verdict(state.value)


@pytest.mark.parametrize("job", EVERY, ids=str)
def test_the_join_finds_no_contradiction(job: Job, runs: Runs) -> None:
    outcome = judged(job, runs.checkpoints)
    rows = joined(seen(runs, job).run, mapped(job.release)[0], outcome).joined
    assert {row.phase: row.agreement for row in rows if row.phase in STEADY} == dict.fromkeys(
        STEADY, Agreement.AGREE
    )


@pytest.mark.parametrize("job", [V1], ids=str)
def test_the_join_contradicts_a_launch_that_was_not_this_one(job: Job, runs: Runs) -> None:
    other = judged(replace(job, graphs=()), runs.checkpoints)
    rows = joined(seen(runs, job).run, mapped(job.release)[0], other).joined
    assert {row.phase for row in rows if row.agreement is Agreement.CONTRADICT} >= set(STEADY)
