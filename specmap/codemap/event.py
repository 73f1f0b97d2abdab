"""What a running server did: a recorded run, its ranks, phases, and what stands out.

Times are CPU time stamps of ``CLOCK_MONOTONIC`` unless a name says ``gpu``: the time of an
asynchronous call is what it took to launch the work. Everything is a count, a name or a size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from specmap.codemap.launch import Plain
from specmap.codemap.source import Span
from specmap.codemap.verdict import Verdict


class State(StrEnum):
    """How one pass ran.

    ``PARTIAL`` some of its forwards replayed and some did not; ``CAPTURE`` a graph was being
    captured.
    """

    GRAPH = "GRAPH"
    PIECEWISE = "PIECEWISE"
    EAGER = "EAGER"
    PARTIAL = "PARTIAL"
    CAPTURE = "CAPTURE"


@dataclass(frozen=True, slots=True)
class Launches:
    """What was launched: graphs, kernels one by one, and how many of these were collectives."""

    graphs: int = 0
    kernels: int = 0
    collectives: int = 0

    def __add__(self, other: Launches) -> Launches:
        """Both together."""
        return Launches(
            self.graphs + other.graphs,
            self.kernels + other.kernels,
            self.collectives + other.collectives,
        )


UNKNOWN_PHASE = "unknown"
"""The phase of a pass that ended in a known sink on a way that the map does not have."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One phase in one cycle of one rank.

    ``size`` is the number of requests, ``graph_size`` that of the graph; -1 where it is not
    known. ``sinks`` counts the forwards, ``replays`` the graph launches seen in them.
    ``cpu_ns`` is the time inside the phase's own method, or in its forwards where the phase
    has no method for itself. ``accepted`` counts the tokens of a verify step, with the bonus.
    ``launches`` is None where they were not counted.
    """

    cycle: int
    worker: str
    phase: str
    state: State
    reason: str
    start_ns: int
    cpu_ns: int
    size: int
    graph_size: int
    replays: int
    sinks: int
    holder: int = 0
    gpu_ns: int | None = None
    accepted: int | None = None
    launches: Launches | None = None


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """Why passes did not replay: the test that said no, where it stands, how often, since when."""

    text: str
    count: int
    first_cycle: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive passes in one state: from the cycle ``first`` to ``last``, ``passes`` many."""

    state: State
    first: int
    last: int
    passes: int


@dataclass(frozen=True, slots=True)
class SizeCount:
    """Passes of one batch size in one state."""

    size: int
    state: State
    passes: int


@dataclass(frozen=True, slots=True)
class LaunchCount:
    """Passes of one state whose launches were counted, and what all of them launched.

    ``usual`` is what most of them launched each, ``usual_passes`` how many did just that.
    """

    state: State
    passes: int
    launches: Launches
    usual: Launches
    usual_passes: int


@dataclass(frozen=True, slots=True)
class PhaseStats:
    """One phase of one rank over the run.

    ``counts`` by state. ``stretches`` are the first and the last few. ``share`` is the part of
    a pass in the time of the worker's own call, both medians; what is outside that call is in no
    share. ``padded`` and ``real`` are the requests that graphs were replayed with, with and
    without padding. ``gpu_passes`` counts passes with a GPU time, ``replays`` graph launches.
    ``sizes`` counts passes by batch size, ascending. ``launches`` are by state, empty where none
    were counted.
    """

    worker: str
    phase: str
    passes: int
    counts: Mapping[State, int] = field(hash=False)
    reasons: tuple[ReasonCount, ...]
    stretches: tuple[Stretch, ...]
    cpu_ns: int
    median_cpu_ns: int
    median_replay_ns: int | None
    share: float
    gpu_ns: int
    gpu_passes: int
    real: int
    padded: int
    graph_sizes: tuple[int, ...]
    replays: int = 0
    sizes: tuple[SizeCount, ...] = ()
    launches: tuple[LaunchCount, ...] = ()

    @property
    def state(self) -> State | None:
        """The state of the last pass that was no capture, or None."""
        return self.stretches[-1].state if self.stretches else None


@dataclass(frozen=True, slots=True)
class SyncStats:
    """One place where the host waited for the device."""

    span: Span | None
    label: str
    phase: str
    count: int
    blocked_ns: int


@dataclass(frozen=True, slots=True)
class AcceptStats:
    """What SGLang itself counted: verify steps, their requests and accepted tokens."""

    steps: int
    requests: int
    tokens: int

    @property
    def length(self) -> float | None:
        """Tokens a request and step, with the bonus token: SGLang's accept length."""
        return self.tokens / self.requests if self.requests else None


@dataclass(frozen=True, slots=True)
class CycleStats:
    """The decode cycles (those with a verify pass) of one rank.

    ``median_ns`` is from the start of one to the start of the next where they follow each
    other; None where none do. ``requests`` is the mean batch.
    """

    count: int
    median_ns: int | None
    median_entry_ns: int
    requests: float


@dataclass(frozen=True, slots=True)
class Overhead:
    """The tracer's own cost, from windows in which it was armed and disarmed in turn.

    Fractions of the cycle time, medians over windows, each with its standard error. A window
    is compared with the mean of the ones before and after it: of the other kind for the cost,
    of its own kind for the A/A null. ``windows`` counts the comparisons of the cost.
    """

    windows: int
    cost: float
    cost_error: float
    null: float
    null_error: float


@dataclass(frozen=True, slots=True)
class RankRun:
    """What one rank did.

    ``finished`` says that it closed its log; ``salvaged``, of a killed one, that every record it
    made was saved from its memory. ``captures`` counts the graphs that were captured
    while it was recorded.
    ``lost`` counts records that the ring dropped, ``first_loss`` the cycle number up to which
    nothing was lost (None: nothing was). ``cut_bytes`` were behind the last whole record.
    ``cut_short`` says why it wrote no more while it went on, "" where it wrote all.
    ``wrapped`` counts the functions that were, ``missing`` are those that could not be, with
    why; ``faults`` are the agent's own. ``calls`` counts the calls of each by symbol id.
    ``gpu_memory_bytes`` and ``gpu_sm`` (the compute capability times ten) are None if unknown.
    """

    name: str
    tp_rank: int
    pp_rank: int
    dp_rank: int
    pid: int
    host: str
    ring: str
    gpu: str
    finished: bool
    records: int
    cycles: int
    first_ns: int
    last_ns: int
    phases: tuple[PhaseStats, ...]
    decode: CycleStats
    accept: AcceptStats
    syncs: tuple[SyncStats, ...] = ()
    captures: int = 0
    lost: int = 0
    first_loss: int | None = None
    cut_bytes: int = 0
    cut_short: str = ""
    wrapped: int = 0
    missing: tuple[tuple[str, str], ...] = ()
    faults: tuple[str, ...] = ()
    overhead: Overhead | None = None
    calls: Mapping[str, int] = field(default_factory=dict, hash=False)
    arguments: Mapping[str, Plain] = field(default_factory=dict, hash=False)
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    gpu_memory_bytes: int | None = None
    gpu_sm: int | None = None
    salvaged: bool = False


class RunProblem(StrEnum):
    """What a finding of a run is about, the worst first."""

    NO_CYCLE = "no-cycle"
    RANK_EAGER = "rank-eager"
    CONTRADICTION = "contradiction"
    RANK_MISSING = "rank-missing"
    PHASE_EAGER = "phase-eager"
    GRAPH_SIZE = "graph-size"
    SLOW_RANK = "slow-rank"
    LOSS = "records-lost"
    UNKNOWN_PATH = "unknown-path"
    UNWRAPPED = "not-wrapped"
    FAULT = "tracer-fault"


@dataclass(frozen=True, slots=True)
class RunFinding:
    """Something in a run that costs time or makes its figures doubtful.

    ``failing`` ones count for the exit code; the others explain.
    """

    problem: RunProblem
    message: str
    ranks: tuple[str, ...] = ()
    phase: str = ""
    cycle: int | None = None
    failing: bool = True


class Agreement(StrEnum):
    """What an observation says about a static verdict."""

    AGREE = "agree"
    CONTRADICT = "contradict"
    NOT_EXERCISED = "not exercised"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Joined:
    """One phase: what the source says beside what the ranks did."""

    worker: str
    phase: str
    expected: Verdict
    observed: Mapping[State, int] = field(hash=False)
    agreement: Agreement
    note: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a cycle yields and costs, from one rank.

    ``bound_tps`` is tokens a cycle over the cycle time. ``break_even`` is the accept length
    at which plain decoding (``baseline_tps``) is as fast. ``replayed_tps`` is the bound if
    the eager phases took their replayed time; ``replayed_sure`` is false where none was seen
    replaying, so that they were taken to cost nothing. ``verify_fixed_ns`` and
    ``verify_token_ns`` need two runs.
    """

    cycle_ns: int
    requests: float
    tokens_per_cycle: float
    bound_tps: float
    baseline_tps: float | None = None
    break_even: float | None = None
    replayed_tps: float | None = None
    replayed_sure: bool = True
    verify_fixed_ns: float | None = None
    verify_token_ns: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run: its ranks by number, and what they say together.

    ``release`` is that of the plan; ``command`` what was started, empty for one that was
    attached to. ``ranks_expected`` is how many ranks the launch asks for, None if unknown.
    ``damage`` names the files that could not be read as they should, and what that costs.
    """

    release: str | None
    command: tuple[str, ...]
    ranks: tuple[RankRun, ...]
    findings: tuple[RunFinding, ...]
    ranks_expected: int | None = None
    joined: tuple[Joined, ...] = ()
    budget: Budget | None = None
    notes: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()

    @property
    def failing(self) -> bool:
        """Whether something was found that counts for the exit code."""
        return any(finding.failing for finding in self.findings)
