"""The code map: what the source (and later the server) says about every worker.

Every record is frozen and carries its evidence: a span in the source and the rules that
were needed. Symbols are ids made by :func:`specmap.codemap.source.symbol_id`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from specmap.codemap.condition import Condition
from specmap.codemap.hazards import Hazards
from specmap.codemap.source import SourceFile, Span
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict

SCHEMA_VERSION = "1.0"
_SHOWN_PROBLEMS = 5


class EdgeStatus(StrEnum):
    """How far a call site was resolved.

    ``static`` every callee is known; ``external`` it leaves SGLang (torch, the standard
    library, a tensor); ``boundary`` the callee is known and on purpose not followed;
    ``unresolved`` nobody could tell, ``CallEdge.reason`` says why.
    """

    STATIC = "static"
    EXTERNAL = "external"
    BOUNDARY = "boundary"
    UNRESOLVED = "unresolved"


class FlagStatus(StrEnum):
    """What happens to a graph flag at one place."""

    CONSTANT = "constant"
    COMPUTED = "computed"
    PROPAGATED = "propagated"
    DROPPED = "dropped"


class SyncKind(StrEnum):
    """How an operation makes the host wait for the device.

    ``explicit`` the source asks for it (``.item()``, ``synchronize()``); ``implicit`` the
    operation hides it (mask index, tensor-sized allocation, truth test, ``unique``);
    ``none`` it looks like one but works on a CPU tensor.
    """

    EXPLICIT = "explicit"
    IMPLICIT = "implicit"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Guard:
    """One branch test on the way to a place; ``branch`` says which arm leads there.

    ``encloses`` is false where the place only stands after the test's early return.
    """

    text: str
    span: Span
    branch: bool
    holder: str
    encloses: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method that the map reaches."""

    id: str
    qualname: str
    span: Span
    is_property: bool = False
    returns: tuple[str, ...] = ()
    return_type: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """A class on the cycle. ``mro`` lists SGLang's own classes, most derived first."""

    id: str
    name: str
    span: Span
    bases: tuple[str, ...]
    mro: tuple[str, ...] = field()  # a bare `mro` would take type.mro as its default
    methods: tuple[tuple[str, int], ...]
    overrides: tuple[str, ...]
    abstract: bool = False
    getattr_delegates_line: int | None = None


@dataclass(frozen=True, slots=True)
class CallEdge:
    """A call site and what it can call.

    ``rules`` names what was needed to resolve it (annotation, constructor argument, ...);
    ``guards`` are the tests inside the caller, outermost first; ``also_unknown`` lists
    callees that exist only outside the tree (plugins, out-of-tree platforms).
    """

    caller: str
    span: Span
    text: str
    callees: tuple[str, ...]
    status: EdgeStatus
    guards: tuple[Guard, ...] = ()
    rules: tuple[str, ...] = ()
    phases: tuple[PhaseName, ...] = ()
    forward_modes: tuple[str, ...] = ()
    also_unknown: tuple[str, ...] = ()
    rejects: tuple[tuple[str, str], ...] = ()
    self_types: tuple[str, ...] = ()
    comment: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """One conjunct of a decision. ``graph_when`` is the value that lets the graph replay."""

    text: str
    span: Span
    graph_when: bool
    conjunct_of: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """A place where graph or eager is chosen.

    ``kind``: ``can_run`` the body of a runner's test; ``route`` an expression that picks
    a runner or the eager path; ``capture`` a test that says whether (or in which forward
    mode) a graph is captured at all.
    """

    id: str
    kind: str
    holder: str
    span: Span
    text: str
    terms: tuple[Term, ...]
    phases: tuple[PhaseName, ...] = ()
    workers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a pass ends: a graph replay or an eager model forward."""

    id: str
    kind: SinkKind
    holder: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Arm:
    """One way for a phase to end, with the condition under which it is taken.

    ``chain`` holds ``(symbol, line of the call inside it)`` from the worker's entry to the
    sink; the last pair is the sink's own holder and line.
    """

    sink: str
    kind: SinkKind
    condition: Condition
    chain: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class StaticShape:
    """Why the number of verify tokens is fixed at launch, and what fixes it."""

    fixed: bool
    tokens_per_request: str
    span: Span | None
    note: str


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of one worker.

    ``graph_when`` is the simplified condition of graph replay. ``verdict`` is set when
    that condition is a constant (or the phase does not run); ``None`` means that it
    depends on the launch arguments or the batch. ``stand_in_modes``: forward modes of passes
    that take the phase's place in some cycles; they are no part of it.
    """

    name: PhaseName
    role: str
    forward_modes: tuple[str, ...]
    span: Span
    holder: str
    arms: tuple[Arm, ...]
    graph_when: Condition
    verdict: Verdict | None
    decisions: tuple[str, ...] = ()
    static_shape: StaticShape | None = None
    note: str = ""
    stand_in_modes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """The method that the scheduler calls on a worker."""

    name: str
    holder: str
    span: Span


@dataclass(frozen=True, slots=True)
class Worker:
    """A class that drives speculative decoding, found by what the scheduler builds."""

    id: str
    name: str
    span: Span
    mro: tuple[str, ...] = field()  # a bare `mro` would take type.mro as its default
    entry: Entry | None
    selected_when: Condition
    selected_at: Span | None
    phases: tuple[Phase, ...] = ()
    reachable: bool = True
    note: str = ""
    owns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flag:
    """A graph flag at one place: made constant, computed, handed on or dropped.

    ``decides`` tells a flag that chooses a path from one that is only reported.
    ``tuple_position`` counts from 0 where old releases hand the flag on inside a tuple.
    ``source_chain`` lists the lines that the value came through, newest first;
    ``result_line`` and ``result_source_line`` say which flag the caller gets instead of a
    dropped one.
    """

    name: str
    span: Span
    holder: str
    status: FlagStatus
    phase: str
    decides: bool
    value: bool | None = None
    text: str = ""
    guards: tuple[Guard, ...] = ()
    source_line: int | None = None
    source_chain: tuple[int, ...] = ()
    result_line: int | None = None
    result_source_line: int | None = None
    tuple_position: int | None = None
    workers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostSync:
    """An operation on the cycle that makes, or only seems to make, the host wait.

    ``phase_between`` reads ``verify->draft_extend``: the pass before and the pass after.
    ``captured`` says that a graph runner captures this code. ``label``: ``removable``,
    ``unavoidable``, ``grammar``, ``logprob``, ``sampling``, ``debug``, ``cpu-tensor``.
    """

    span: Span
    holder: str
    kind: SyncKind
    operation: str
    device: str
    label: str
    rule: str
    phase_between: str
    captured: bool
    where: str
    guards: tuple[Guard, ...] = ()
    consumer: str = ""
    workers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """One store to an attribute. ``types`` are class ids, ``None`` for Python's None."""

    span: Span
    holder: str
    value: str
    types: tuple[str | None, ...]
    guards: tuple[Guard, ...] = ()
    from_outside: bool = False
    created: tuple[Span, ...] = ()
    restored_line: int | None = None
    context_manager: bool = False
    also_unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute that holds a worker or a graph runner, with all its stores."""

    name: str
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class Factory:
    """A function that returns a worker class; ``arms`` are ``(class id, condition)``."""

    function: str
    span: Span
    arms: tuple[tuple[str, Condition], ...]
    instantiated_at: Span | None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedCode:
    """A function that runs both inside a captured region and eager."""

    function: str
    captured_from: Span
    eager_from: Span


@dataclass(frozen=True, slots=True)
class DoubleDecision:
    """One pass whose graph decision is taken at two places."""

    worker: str
    phase: PhaseName
    first: Span
    second: Span
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read; the map is partial where ``partial`` is set."""

    file: str
    line: int | None
    message: str
    partial: bool = True


@dataclass(frozen=True, slots=True)
class CodeMap:
    """Everything that one scan found, in a stable order."""

    target: str
    release: str | None
    commit: str | None
    platform: str
    workers: tuple[Worker, ...]
    classes: tuple[ClassRecord, ...]
    functions: tuple[Function, ...]
    edges: tuple[CallEdge, ...]
    decisions: tuple[Decision, ...]
    sinks: tuple[Sink, ...]
    flags: tuple[Flag, ...]
    syncs: tuple[HostSync, ...]
    attributes: tuple[Attribute, ...]
    factories: tuple[Factory, ...]
    shared: tuple[SharedCode, ...]
    doubles: tuple[DoubleDecision, ...]
    hazards: Hazards = field(default_factory=Hazards)
    problems: tuple[Problem, ...] = ()
    files: tuple[SourceFile, ...] = ()
    schema: str = field(default=SCHEMA_VERSION)

    @property
    def partial(self) -> bool:
        """Whether some module could not be read."""
        return any(problem.partial for problem in self.problems)

    @property
    def unread(self) -> str:
        """Which modules are missing from a partial map, "" for a whole one."""
        missing = [problem for problem in self.problems if problem.partial]
        named = [
            f"{p.file}:{p.line} ({p.message})" if p.line is not None else f"{p.file} ({p.message})"
            for p in missing[:_SHOWN_PROBLEMS]
        ]
        more = len(missing) - len(named)
        rest = f" and {more} more" if more else ""
        return f"the map is partial, not read: {', '.join(named)}{rest}" if missing else ""
