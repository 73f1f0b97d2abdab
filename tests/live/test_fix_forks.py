"""Broken forks of a release: verify alone runs eager; after ``fix --write`` it replays.

Tokens are those of greedy decoding before and after.
"""

from __future__ import annotations

import pytest

from tests.live.broken import HALF, WRAPPED
from tests.live.expected import check_tokens, cycles
from tests.live.jobs import GREEDY, Job
from tests.live.serving import Runs, Served
from tests.live.trees import REPAIRED

pytestmark = pytest.mark.live
RELEASE = "0.5.12"
BROKEN = [Job(RELEASE, tree=WRAPPED), Job(RELEASE, overlap=True, tree=HALF)]
WHOLE = [
    Job(RELEASE, tree=REPAIRED[WRAPPED]),
    Job(RELEASE, overlap=True, tree=REPAIRED[WRAPPED]),
    Job(RELEASE, overlap=True, tree=REPAIRED[HALF]),
]


def replayed(job: Job, served: Served) -> list[tuple[set[str], set[str]]]:
    """The runners that replayed in each cycle, and those that the configuration lets replay."""
    due = cycles(job, [batch.size for batch in served.decoded])
    owners = {"draft": "draft", "verify": "target", "draft_extend": "draft_extend"}
    return [
        (set(batch.owners), {owners[p.phase] for p in phases if p.graph_size is not None})
        for batch, phases in zip(served.decoded, due, strict=True)
    ]


@pytest.mark.parametrize("job", [*BROKEN, *WHOLE], ids=str)
def test_tokens_are_those_of_greedy_decoding(job: Job, runs: Runs) -> None:
    served = runs[job]
    check_tokens(served, runs[GREEDY[job.release]])
    assert [len(tokens) for tokens in served.tokens] == list(job.new_tokens)


@pytest.mark.parametrize("job", BROKEN, ids=str)
def test_a_broken_fork_runs_verify_alone_eager(job: Job, runs: Runs) -> None:
    cycles_of = replayed(job, runs[job])
    assert cycles_of
    assert all(ran == due - {"target"} and "target" in due for ran, due in cycles_of)


@pytest.mark.parametrize("job", WHOLE, ids=str)
def test_a_repaired_fork_replays_verify_again(job: Job, runs: Runs) -> None:
    cycles_of = replayed(job, runs[job])
    assert cycles_of
    assert all(ran == due and "target" in due for ran, due in cycles_of)
