"""Without torch nothing counts as proven that needs it, and nothing of that is applied."""

from __future__ import annotations

import sys

import pytest

from specmap.codemap.remedy import (
    Layer,
    LayerStatus,
    Obligation,
    Proposal,
    Rewrite,
    Safety,
)
from specmap.codemap.source import Span
from specmap.fix.prove import prover

OBLIGATION = Obligation("", "a = 1", "a = 2", (), ("a",))
PROPOSAL = Proposal("T1", Span("f.py", 1, 1), "f.py::f", "x")
REWRITE = Rewrite(
    "T1", "t", "T", Safety.REVIEW, lambda tree: iter(()), (),
    (Layer.SYNTAX, Layer.EQUALITY, Layer.LEDGER), "", OBLIGATION,
)  # fmt: skip


def test_a_lower_level_runs_nothing() -> None:
    steps = prover("static")(REWRITE, PROPOSAL)
    assert [(s.layer, s.status) for s in steps] == [
        (Layer.EQUALITY, LayerStatus.NOT_RUN),
        (Layer.LEDGER, LayerStatus.NOT_RUN),
    ]


def test_without_torch_equality_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    step = prover("equality")(REWRITE, PROPOSAL)[0]
    assert (step.status, step.detail) == (LayerStatus.NOT_RUN, "torch is not installed")
