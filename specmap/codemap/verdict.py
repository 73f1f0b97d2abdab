"""The words for how a phase runs."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """How the GPU work of one phase is issued."""

    GRAPH = "GRAPH"
    PIECEWISE = "PIECEWISE"
    EAGER = "EAGER"
    NOT_RUN = "NOT_RUN"
    UNKNOWN = "UNKNOWN"


class PhaseName(StrEnum):
    """One kind of model forward inside a speculative decode cycle."""

    TARGET_PREFILL = "target_prefill"
    DRAFT_PREFILL = "draft_prefill"
    DRAFT = "draft"
    VERIFY = "verify"
    DRAFT_EXTEND = "draft_extend"


class SinkKind(StrEnum):
    """Where a pass ends."""

    GRAPH = "graph"
    PIECEWISE = "piecewise"
    EAGER = "eager"


MAY_REPLAY = "replays a graph"
"""The end of a test that stands for a call of which nobody can tell whether it replays."""
