"""How each phase of a worker ends under one launch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from specmap.codemap.condition import Atom, Condition, any_of, atoms_of
from specmap.codemap.graph import Phase
from specmap.codemap.outcome import BatchRange, PhaseOutcome, TermSource, TermValue
from specmap.codemap.source import file_of, qualname_of
from specmap.codemap.verdict import SinkKind, Verdict
from specmap.verdicts import sizetests
from specmap.verdicts.settling import deciding, ended, open_atoms, residual, settled
from specmap.verdicts.sizes import Sizes
from specmap.verdicts.truths import Truths

_RANKS = {
    TermSource.LAUNCH: 0,
    TermSource.STATED: 1,
    TermSource.SIZE: 2,
    TermSource.ASSUMED: 3,
    TermSource.UNKNOWN: 4,
}
# A listing of open tests stops here; the map has them all.
_SHOWN = 12


class Judge:
    """Judges phases under one launch. ``top`` is the largest batch that can run, if known."""

    def __init__(self, truths: Truths, sizes: Sizes, top: int | None) -> None:
        self.truths = truths
        self.sizes = sizes
        self.top = top

    def phase(self, phase: Phase, tests: Collection[str] = ()) -> PhaseOutcome:
        """Return the outcome of a phase; its tests are then answered as for this phase.

        ``tests`` are the worker's own: a number that one asks for is one that its code knows.
        """
        self.truths.phase = phase.name
        made = PhaseOutcome(
            name=phase.name,
            role=phase.role,
            verdict=Verdict.UNKNOWN,
            holder=phase.holder,
            span=phase.span,
            could_replay=any(arm.kind is not SinkKind.EAGER for arm in phase.arms),
            note=phase.note or _without_graph(phase),
        )
        if not phase.arms:
            return replace(made, verdict=phase.verdict or Verdict.UNKNOWN)
        few = self.truths.evaluator.uncounted
        if few is not None and not any(f"{few[0]} == {few[1]}" in test for test in tests):
            name, value, least = few
            text, need = f"a server with {name} = {value}", f"{name} of {least} or more"
            term = TermValue(text, None, None, TermSource.UNKNOWN, reasons=(need,))
            unknown = (BatchRange(1, None, Verdict.UNKNOWN),)
            return replace(made, ranges=unknown, open_terms=(term,))
        ends = {kind: _condition(phase, kind) for kind in SinkKind}
        left = {kind: self._left(term) for kind, term in ends.items()}
        ranges = self._ranges(left)
        size = self.truths.batch.size or 1
        verdict = _at(ranges, size)
        return replace(
            made,
            verdict=verdict,
            ranges=ranges,
            deciding=self._deciding(ends, verdict, size),
            open_terms=self._open(left, size) if verdict is Verdict.UNKNOWN else (),
        )

    def holds(self, term: Condition) -> bool | None:
        """Return whether a condition over the launch alone holds."""
        self.truths.phase = ""
        return settled(residual(term, self._launch))

    def open_terms(self, term: Condition) -> tuple[TermValue, ...]:
        """Return the tests that would settle a condition over the launch alone."""
        self.truths.phase = ""
        left = residual(term, self._launch)
        return tuple(self.truths.value(atom) for atom in open_atoms(left))[:_SHOWN]

    def _launch(self, atom: Atom) -> bool | None:
        return self.truths.value(atom).value

    def _left(self, term: Condition) -> Condition:
        """Return what the launch leaves of a condition, and note which assumptions it takes."""

        def sure(atom: Atom) -> bool | None:
            found = self.truths.value(atom)
            return None if found.source is TermSource.ASSUMED else found.value

        left = residual(term, sure)
        self.truths.used.update(self.truths.key(atom) for atom in open_atoms(left))
        return residual(left, self._launch)

    def value(self, atom: Atom, size: int) -> TermValue:
        """Return the value of a test at a batch size."""
        found = self.truths.value(atom)
        how = self.truths.size_test(atom)
        if how is None or found.source is not TermSource.SIZE:
            return found
        held = self.sizes.holds(how, size)
        note = self.sizes.numbers(how, size)
        return replace(found, value=held, note=note, reasons=self.sizes.reasons)

    # Batch sizes

    def _ranges(self, left: dict[SinkKind, Condition]) -> tuple[BatchRange, ...]:
        how = {
            atom.text: test
            for term in left.values()
            for atom in atoms_of(term)
            if (test := self.truths.size_test(atom)) is not None
            and self.truths.value(atom).source is TermSource.SIZE
        }
        found: list[BatchRange] = []
        seen: dict[tuple[bool | None, ...], Verdict] = {}
        above = self.top is not None and (self.truths.batch.size or 1) > self.top
        last = None if above else self.top
        steps = self.sizes.steps(last, how.values(), self.truths.batch.size or 1) if how else (1,)
        for size in steps:
            answers = tuple(self.sizes.holds(kind, size) for kind in how.values())
            if answers not in seen:
                seen[answers] = self._verdict(left, size)
            verdict = seen[answers]
            if found and found[-1].verdict is verdict:
                continue
            if found:
                found[-1] = replace(found[-1], last=size - 1)
            found.append(BatchRange(size, None, verdict))
        if last is None and any(map(sizetests.repeats, how.values())):
            last = steps[-1]
            found.append(BatchRange(last + 1, None, Verdict.UNKNOWN))
            return (*found[:-2], replace(found[-2], last=last), found[-1])
        return (*found[:-1], replace(found[-1], last=last)) if found else ()

    def _verdict(self, left: dict[SinkKind, Condition], size: int) -> Verdict:
        def value(atom: Atom) -> bool | None:
            return self.value(atom, size).value

        ends = {kind: settled(residual(term, value)) for kind, term in left.items()}
        return ended(ends[SinkKind.GRAPH], ends[SinkKind.PIECEWISE], ends[SinkKind.EAGER])

    # Why

    def _deciding(
        self, ends: dict[SinkKind, Condition], verdict: Verdict, size: int
    ) -> tuple[TermValue, ...]:
        kind = SinkKind.PIECEWISE if verdict is Verdict.PIECEWISE else SinkKind.GRAPH
        replays = any_of(ends[SinkKind.GRAPH], ends[SinkKind.PIECEWISE])
        term = ends[kind] if verdict in (Verdict.GRAPH, Verdict.PIECEWISE) else replays

        def value(atom: Atom) -> bool | None:
            return self.value(atom, size).value

        def rank(atom: Atom) -> int:
            return _RANKS[self.value(atom, size).source]

        atoms = deciding(term, value, rank)
        found = [self.value(atom, size) for atom in atoms]
        if verdict in (Verdict.GRAPH, Verdict.PIECEWISE):
            sized = [term for term in found if term.source is TermSource.SIZE]
            return tuple(sized or found)
        return tuple(found)

    def _open(self, left: dict[SinkKind, Condition], size: int) -> tuple[TermValue, ...]:
        def value(atom: Atom) -> bool | None:
            return self.value(atom, size).value

        graph = residual(left[SinkKind.GRAPH], value)
        piecewise = residual(left[SinkKind.PIECEWISE], value)
        eager = residual(left[SinkKind.EAGER], value)
        terms = [t for t in (graph, piecewise) if settled(t) is None] or [eager]
        atoms = dict.fromkeys(atom for term in terms for atom in open_atoms(term))
        return tuple(self.value(atom, size) for atom in atoms)[:_SHOWN]


def _condition(phase: Phase, kind: SinkKind) -> Condition:
    return any_of(*(arm.condition for arm in phase.arms if arm.kind is kind))


def _without_graph(phase: Phase) -> str:
    """Say where a phase ends whose arms are all eager, "" for any other."""
    if any(arm.kind is not SinkKind.EAGER for arm in phase.arms):
        return ""
    ends = dict.fromkeys(arm.chain[-1] for arm in phase.arms if arm.chain)
    places = [f"{qualname_of(name)} ({file_of(name)}:{line})" for name, line in ends]
    return f"no way to a graph: ends eager in {', '.join(places)}" if places else ""


def _at(ranges: tuple[BatchRange, ...], size: int) -> Verdict:
    for part in ranges:
        if part.first <= size and (part.last is None or size <= part.last):
            return part.verdict
    return ranges[-1].verdict if ranges else Verdict.UNKNOWN
