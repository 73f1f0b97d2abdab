"""The outcome of one launch: which worker runs, and how each phase of its cycle ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from specmap.codemap.launch import Fact, Refusal
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, Verdict


class TermSource(StrEnum):
    """What gave a test its value.

    ``launch`` the release's own argument code; ``size`` the captured batch sizes;
    ``stated`` the caller; ``assumed`` a steady batch; ``unknown`` nothing.
    """

    LAUNCH = "launch"
    SIZE = "size"
    STATED = "stated"
    ASSUMED = "assumed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TermValue:
    """One test on the way to a verdict.

    ``value`` is None where nothing settles it; ``reasons`` then name what would. ``note`` says
    the numbers or the assumption. ``operands`` are the values compared and ``settings`` those
    that were read for them, with where they come from.
    """

    text: str
    span: Span | None
    value: bool | None
    source: TermSource
    note: str = ""
    reasons: tuple[str, ...] = ()
    operands: tuple[Fact, ...] = ()
    settings: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchRange:
    """A verdict for the batch sizes ``first`` to ``last``; ``last`` None: and all above.

    ``assumed``: it rests on what is assumed of a model whose config is not given.
    """

    first: int
    last: int | None
    verdict: Verdict
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class PhaseOutcome:
    """How one phase ends under a launch.

    ``verdict`` is that of the batch size asked for, else that of a batch of one. ``ranges``
    says it for every size that can run; for all sizes where a larger one is asked for.
    ``deciding`` holds the tests that decide, the first one first; ``open_terms`` those that
    would settle an unknown verdict. ``backend`` is the attention backend that the phase uses,
    where it is known. ``could_replay`` says that the worker has a graph for this phase.
    ``assumed``: without what is assumed of the model the verdict is UNKNOWN.
    """

    name: PhaseName
    role: str
    verdict: Verdict
    holder: str
    span: Span
    ranges: tuple[BatchRange, ...] = ()
    deciding: tuple[TermValue, ...] = ()
    open_terms: tuple[TermValue, ...] = ()
    backend: str = ""
    could_replay: bool = False
    note: str = ""
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class WorkerOutcome:
    """A worker that this launch can select; ``open_terms`` would settle whether it does.

    ``assumed``: that it is the one rests on what is assumed of the model.
    """

    id: str
    name: str
    span: Span
    selected_at: Span | None
    certain: bool
    open_terms: tuple[TermValue, ...]
    phases: tuple[PhaseOutcome, ...]
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Concern:
    """A preflight finding: something in the launch that costs graphs or overlap in silence.

    ``failing`` concerns count as findings; the others explain.
    """

    kind: str
    message: str
    span: Span | None
    failing: bool


LOG_AGAINST_SOURCE = "log-against-source"
"""The kind of a concern: what the server's log says and the verdict of verify do not meet."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The batch sizes that are captured, and the requests that are admitted.

    ``sizes`` ascending, None where unknown; ``least`` are sizes captured whatever is not
    known. ``admitted`` is the range of the request pool, each end None where unknown;
    ``tokens_per_request`` the width of a verify step. ``steady`` is the batch of a steady
    load at the given concurrency and ``share`` the part of batch sizes up to it that replay.
    ``assumed``: the sizes rest on what is assumed of the model.
    """

    sizes: tuple[int, ...] | None
    least: tuple[int, ...]
    reasons: tuple[str, ...]
    admitted: tuple[int | None, int | None]
    tokens_per_request: int | None
    concurrency: int | None = None
    steady: int | None = None
    share: float | None = None
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """The decode batches of one size in a server's log.

    ``size`` is the running requests; in ``graph`` of them the log says that a graph ran, in
    ``eager`` that none did. ``ranks``: data-parallel ranks wrote it, each with its own size.
    """

    size: int
    graph: int
    eager: int
    ranks: bool = False


@dataclass(frozen=True, slots=True)
class Expectation:
    """A verdict that the caller asserts for a phase, and whether it holds."""

    phase: PhaseName
    expected: Verdict
    found: Verdict
    met: bool


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something taken for granted.

    ``key`` is the name under which ``--batch`` overrides it, ``option`` the option that
    replaces it; both are "" where nothing does.
    """

    key: str
    text: str
    option: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that one launch command makes of a tree.

    ``workers`` holds the one that runs, or the candidates; none when the server refuses to
    start or does not speculate. ``batch_size`` is what the caller asked for, or the steady
    batch of the concurrency asked about, or the largest that a server's log tells of: ``logged``
    are those. ``partial`` says which modules the map lacks, "" for a whole one.
    """

    target: str
    release: str | None
    platform: str
    command: tuple[str, ...]
    batch_size: int | None
    refusal: Refusal | None
    may_refuse: tuple[Refusal, ...]
    workers: tuple[WorkerOutcome, ...]
    captured: Captured
    settings: tuple[Fact, ...]
    concerns: tuple[Concern, ...]
    expectations: tuple[Expectation, ...]
    assumptions: tuple[Assumption, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    partial: str = ""
    logged: tuple[LoggedBatch, ...] = ()

    @property
    def worker(self) -> WorkerOutcome | None:
        """The worker that certainly runs, or None."""
        return self.workers[0] if len(self.workers) == 1 and self.workers[0].certain else None

    @property
    def findings(self) -> bool:
        """Whether a phase that replays will not, a concern fails or an expectation does."""
        return (
            self.refusal is not None
            or any(concern.failing for concern in self.concerns)
            or any(not expectation.met for expectation in self.expectations)
            or any(_lost(phase) for worker in self.workers for phase in worker.phases)
        )


CYCLE = (PhaseName.DRAFT, PhaseName.VERIFY, PhaseName.DRAFT_EXTEND)
"""The phases of a decode cycle: losing their graph is a finding; prefill is only reported."""


def _lost(phase: PhaseOutcome) -> bool:
    replays = has_graph(phase.name, phase.could_replay)
    return phase.name in CYCLE and replays and phase.verdict is Verdict.EAGER


def has_graph(name: PhaseName, could_replay: bool) -> bool:
    """Whether a phase is one that replays: its source has a way to a graph, or it is verify.

    A verify without any way to a graph has lost it, in a fork or on a platform.
    """
    return could_replay or name is PhaseName.VERIFY
