"""Which phases a runner serves, which backends it is captured for, what its methods are called."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from specmap.codemap.graph import CodeMap, Decision, Worker
from specmap.codemap.hazards import CaptureEntry, EntryKind
from specmap.codemap.source import Span, file_of, qualname_of
from specmap.codemap.verdict import PhaseName, SinkKind
from specmap.compare.model import DecisionChange, NameChange, TypesChange
from specmap.compare.renames import Renames

_DECISION = 100

_Backends = dict[tuple[PhaseName, str], dict[str, set[str]]]


class ServedPhases:
    """The phases that end in a replay of a runner, by the runner's class."""

    def __init__(self, codemap: CodeMap) -> None:
        lines = {record.id: record.mro for record in codemap.classes}
        deciders = {d.holder.rpartition(".")[0] for d in codemap.decisions if d.kind == "can_run"}
        self._lines = lines
        self._by_class: dict[str, set[PhaseName]] = defaultdict(set)
        for phase, holder in _on_replays(codemap):
            cls = holder.rpartition(".")[0]
            own = next((c for c in (cls, *lines.get(cls, ())) if c in deciders), "")
            self._by_class[own].add(phase)

    def of(self, decision: Decision) -> frozenset[PhaseName]:
        """Return the phases of a runner's own test; those of the map where no replay tells.

        A runner that replays nothing here serves what the class serves that it derives from.
        """
        cls = decision.holder.rpartition(".")[0]
        line = (cls, *self._lines.get(cls, ()))
        served = next((self._by_class[c] for c in line if c in self._by_class), set())
        known = served & set(decision.phases) if decision.kind == "can_run" else set()
        return frozenset(known or decision.phases)


def _on_replays(codemap: CodeMap) -> Iterator[tuple[PhaseName, str]]:
    """Yield the functions on the way to a replay, with the phase."""
    for worker in codemap.workers:
        for phase in worker.phases:
            for arm in phase.arms:
                if arm.kind is not SinkKind.EAGER:
                    yield from ((phase.name, holder) for holder, _ in arm.chain)


def backend_changes(
    old: CodeMap, new: CodeMap, workers: Sequence[tuple[Worker, Worker]], renames: Renames
) -> Iterator[TypesChange]:
    """Compare the attention backends that workers admit to capture, with their platforms."""
    before = _backends(old, {was.id: now.name for was, now in workers}, renames.classes)
    after = _backends(new, {now.id: now.name for _, now in workers}, {})
    found: dict[tuple[PhaseName, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for key in sorted(before.keys() & after.keys()):
        added = tuple(_more(after[key], before[key]))
        removed = tuple(_more(before[key], after[key]))
        if added or removed:
            found[key[0], added, removed].append(key[1])
    spans = {worker.name: worker.span for worker in new.workers}
    for (phase, added, removed), names in sorted(found.items()):
        yield TypesChange(phase, tuple(names), added, removed, _first(spans, names))


def _first(spans: Mapping[str, Span], names: Sequence[str]) -> Span:
    return min(spans[name] for name in names)


def _more(those: Mapping[str, set[str]], than: Mapping[str, set[str]]) -> Iterator[str]:
    for name, platforms in sorted(those.items()):
        rest = platforms - than.get(name, set())
        if rest:
            yield f"{name} ({', '.join(sorted(rest))})"


def _backends(codemap: CodeMap, names: Mapping[str, str], classes: Mapping[str, str]) -> _Backends:
    """Return platforms by backend, for each phase and worker that asks for a backend."""
    found: _Backends = {}
    for entry in codemap.hazards.capture_entries:
        decided = _decided(codemap, entry) if entry.kind is EntryKind.BACKEND else None
        for worker in decided.workers if decided else ():
            for phase in decided.phases if decided and worker in names else ():
                name = qualname_of(entry.target)
                there = found.setdefault((phase, names[worker]), {})
                there.setdefault(classes.get(name, name), set()).update(entry.platforms)
    return found


def _decided(codemap: CodeMap, entry: CaptureEntry) -> Decision | None:
    """Return the capture decision that a list of backends belongs to: the next below it."""
    below = [
        (max(term.span.end_line for term in decision.terms), decision.id, decision)
        for decision in codemap.decisions
        if decision.kind == "capture" and decision.holder == entry.holder and decision.terms
    ]
    after = [d for d in below if d[0] >= entry.span.line]
    return min(after, key=lambda d: d[:2])[2] if after else None


def method_changes(old: CodeMap, new: CodeMap, renames: Renames) -> Iterator[NameChange]:
    """Yield what the methods on the way to a replay are called now, where only one changed."""
    before, after = _replayed(old), _replayed(new)
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for was, methods in before.items():
        cls = renames.classes.get(was, was)
        gone = methods - after.get(cls, set())
        come = after.get(cls, set()) - methods
        if len(gone) == len(come) == 1:
            found[gone.pop(), come.pop()].append(cls)
    for (was, now), classes in sorted(found.items(), key=lambda f: (-len(f[1]), f[0])):
        yield NameChange("method", was, f"{now} of {', '.join(sorted(classes))}")


def _replayed(codemap: CodeMap) -> dict[str, set[str]]:
    deciders = {decision.holder for decision in codemap.decisions if decision.kind == "can_run"}
    classes = {holder.rpartition(".")[0] for holder in deciders}
    found: dict[str, set[str]] = defaultdict(set)
    for _, holder in _on_replays(codemap):
        cls, _, method = holder.rpartition(".")
        if cls in classes and not method.startswith("_"):
            found[qualname_of(cls)].add(method)
    return found


def file_changes(
    old: CodeMap, new: CodeMap, renames: Renames, decisions: Sequence[DecisionChange]
) -> Iterator[NameChange]:
    """Yield files that are gone with the file that holds most of what was in them.

    A decision that was found again says more than any other name.
    """
    there = {file.file for file in new.files}
    places: dict[str, set[str]] = defaultdict(set)
    for symbol in _symbols(new):
        places[qualname_of(symbol)].add(file_of(symbol))
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for symbol in _symbols(old):
        file = file_of(symbol)
        now = places.get(renames.qualname(qualname_of(symbol)), set())
        if file not in there and len(now) == 1:
            votes[file].update(now)
    holders = {qualname_of(d.holder): file_of(d.holder) for d in old.decisions}
    for decision in decisions:
        file = holders.get(decision.was, "")
        if file and file not in there:
            votes[file][decision.span.file] += _DECISION
    on_cycle = {file_of(holder) for _, holder in _on_replays(old)}
    for file in sorted(votes, key=lambda f: (f not in on_cycle, -votes[f].total(), f)):
        best = min(votes[file], key=lambda f: (-votes[file][f], f))
        yield NameChange("file", file, best)


def _symbols(codemap: CodeMap) -> list[str]:
    return [c.id for c in codemap.classes] + [f.id for f in codemap.functions]
