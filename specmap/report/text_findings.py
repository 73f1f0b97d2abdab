"""What the page of a worker lists after its phases: flags, host synchronisations and the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from specmap.codemap.graph import (
    Assignment,
    CodeMap,
    DoubleDecision,
    EdgeStatus,
    Flag,
    HostSync,
    SharedCode,
    SyncKind,
    Worker,
)
from specmap.codemap.source import Span, qualname_of
from specmap.report.conditions import Row, listing, wrapped
from specmap.report.select import chain_symbols
from specmap.report.text_parts import guards, indent, table, word
from specmap.report.wording import Places, guard_text

# More than this of one kind is counted; the JSON report has every one.
_SHOWN = 25
_SHOWN_GUARDS = 6


def flags(worker: Worker, codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    """Yield one table of graph flags a file."""
    chains = chain_symbols(worker.phases)
    by_file = groupby(codemap.flags, key=lambda flag: flag.span.file)
    for file, flags in by_file:
        yield Text(places.file(file))
        yield table(
            ("line", "flag", "phase", "use", "guards and origin"),
            [
                (
                    str(flag.span.line),
                    _flag_name(flag),
                    flag.phase,
                    "decides" if flag.decides else "reported",
                    "\n".join(filter(None, (_flag_guards(flag, chains), _flag_note(flag)))),
                )
                for flag in flags
            ],
            wide="guards and origin",
        )


def _flag_guards(flag: Flag, chains: set[str]) -> str:
    """Return the guards on the worker's own way to a flag; other workers may share its place."""
    found = [g for g in flag.guards if g.holder in chains or g.holder == flag.holder]
    more = len(found) - _SHOWN_GUARDS
    return guards(found[:_SHOWN_GUARDS]) + (f"\nand {more} more" if more > 0 else "")


def _flag_name(flag: Flag) -> Text:
    value = "" if flag.value is None else f" {flag.value}"
    return Text.assemble(flag.name, "\n", word(flag.status.value), value)


def _flag_note(flag: Flag) -> str:
    notes = []
    if flag.source_chain:
        notes.append("from lines " + ", ".join(map(str, flag.source_chain)))
    elif flag.source_line is not None and flag.source_line != flag.span.line:
        notes.append(f"from line {flag.source_line}")
    if flag.result_line is not None:
        notes.append(f"the caller gets line {flag.result_line}")
    if flag.result_source_line is not None:
        notes.append(f"whose value is from line {flag.result_source_line}")
    if flag.tuple_position is not None:
        notes.append(f"position {flag.tuple_position} of a tuple")
    return "; ".join(notes)


def syncs(codemap: CodeMap, places: Places, width: int) -> Iterator[Text]:
    """Yield one list of host synchronisations a pair of passes.

    What only looks like one is listed while it is little, else counted.
    """
    by_gap: dict[str, list[HostSync]] = {}
    for sync in codemap.syncs:
        by_gap.setdefault(sync.phase_between, []).append(sync)
    for gap, found in by_gap.items():
        real = [sync for sync in found if sync.kind is not SyncKind.NONE]
        shown = found if len(found) - len(real) <= _SHOWN else real
        yield Text(gap.replace("->", " -> "), style="bold")
        yield listing([row for sync in shown for row in _sync(sync, places)], width)
        if len(shown) < len(found):
            rest = _others(len(found) - len(shown), "operation")
            yield Text(f"  on CPU tensors, no synchronisation: {rest}", style="dim")


def _sync(sync: HostSync, places: Places) -> Iterator[Row]:
    """Yield a synchronisation and, below it, the innermost test that guards it."""
    captured = "captured" if sync.captured else ""
    place = places.brief(sync.span)
    yield Row(1, "", sync.operation, (sync.kind.value, sync.label, captured, place))
    if sync.guards:
        yield Row(2, "if ", guard_text(sync.guards[-1]), ())


def swapped(codemap: CodeMap) -> list[tuple[str, Assignment]]:
    """Return the stores that change an attribute from outside, or for a while only."""
    return [
        (attribute.name, store)
        for attribute in codemap.attributes
        for store in attribute.assignments
        if store.from_outside or store.context_manager or store.restored_line is not None
    ]


def swaps(codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    """Yield a line for each store that :func:`swapped` finds."""
    for name, store in swapped(codemap):
        line = Text.assemble((name, "bold"), f" = {store.value}  ")
        line.append(f"{qualname_of(store.holder)}, {places.show(store.span)}", style="dim")
        if store.restored_line is not None:
            line.append(f", restored on line {store.restored_line}")
        yield line


def doubles(codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    """Yield the passes whose decision is taken twice, those of the same two places together."""
    by_places: dict[tuple[Span, Span], list[DoubleDecision]] = {}
    for double in codemap.doubles:
        by_places.setdefault((double.first, double.second), []).append(double)
    for (first, second), found in by_places.items():
        names = ", ".join(dict.fromkeys(double.phase.value for double in found))
        line = Text.assemble((names, "bold"), f": first {places.show(first)}")
        yield line.append(f", again {places.show(second)}")
        for who, terms in (("first", found[0].only_first), ("second", found[0].only_second)):
            if terms:
                yield indent(Text(f"only the {who} asks: " + "; ".join(terms)))


def shared(worker: Worker, codemap: CodeMap, places: Places, width: int) -> Iterator[Text]:
    """Yield one list a place of capture; functions off the chains are only counted."""
    chains = chain_symbols(worker.phases)
    by_place: dict[Span, list[SharedCode]] = {}
    for code in codemap.shared:
        by_place.setdefault(code.captured_from, []).append(code)
    for place, found in by_place.items():
        on = [code for code in found if code.function in chains]
        yield Text(f"captured from {places.show(place)}, and eager from")
        yield listing(
            [Row(1, "", qualname_of(c.function), (places.brief(c.eager_from),)) for c in on], width
        )
        if len(found) > len(on):
            yield Text(f"  {_others(len(found) - len(on), 'function')}", style="dim")


def _others(number: int, what: str) -> str:
    return f"{number} other {what}{'s' if number > 1 else ''}: --format json"


def unresolved(
    worker: Worker, codemap: CodeMap, places: Places, width: int
) -> Iterator[RenderableType]:
    """Yield the calls on the chains that nobody could resolve; those in helpers are counted."""
    chains = chain_symbols(worker.phases)
    found = [edge for edge in codemap.edges if edge.status is EdgeStatus.UNRESOLVED]
    on = [edge for edge in found if edge.caller in chains]
    for edge in on:
        line = Text.assemble((edge.text, "bold"), f" in {qualname_of(edge.caller)}  ")
        yield line.append(places.brief(edge.span), style="dim")
        yield indent(Text("\n".join(wrapped(edge.reason, width - 4))))
    if len(found) > len(on):
        yield Text(_others(len(found) - len(on), "call site"), style="dim")


def outside(codemap: CodeMap, places: Places, width: int) -> Iterator[RenderableType]:
    """Yield what a plugin or another platform can put in, which no scan of the tree sees."""
    met: dict[str, dict[str, None]] = {}
    for unknown, text in _from_outside(codemap, places):
        met.setdefault(unknown, {})[text] = None
    for unknown, texts in met.items():
        yield Text(unknown, style="bold")
        yield indent(Text("\n".join(wrapped(", ".join(list(texts)[:_SHOWN]), width - 4))))
        if len(texts) > _SHOWN:
            yield indent(Text(_others(len(texts) - _SHOWN, "place"), style="dim"))


def _from_outside(codemap: CodeMap, places: Places) -> Iterator[tuple[str, str]]:
    for edge in codemap.edges:
        for unknown in edge.also_unknown:
            yield unknown, f"{edge.text} ({places.brief(edge.span)})"
    for factory in codemap.factories:
        for unknown in factory.unknown:
            yield unknown, f"{qualname_of(factory.function)} ({places.brief(factory.span)})"
    for attribute in codemap.attributes:
        for store in attribute.assignments:
            for unknown in store.also_unknown:
                yield unknown, f"{attribute.name} ({places.brief(store.span)})"
