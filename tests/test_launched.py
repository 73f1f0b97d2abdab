"""What a launch's outcome is narrowed to, and when nothing in it can be told."""

from __future__ import annotations

import pytest

from specmap.codemap.outcome import Captured, Outcome, PhaseOutcome, WorkerOutcome
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.launched import narrowed, undecided

SPAN = Span("sglang/srt/worker.py", 1, 1)


def outcome(**verdicts: str) -> Outcome:
    phases = tuple(
        PhaseOutcome(PhaseName(name), "target", Verdict(word), "holder", SPAN)
        for name, word in verdicts.items()
    )
    worker = WorkerOutcome("w", "Worker", SPAN, None, True, (), phases)
    captured = Captured(None, (), (), (None, None), None)
    return Outcome(
        "tree", None, "cuda", (), None, None, (), (worker,), captured, (), (), (), (), (), ()
    )


@pytest.mark.parametrize(
    ("verdicts", "open_"),
    [
        ({"draft": "UNKNOWN", "verify": "UNKNOWN"}, True),
        ({"draft": "NOT_RUN", "verify": "UNKNOWN"}, True),
        ({"target_prefill": "EAGER", "verify": "UNKNOWN"}, True),
        ({"draft": "GRAPH", "verify": "UNKNOWN"}, False),
        ({"draft": "NOT_RUN", "verify": "NOT_RUN"}, False),
        ({"target_prefill": "UNKNOWN"}, False),
    ],
)
def test_all_unknown_is_said(verdicts: dict[str, str], open_: bool) -> None:
    assert bool(undecided(outcome(**verdicts))) is open_


def test_a_phase_alone() -> None:
    found = outcome(draft="EAGER", verify="GRAPH")
    (worker,) = narrowed(found, ("verify",)).workers
    assert [phase.name for phase in worker.phases] == ["verify"]
    assert narrowed(found, ()) == found
