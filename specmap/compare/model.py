"""What two maps differ in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName


class Change(StrEnum):
    """What happened to a thing between the old map and the new one."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class WorkerChange:
    """A worker that came, went, or has another name (``was``); ``span`` is in its map."""

    change: Change
    name: str
    span: Span
    was: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a phase that lost its graph leaves its old way: a call, in ``caller``, of ``callee``.

    ``new``: the function that is called was not there before.
    """

    caller: str
    callee: str
    span: Span
    new: bool


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """A phase that can end in other ways than before, of the workers named.

    ``before`` and ``after`` hold ``graph``, ``piecewise``, ``eager`` or ``not run``, and ``after``
    holds ``unknown`` where the map lost track of the phase: then nothing is known to be lost.
    ``turns`` says where one that lost its graph goes another way.
    """

    phase: PhaseName
    workers: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    span: Span
    turns: tuple[Turn, ...] = ()

    @property
    def gained(self) -> tuple[str, ...]:
        """The kinds of graph that are new."""
        return tuple(way for way in self.after if way in _GRAPHS and way not in self.before)

    @property
    def lost(self) -> tuple[str, ...]:
        """The kinds of graph that are gone."""
        if UNKNOWN in self.after:
            return ()
        return tuple(way for way in self.before if way in _GRAPHS and way not in self.after)


_GRAPHS = ("graph", "piecewise")
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TermChange:
    """A test that a decision gained, lost, or writes otherwise than before (``was``).

    ``span`` is in the old map for what was lost. ``error`` is the place of the new map
    that now raises where the lost test fell back to eager.
    """

    change: Change
    text: str
    span: Span
    was: str = ""
    error: Span | None = None


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """A graph decision that is new, gone, or tests other things than before.

    ``holder`` is the dotted name of its function, ``was`` what that was called; ``kind``
    is the map's. ``workers`` are those that both maps have.
    """

    change: Change
    kind: str
    holder: str
    was: str
    span: Span
    phases: tuple[PhaseName, ...]
    workers: tuple[str, ...]
    terms: tuple[TermChange, ...]


@dataclass(frozen=True, slots=True)
class TypesChange:
    """Backends for which a phase is captured, of the workers named: ``Name (platforms)``."""

    phase: PhaseName
    workers: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SyncChange:
    """A host synchronisation that came or went; the fields are those of the map's record.

    ``with_worker``: only workers reach it that came or went themselves, or it stands in a folder
    that only they have.
    """

    change: Change
    operation: str
    holder: str
    label: str
    kind: str
    between: str
    captured: bool
    workers: tuple[str, ...]
    span: Span
    with_worker: bool = False


@dataclass(frozen=True, slots=True)
class NameChange:
    """Something that has another name.

    ``kind`` is ``file`` (``now`` holds most of what was in it), ``method`` (on the way to a
    replay, of the classes named), ``class``, ``function`` or ``name``.
    """

    kind: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class MapDiff:
    """Everything that changed, each list from the most to the least important."""

    old: str
    new: str
    workers: tuple[WorkerChange, ...]
    phases: tuple[PhaseChange, ...]
    decisions: tuple[DecisionChange, ...]
    types: tuple[TypesChange, ...]
    syncs: tuple[SyncChange, ...]
    names: tuple[NameChange, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        lists = (self.workers, self.phases, self.decisions, self.types, self.syncs, self.names)
        return not any(lists)
