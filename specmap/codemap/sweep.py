"""A sweep: one launch command over a grid of settings, and what each cell of it replays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from specmap.codemap.launch import Plain, Refusal
from specmap.codemap.outcome import CYCLE, Assumption, has_graph
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, Verdict

BATCH_AXIS = "bs"
"""The axis of the batch size; all others are named as the launch names them."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What is varied: an argument without its dashes, an environment variable, or ``bs``.

    ``values`` as they were written; ``fields`` are the settings that an argument sets.
    """

    name: str
    values: tuple[str, ...]
    fields: tuple[str, ...] = ()


class CellState(StrEnum):
    """What a cell comes to, the worst first.

    ``REFUSED`` the server does not start; ``LOST`` a phase of the decode cycle that could
    replay runs eager; ``UNKNOWN`` a phase, or the worker, is not settled; ``KEPT`` every phase
    that runs replays; ``EAGER`` none could; ``PLAIN`` the launch does not speculate.
    """

    REFUSED = "refused"
    LOST = "lost"
    UNKNOWN = "unknown"
    KEPT = "kept"
    EAGER = "eager"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class CellPhase:
    """A phase of the decode cycle in one cell.

    ``reason`` is the test that decides with its numbers, at ``span``; for an unknown verdict
    the test that is open. ``missing`` says what would settle it.
    """

    name: PhaseName
    verdict: Verdict
    could_replay: bool
    reason: str = ""
    span: Span | None = None
    missing: tuple[str, ...] = ()
    backend: str = ""

    @property
    def lost(self) -> bool:
        """Whether the phase is one that replays, and runs eager."""
        return has_graph(self.name, self.could_replay) and self.verdict is Verdict.EAGER


@dataclass(frozen=True, slots=True)
class Prediction:
    """Tokens a second of a cell.

    ``cycle_ns`` is the time of a decode cycle and ``accept_length`` the tokens a request and
    cycle. ``rules`` say where both come from, ``measured`` that a run had just these settings.
    """

    tokens_per_second: float
    cycle_ns: float
    accept_length: float
    rules: tuple[str, ...]
    measured: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """One launch at one batch size.

    ``values`` are those of the axes, in their order. ``workers`` is the one that runs, the
    candidates, or empty. ``settings`` are the effective settings that a cell is told apart
    by, as far as they are known. ``graph_size`` is the captured size that the batch is padded
    to, ``admitted`` the most requests that run at once, ``tokens_per_request`` the width of a
    verify step. ``missing`` would settle what is not
    known. ``overwritten`` are given settings that the argument code replaced. ``concerns`` are
    failing preflight findings, ``unmet`` expectations that do not hold, ``notes`` what else is
    particular to the cell. ``unranked`` says why there is no ``prediction``; both are empty
    without a run.
    """

    values: tuple[str, ...]
    batch_size: int
    workers: tuple[str, ...]
    phases: tuple[CellPhase, ...]
    refusal: Refusal | None = None
    may_refuse: tuple[Refusal, ...] = ()
    settings: Mapping[str, Plain] = field(default_factory=dict, hash=False)
    graph_size: int | None = None
    largest_captured: int | None = None
    admitted: int | None = None
    tokens_per_request: int | None = None
    missing: tuple[str, ...] = ()
    overwritten: tuple[str, ...] = ()
    concerns: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    prediction: Prediction | None = None
    unranked: str = ""

    @property
    def lost(self) -> tuple[CellPhase, ...]:
        """The phases of the decode cycle that lose their graph."""
        return tuple(phase for phase in self.phases if phase.name in CYCLE and phase.lost)

    @property
    def too_large(self) -> str:
        """Say that no batch has this size, "" where one may."""
        if self.admitted is None or self.batch_size <= self.admitted:
            return ""
        return f"no batch is that large: at most {self.admitted} requests are admitted"

    @property
    def state(self) -> CellState:
        """What the cell comes to."""
        verdicts = {phase.verdict for phase in self.phases if phase.name in CYCLE}
        if self.refusal is not None:
            return CellState.REFUSED
        if self.lost:
            return CellState.LOST
        if not self.workers:
            return CellState.UNKNOWN if self.missing else CellState.PLAIN
        if len(self.workers) > 1 or Verdict.UNKNOWN in verdicts or not verdicts:
            return CellState.UNKNOWN
        if verdicts <= {Verdict.EAGER, Verdict.NOT_RUN}:
            return CellState.EAGER
        return CellState.KEPT


@dataclass(frozen=True, slots=True)
class RunUsed:
    """A recorded run that a ranking rests on; ``unused`` says why it could not be used."""

    name: str
    settings: Mapping[str, Plain] = field(hash=False)
    worker: str
    batch_size: int | None
    cycle_ns: int | None
    accept_length: float | None
    unused: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A grid of cells, in the order of its axes, the last axis fastest.

    ``launches`` is how many were evaluated, each for all batch sizes. ``runs`` are what a
    ranking rests on and ``ranking_assumes`` what it takes for granted. ``partial`` says which
    modules the map lacks, "" for a whole one.
    """

    target: str
    release: str | None
    platform: str
    command: tuple[str, ...]
    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    launches: int
    assumptions: tuple[Assumption, ...] = ()
    notes: tuple[str, ...] = ()
    runs: tuple[RunUsed, ...] = ()
    ranking_assumes: tuple[str, ...] = ()
    partial: str = ""

    @property
    def findings(self) -> bool:
        """Whether a cell loses a graph, is refused, or has something else to report."""
        bad = (CellState.LOST, CellState.REFUSED)
        return any(c.state in bad or c.concerns or c.unmet for c in self.cells)

    @property
    def undecided(self) -> str:
        """Say that no cell can be told, "" where one can."""
        if not self.cells or any(c.state is not CellState.UNKNOWN for c in self.cells):
            return ""
        return "no cell can be told: state what is listed as not known"

    @property
    def ranked(self) -> tuple[Cell, ...]:
        """The cells with a prediction, the fastest first."""
        known = [(c.prediction.tokens_per_second, c) for c in self.cells if c.prediction]
        return tuple(cell for _, cell in sorted(known, key=lambda item: -item[0]))
