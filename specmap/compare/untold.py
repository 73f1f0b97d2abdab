"""Why nobody can tell any more whether a phase replays its graph: what the map lost track of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from specmap.codemap.condition import Atom, AtomKind, any_of, atoms_of, evaluate, simplify
from specmap.codemap.graph import Arm, CallEdge, CodeMap, EdgeStatus, Phase
from specmap.codemap.source import Span, qualname_of
from specmap.codemap.verdict import MAY_REPLAY, SinkKind
from specmap.compare.matching import renamed
from specmap.compare.renames import Renames

# A call of what this returns may go anywhere.
_LOOKED_UP = "getattr"


@dataclass(frozen=True, slots=True)
class Untold:
    """A place of the new tree behind which the map cannot see."""

    span: Span
    text: str


def untold(
    was: Phase, now: Phase, maps: tuple[CodeMap, CodeMap], renames: Renames
) -> tuple[Untold, ...]:
    """Return what hides the ways that a phase had and seems to have no more; () if they are gone.

    ``maps`` are those of the base and of the change.
    """
    ways = told(was), told(now)
    found = {*_new_tests(*ways, renames), *_lost_calls(*ways, maps, renames)}
    return tuple(sorted(found or {*_doubts(now)}, key=lambda u: (u.span, u.text)))


def told(phase: Phase) -> Phase:
    """Return a phase without the ways of which nobody can tell whether they replay a graph."""
    arms = tuple(arm for arm in phase.arms if not any(map(_is_doubt, atoms_of(arm.condition))))
    return phase if len(arms) == len(phase.arms) else replace(phase, arms=arms)


def _doubts(phase: Phase) -> Iterator[Untold]:
    for arm in phase.arms:
        for atom in filter(_is_doubt, atoms_of(arm.condition)):
            if atom.span is not None:
                yield Untold(atom.span, atom.text.removesuffix(f" {MAY_REPLAY}"))


def _is_doubt(atom: Atom) -> bool:
    return atom.kind is AtomKind.UNKNOWN and atom.text.endswith(f" {MAY_REPLAY}")


def _new_tests(was: Phase, now: Phase, renames: Renames) -> Iterator[Untold]:
    """Yield what the ways that are left test and those of the base did not.

    Nothing where they cover every pass: then none goes where the map does not see.
    """
    if evaluate(simplify(any_of(*(arm.condition for arm in now.arms))), {}) is True:
        return
    words = renames.everything
    known = {renamed(a.text, words) for arm in was.arms for a in atoms_of(arm.condition)}
    for arm in now.arms:
        for atom in atoms_of(arm.condition):
            if atom.text not in known and atom.span is not None:
                yield Untold(atom.span, atom.text)


def _lost_calls(
    was: Phase, now: Phase, maps: tuple[CodeMap, CodeMap], renames: Renames
) -> Iterator[Untold]:
    """Yield calls that lead nowhere at the place where the way to a phase breaks off.

    They led to it in the base, by whatever they are called on, or are new.
    """
    old, new = maps
    graphs = [arm for arm in was.arms if arm.kind is SinkKind.GRAPH]
    sites = {site for arm in graphs or was.arms for site in arm.chain}
    led = {
        _called(_said(edge, renames))
        for edge in old.edges
        if edge.callees and (edge.caller, edge.span.line) in sites
    }
    before = {_said(edge, renames) for edge in old.edges}
    known = {site for arm in now.arms for site in arm.chain}
    ends = set().union(*(_broken_off(arm, maps, renames) for arm in graphs or was.arms))
    for edge in new.edges:
        said = (qualname_of(edge.caller), edge.text)
        if edge.callees or said[0] not in ends or (edge.caller, edge.span.line) in known:
            continue
        blind = edge.status is EdgeStatus.UNRESOLVED or edge.text == _LOOKED_UP
        if _called(said) in led or (blind and said not in before):
            yield Untold(edge.span, edge.text)


def _broken_off(arm: Arm, maps: tuple[CodeMap, CodeMap], renames: Renames) -> set[str]:
    """Return the function where an old way breaks off in the new map, and new ones it calls."""
    old, new = maps
    known = {renames.qualname(qualname_of(function.id)) for function in old.functions}
    calls: dict[str, set[str]] = {}
    for edge in new.edges:
        called = calls.setdefault(qualname_of(edge.caller), set())
        called.update(map(qualname_of, edge.callees))
    way = [renames.qualname(qualname_of(holder)) for holder, _ in arm.chain]
    end = next((one for one, other in pairwise(way) if other not in calls.get(one, ())), way[-1])
    found, waiting = {end}, [end]
    while waiting:
        come = calls.get(waiting.pop(), set()) - known - found
        found |= come
        waiting += come
    return found


def _said(edge: CallEdge, renames: Renames) -> tuple[str, str]:
    """The caller and the call, as the new tree names them."""
    return renames.qualname(qualname_of(edge.caller)), renamed(edge.text, renames.everything)


def _called(said: tuple[str, str]) -> tuple[str, str]:
    """The caller and the name that is called, on whatever it is called."""
    return said[0], said[1].rpartition(".")[2]
