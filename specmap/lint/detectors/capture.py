"""What is captured, per device, backend and forward mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from specmap.codemap.finding import Match, Step
from specmap.codemap.graph import CodeMap, Phase, Worker
from specmap.codemap.hazards import CapturedMode, CaptureEntry, EntryKind
from specmap.codemap.rule import Confidence, takes
from specmap.codemap.verdict import PhaseName, SinkKind
from specmap.lint.detectors.selecting import names, phases_of, place, strings


def foreign_runner(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A table by device gives one device the runner of another table, of another phase."""
    tables: dict[tuple[str, str], list[CaptureEntry]] = {}
    for entry in sorted(codemap.hazards.capture_entries, key=lambda e: e.span):
        if entry.kind is EntryKind.RUNNER:
            tables.setdefault((entry.holder, entry.table), []).append(entry)
    for (holder, table), entries in sorted(tables.items()):
        usual = Counter(e.target for e in entries)
        for (where, other), others in sorted(tables.items()):
            if where != holder or other == table:
                continue
            theirs = Counter(e.target for e in others)
            for entry in entries:
                shared, own = theirs[entry.target], usual[entry.target]
                # Where both have it alike, the table that was written first is right.
                later = entries[0].span > others[0].span
                if len(entries) > own and (shared > own or (shared == own and later)):
                    yield _foreign(entry, other, entries, codemap.platform)


def _foreign(entry: CaptureEntry, other: str, entries: list[CaptureEntry], platform: str) -> Match:
    rest = [e for e in entries if e.target != entry.target]
    expected = next((e for e in rest if e.key == platform), rest[0])
    return Match(
        span=entry.span,
        holder=entry.holder,
        anchor=f"{entry.table}[{entry.key}] {names([entry.target])}",
        message=f"{entry.table} gives {entry.key} {names([entry.target])}, the runner of {other}, "
        f"and {expected.key} gets {names([expected.target])}",
    )


def uncaptured_backend(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A backend is captured on one platform and not on another that it has code for."""
    groups: dict[tuple[str, str], list[CaptureEntry]] = {}
    for entry in codemap.hazards.capture_entries:
        if entry.kind is EntryKind.BACKEND:
            groups.setdefault((entry.holder, entry.subject), []).append(entry)
    for (holder, subject), entries in sorted(groups.items()):
        everywhere = {p for e in entries for p in e.platforms}
        for target in sorted({e.target for e in entries}):
            own = [e for e in entries if e.target == target]
            admitted = {p for e in own for p in e.platforms}
            missing = sorted((set(own[0].runs_on) & everywhere) - admitted)
            for platform in missing:
                yield Match(
                    span=own[0].span,
                    holder=holder,
                    anchor=f"{names([target])} {subject} {platform}",
                    message=f"{names([target])} is captured on {', '.join(sorted(admitted))} and "
                    f"not on {platform}, for which it has code: there the phase stays eager",
                )
    yield from _siblings(groups)


def _siblings(groups: dict[tuple[str, str], list[CaptureEntry]]) -> Iterator[Match]:
    """The same list in two workers, one without a backend that the other has."""
    by_subject: dict[str, list[tuple[str, list[CaptureEntry]]]] = {}
    for (holder, subject), entries in groups.items():
        by_subject.setdefault(subject, []).append((holder, entries))
    for lists in by_subject.values():
        for holder, entries in lists:
            for where, others in lists:
                if where.partition(".")[0] == holder.partition(".")[0]:
                    continue
                known = {(e.target, p) for e in entries for p in e.platforms}
                for other in others:
                    lacks = [p for p in other.platforms if (other.target, p) not in known]
                    if lacks and any(p in e.platforms for e in entries for p in lacks):
                        yield _sibling(holder, entries[0], other, lacks)


def _sibling(holder: str, first: CaptureEntry, other: CaptureEntry, lacks: Iterable[str]) -> Match:
    return Match(
        span=first.span,
        holder=holder,
        anchor=f"{names([other.target])} {other.subject} {' '.join(lacks)}",
        message=f"{names([other.target])} is not captured here on {', '.join(lacks)}, and "
        f"{place(other.span)} captures it for the same phase of another worker",
        related=(Step(other.span, "captured there"),),
        confidence=Confidence.MEDIUM,
    )


@takes(verify=list, decode=list)
def uncaptured_mode(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A phase runs in a mode that the runner which replays it does not capture."""
    verify, decode = (set(strings(parameters, name)) for name in ("verify", "decode"))
    found: dict[_Uncaptured, list[tuple[Worker, Phase]]] = {}
    for worker, phase in phases_of(codemap):
        modes = set(phase.forward_modes)
        stored = _captured(codemap, phase)
        captured = {entry.mode for entry in stored}
        # Another runner may replay the phase too: each has to capture what it is given.
        by_runner = {e.runner: tuple(o for o in stored if o.runner == e.runner) for e in stored}
        strange = [own for own in by_runner.values() if not modes & {entry.mode for entry in own}]
        if modes and strange:
            for own in strange:
                key = _Uncaptured(tuple(sorted(modes)), own, Confidence.MEDIUM)
                found.setdefault(key, []).append((worker, phase))
        # A runner stores the mode of plain decoding first, and replaces it where it verifies.
        elif phase.role == "target" and modes & verify & captured:
            plain = (modes | set(phase.stand_in_modes)) & decode
            verified = [entry for entry in stored if entry.mode in verify]
            if plain and not _has_another_runner(codemap, verified, plain):
                key = _Uncaptured(tuple(sorted(plain)), tuple(verified), Confidence.LOW)
                found.setdefault(key, []).append((worker, phase))
    for key, those in found.items():
        by_place: dict[str, list[tuple[Worker, Phase]]] = {}
        for worker, phase in those:
            by_place.setdefault(phase.holder, []).append((worker, phase))
        # One runner that captures another mode is one fault; plain decoding is each worker's own.
        alike = [those] if key.confidence is Confidence.MEDIUM else by_place.values()
        yield from (_uncaptured(key, group) for group in alike)


@dataclass(frozen=True, slots=True)
class _Uncaptured:
    modes: tuple[str, ...]
    stored: tuple[CapturedMode, ...]
    confidence: Confidence


def _captured(codemap: CodeMap, phase: Phase) -> list[CapturedMode]:
    """The modes that the runners of a phase store as the captured one."""
    lines = {c.id: {c.id, *c.mro} for c in codemap.classes}
    used = {
        h.rpartition(".")[0] for a in phase.arms for h, _ in a.chain if a.kind is SinkKind.GRAPH
    }
    modes = codemap.hazards.captured_modes
    own = [c for c in modes if c.runner in used]
    return own or [c for c in modes if lines.get(c.runner, set()) & used]


def _has_another_runner(codemap: CodeMap, verified: list[CapturedMode], plain: set[str]) -> bool:
    """Tell whether a runner for plain decoding is kept beside the one that verifies."""
    verifying = {entry.runner for entry in verified}
    decoding = {c.runner for c in codemap.hazards.captured_modes if c.mode in plain}
    kept: dict[str, list[set[str]]] = {}
    for attribute in codemap.attributes:
        held = {kind for stored in attribute.assignments for kind in stored.types if kind}
        kept.setdefault(attribute.name.rpartition(".")[0], []).append(held)
    return any(
        one & verifying and any(other & decoding for other in held if other is not one)
        for held in kept.values()
        for one in held
    )


def _uncaptured(what: _Uncaptured, where: list[tuple[Worker, Phase]]) -> Match:
    phase = where[0][1]
    modes = ", ".join(what.modes)
    captured = ", ".join(sorted({entry.mode for entry in what.stored}))
    places = {p.holder: p.span for _, p in where}
    first = what.stored[0]
    # Where several functions run the mode, the runner is what differs.
    shared = len(places) > 1
    here = f"for {captured} only, and the {phase.role} runs in {modes}"
    there = (
        f"the {phase.role} runs in {modes} here, and its graphs are captured for {captured} only"
    )
    return Match(
        span=first.span if shared else phase.span,
        holder=first.holder if shared else phase.holder,
        anchor=f"{phase.role} {' '.join(what.modes)}",
        message=f"{f'graphs are captured here {here}' if shared else there}: those passes have no "
        "graph",
        phases=tuple(p for p in PhaseName if p in {phase.name for _, phase in where}),
        workers=tuple(sorted({worker.id for worker, _ in where})),
        related=(
            *(Step(entry.span, f"captures {entry.mode}") for entry in what.stored if not shared),
            *(Step(span, f"runs in {modes}") for span in places.values() if shared),
        ),
        confidence=what.confidence,
    )
