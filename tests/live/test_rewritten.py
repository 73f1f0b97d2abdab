"""Rewritten releases serve: every token is the one of greedy decoding, and the tapes replay.

``python -m tests.live.rewritten`` runs the whole matrix, beside the releases as published.
"""

from __future__ import annotations

import pytest

from tests.live.expected import check_cycles, check_tokens
from tests.live.jobs import GREEDY, Job
from tests.live.rewritten import CHOSEN
from tests.live.serving import Runs

pytestmark = pytest.mark.live


@pytest.mark.parametrize("job", CHOSEN, ids=str)
def test_tokens_are_those_of_greedy_decoding(job: Job, runs: Runs) -> None:
    served = runs[job]
    check_tokens(served, runs[GREEDY[job.release]])
    assert [len(tokens) for tokens in served.tokens] == list(job.new_tokens)


@pytest.mark.parametrize("job", CHOSEN, ids=str)
def test_every_cycle_replays_what_was_captured_and_nothing_else(job: Job, runs: Runs) -> None:
    check_cycles(job, runs[job])
