"""A comparison for people: most important first, long lists cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename

from rich.text import Text

from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.compare.model import (
    Change,
    DecisionChange,
    MapDiff,
    NameChange,
    PhaseChange,
    SyncChange,
    TermChange,
    TypesChange,
    WorkerChange,
)
from specmap.report.diff import SHOWN, DiffOptions
from specmap.report.options import RenderOptions
from specmap.report.text_parts import console

MARKS = {Change.ADDED: "+", Change.REMOVED: "-", Change.RENAMED: "~", Change.CHANGED: "~"}
_STYLES = {"+": "green", "-": "red", "!": "bold red", "~": "yellow"}
_DECISIONS = 6
_TERMS = 6
_BACKENDS = 12
_NAMES = 3
_WHOLE = 3
_LONG = 80


def render(found: MapDiff, options: DiffOptions) -> str:
    """Return the comparison as text; without changes it says so."""
    made, sink = console(RenderOptions(width=options.width, color=options.color))
    made.print(Text(f"{found.old} -> {found.new}", style="bold"))
    if found.empty:
        made.print("no difference in workers, phases, decisions, synchronisations or names")
    for title, lines in sections(found, options.everything):
        made.print()
        made.print(Text(title, style="bold"))
        for line in lines:
            made.print(Text(f"  {line}", style=_STYLES.get(line.strip()[:1], "")), soft_wrap=True)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()).rstrip() + "\n"


def sections(found: MapDiff, everything: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield title and lines of each kind of change; a line begins with ``+ - ~`` or ``!``."""
    parts: tuple[tuple[str, Iterable[str]], ...] = (
        ("workers", map(_worker, found.workers)),
        ("phases", (line for change in found.phases for line in _phase(change))),
        ("fallbacks that became errors", _errors(found.decisions)),
        ("backends that are captured", _types(found.types, everything)),
        ("graph decisions", _decisions(found.decisions, everything)),
        ("host synchronisations", _syncs(found.syncs, everything)),
        ("renamed", _renamed(found.names, everything)),
    )
    for title, lines in parts:
        listed = list(lines)
        if listed:
            yield title, listed


def _worker(change: WorkerChange) -> str:
    was = f"{change.was} -> " if change.was else ""
    return f"{MARKS[change.change]} {was}{change.name}  {place(change.span)}"


def _phase(change: PhaseChange) -> Iterator[str]:
    mark = "-" if change.lost else "+" if change.gained else "~"
    said = f"{' or '.join(change.before)} -> {' or '.join(change.after)}"
    yield f"{mark} {change.phase}: {said}  ({', '.join(change.workers)})"
    for turn in change.turns:
        new = ", a new function" if turn.new else ""
        yield f"  {place(turn.span)}: {turn.caller} calls {turn.callee}{new}"


def _errors(decisions: Sequence[DecisionChange]) -> Iterator[str]:
    for decision in decisions:
        for term in decision.terms:
            if term.error is not None:
                yield f"! {shorten(term.text)}: was eager, raises now at {place(term.error)}"


def _types(changes: Sequence[TypesChange], everything: bool) -> Iterator[str]:
    for change in changes:
        yield f"{change.phase}  ({', '.join(change.workers)})"
        said = [*(f"  + {name}" for name in change.added), *(f"  - {n}" for n in change.removed)]
        yield from said if everything else _first(said, _BACKENDS, "  ")


def _decisions(decisions: Sequence[DecisionChange], everything: bool) -> Iterator[str]:
    changed = [d for d in decisions if d.change is Change.CHANGED]
    times = Counter(_key(term) for decision in changed for term in decision.terms)
    shared = {
        _key(term): term for d in changed for term in d.terms if times[_key(term)] > 1
    }  # fmt: skip
    if shared:
        yield "in several of them"
        lines = [f"  {_said(term)}  {times[key]} times" for key, term in shared.items()]
        yield from lines if everything else _first(lines, _TERMS, "  ")
    for decision in changed if everything else changed[:_DECISIONS]:
        was = f"{decision.was} -> " if decision.was else ""
        yield f"{was}{decision.holder}  {place(decision.span)}  ({_named(decision.phases)})"
        own = [f"  {_term(term)}" for term in decision.terms if _key(term) not in shared]
        yield from own if everything else _first(own, _TERMS, "  ")
    if not everything:
        yield from _more(len(changed) - _DECISIONS)
    for change, word in ((Change.ADDED, "new"), (Change.REMOVED, "gone")):
        named = [
            f"{MARKS[change]} {word}: {d.holder}  {place(d.span)}  ({_named(d.phases)})"
            for d in decisions
            if d.change is change
        ]
        yield from named if everything else _first(named, _WHOLE)


def _key(term: TermChange) -> tuple[Change, str, str]:
    return term.change, term.text, term.was


def _named(phases: Sequence[PhaseName]) -> str:
    return "all phases" if len(phases) == len(PhaseName) else ", ".join(phases)


def _term(term: TermChange) -> str:
    was = "was at " if term.change is Change.REMOVED else ""
    return f"{_said(term)}  {was}line {term.span.line}"


def _said(term: TermChange) -> str:
    before = f"{shorten(term.was)} -> " if term.was else ""
    return f"{'!' if term.error else MARKS[term.change]} {before}{shorten(term.text)}"


def _syncs(syncs: Sequence[SyncChange], everything: bool) -> Iterator[str]:
    if syncs:
        yield "; ".join(_sync_counts(syncs))
    own = [sync for sync in syncs if everything or not sync.with_worker]
    for change in (Change.ADDED, Change.REMOVED):
        yield from _cut([_sync(s) for s in own if s.change is change], everything)


def _sync_counts(syncs: Sequence[SyncChange]) -> Iterator[str]:
    for change in (Change.ADDED, Change.REMOVED):
        those = [sync for sync in syncs if sync.change is change]
        labels = Counter(sync.label for sync in those)
        said = ", ".join(f"{count} {label}" for label, count in sorted(labels.items()))
        with_worker = sum(sync.with_worker for sync in those)
        more = f"; {with_worker} only with workers that are {change}" if with_worker else ""
        if those:
            yield f"{len(those)} {change} ({said}{more})"


def _sync(sync: SyncChange) -> str:
    where = f"{sync.holder} {place(sync.span)}"
    region = "captured, " if sync.captured else ""
    said = f"{region}{sync.label}, {sync.between}" if sync.between else f"{region}{sync.label}"
    return f"{MARKS[sync.change]} {shorten(sync.operation)}  {where}  ({said})"


def _renamed(names: Sequence[NameChange], everything: bool) -> Iterator[str]:
    """Each kind of name is cut by itself: files and methods of runners come first."""
    for kind in dict.fromkeys(name.kind for name in names):
        said = [f"~ {kind} {_short(n.was)} -> {_short(n.now)}" for n in names if n.kind == kind]
        yield from said if everything else _first(said, _NAMES)


def _short(name: str) -> str:
    return name.removeprefix("sglang/srt/")


def _cut(lines: list[str], everything: bool) -> Iterable[str]:
    return lines if everything else _first(lines, SHOWN)


def _first(lines: list[str], count: int, before: str = "") -> Iterator[str]:
    yield from lines[:count]
    yield from _more(len(lines) - count, before)


def _more(count: int, before: str = "") -> Iterator[str]:
    if count > 0:
        yield f"{before}... and {count} more (--all shows them)"


def shorten(text: str) -> str:
    """Return source text on one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."


def place(span: Span) -> str:
    """Return file name and line."""
    return f"{basename(span.file)}:{span.line}"
