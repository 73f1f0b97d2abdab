"""Why a place behaves as it does: the way there, its guards, its tests and their values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from specmap.codemap.condition import Atom
from specmap.codemap.graph import Guard
from specmap.codemap.launch import Plain
from specmap.codemap.outcome import Outcome, TermValue
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict


@dataclass(frozen=True, slots=True)
class Hop:
    """One call on the way: the caller, the line of the call, and the guards on its way."""

    symbol: str
    span: Span
    text: str
    guards: tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class Need:
    """A test of a graph condition, and the value that replay needs (None: it depends)."""

    term: TermValue
    wanted: bool | None


class Joined(StrEnum):
    """How the parts of a clause are joined; ``test`` is a clause without parts."""

    TEST = "test"
    ALL = "all"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Clause:
    """One test of a graph condition (``need``), or several, joined as the source joins them.

    ``holds`` is None where that is not known. ``matters`` is False where the launch settles
    the condition without this clause, whatever is assumed about it.
    """

    joined: Joined
    holds: bool | None
    need: Need | None
    parts: tuple[Clause, ...] = ()
    matters: bool = True


@dataclass(frozen=True, slots=True)
class Route:
    """One way from the scheduler to a sink."""

    kind: SinkKind
    hops: tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One change of a launch: ``new`` replaces ``old``; ``removed`` takes the argument away.

    ``argument`` is the change as a launch spells it (``--cuda-graph-max-bs 8``), "" where it has
    no argument of its own.
    """

    name: str
    old: Plain
    new: Plain
    removed: bool = False
    argument: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A small set of changes that gives a phase another verdict."""

    changes: tuple[SettingChange, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class PhaseReason:
    """Why one phase of one worker ends as it does.

    ``needs`` has each test of the graph condition once, ``replays`` the condition itself.
    """

    worker: str
    phase: PhaseName
    verdict: Verdict | None
    routes: tuple[Route, ...]
    needs: tuple[Need, ...]
    alternatives: tuple[Alternative, ...] = ()
    selected_at: Span | None = None
    selected_when: str = ""
    note: str = ""
    replays: Clause | None = None


@dataclass(frozen=True, slots=True)
class Likely:
    """A line that may have been meant, here or in another release."""

    release: str | None
    span: Span
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class PlaceTest:
    """A test on a line that decides how a phase of a worker (its id) ends.

    ``value`` is what a launch makes of it, None without one.
    """

    worker: str
    phase: PhaseName
    atom: Atom
    value: TermValue | None = None


@dataclass(frozen=True, slots=True)
class PlaceReason:
    """What stands at a place in the source.

    ``facts`` says what the graph flags on it are, ``passes`` which phases run through it, and
    ``tests`` which it decides; under a launch only those of workers that run. A whole file, or a
    flag that is set in many places, has no ``span``.
    """

    symbol: str
    span: Span | None
    source: str
    facts: tuple[str, ...]
    guards: tuple[Guard, ...]
    passes: tuple[str, ...]
    likely: tuple[Likely, ...] = ()
    tests: tuple[PlaceTest, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to ``why``: phases, or a place; ``outcome`` where a launch was given."""

    target: str
    place: str
    phases: tuple[PhaseReason, ...]
    found: PlaceReason | None
    outcome: Outcome | None
