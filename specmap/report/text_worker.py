"""The text page of one worker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from specmap.codemap.condition import All
from specmap.codemap.graph import (
    Arm,
    Assignment,
    CodeMap,
    Decision,
    EdgeStatus,
    Flag,
    HostSync,
    Phase,
    Sink,
    StaticShape,
    Worker,
)
from specmap.codemap.source import file_of, qualname_of
from specmap.report.select import chain_symbols, class_of
from specmap.report.text_parts import (
    condition,
    grid,
    guards,
    hanging,
    heading,
    hops,
    indent,
    short_condition,
    table,
    verdict,
    word,
)
from specmap.report.wording import Places, after_refusal, endings


def worker_page(
    worker: Worker, codemap: CodeMap, places: Places, width: int
) -> Iterator[RenderableType]:
    """Yield the blocks of one worker's page; ``codemap`` is narrowed to that worker."""
    yield from _header(worker, places)
    yield from _section("Phases", _phases(worker))
    yield from _section("Methods of the cycle", _methods(worker, codemap))
    for phase in worker.phases:
        yield from _section(phase.name.value, _phase(phase, codemap, places, width), _role(phase))
    yield from _section("Graph flags", _flags(codemap, places))
    yield from _section("Host synchronisations", _syncs(codemap, places))
    yield from _section("Attributes swapped from outside", _swaps(codemap, places))
    yield from _section("Decisions taken twice", _doubles(codemap, places))
    yield from _section("Code both captured and eager", _shared(codemap, places))
    yield from _section("Unresolved call sites", _unresolved(codemap, places))
    yield from _section("Only known outside the tree", _outside(codemap, places))


def _section(
    title: str, blocks: Iterator[RenderableType], note: str = ""
) -> Iterator[RenderableType]:
    """Yield a heading and its blocks; a section without blocks says none."""
    found = list(blocks)
    yield ""
    yield heading(title, note if found else "none")
    yield from map(indent, found)


def _header(worker: Worker, places: Places) -> Iterator[RenderableType]:
    rows = [("bases", " > ".join(map(qualname_of, worker.mro)))]
    if worker.entry is not None:
        holder = qualname_of(worker.entry.holder)
        rows.append(("entry", f"{worker.entry.name} of {holder}, {places.show(worker.entry.span)}"))
    if worker.owns:
        rows.append(("owns", ", ".join(map(qualname_of, worker.owns))))
    if worker.note:
        rows.append(("note", worker.note))
    yield Text.assemble((worker.name, "bold underline"), f"  {places.show(worker.span)}")
    yield indent(grid((Text(name, style="dim"), Text(value)) for name, value in rows))
    found = f" (built at {places.show(worker.selected_at)})" if worker.selected_at else ""
    yield indent(Text("selected when" if worker.reachable else "never selected:") + found)
    yield indent(condition(worker.selected_when, places), 4)


def _phases(worker: Worker) -> Iterator[RenderableType]:
    if worker.phases:
        rows = [
            (
                f"{phase.name.value}\n{phase.role}",
                "\n".join(phase.forward_modes),
                f"{qualname_of(phase.holder).rpartition('.')[2]}\nline {phase.span.line}",
                verdict(phase),
                short_condition(phase.graph_when, 60),
            )
            for phase in worker.phases
        ]
        columns = ("phase, role", "forward modes", "where", "verdict", "graph replay when")
        yield table(columns, rows, wide="graph replay when")


def _methods(worker: Worker, codemap: CodeMap) -> Iterator[RenderableType]:
    """Yield the worker's own methods that lie on a chain, its own file first."""
    own = {worker.id, *worker.mro, *worker.owns}
    own.update(base for record in codemap.classes if record.id in own for base in record.mro)
    used: dict[str, list[str]] = {}
    for phase in worker.phases:
        for symbol in chain_symbols([phase]) | {phase.holder}:
            used.setdefault(symbol, []).append(phase.name.value)
    home = file_of(worker.id)
    rows = [
        (str(f.span.line), f.qualname, _names(used[f.id], worker))
        for f in sorted(
            codemap.functions, key=lambda f: (f.span.file != home, f.span.file, f.span.line)
        )
        if f.id in used and class_of(f.id) in own
    ]
    if rows:
        yield table(("line", "method", "phases"), rows, wide="phases")


def _names(phases: list[str], worker: Worker) -> str:
    everything = len(phases) == len(worker.phases) > 1
    return "all" if everything else ", ".join(dict.fromkeys(phases))


def _role(phase: Phase) -> str:
    modes = " ".join(phase.forward_modes) or "no forward"
    return f"{phase.role} model, {modes}"


def _phase(phase: Phase, codemap: CodeMap, places: Places, width: int) -> Iterator[RenderableType]:
    line = Text.assemble("verdict ", verdict(phase))
    if phase.verdict is None:
        line.append(f" on launch arguments or the batch; ends in {endings(phase)}")
    yield line
    if phase.note:
        yield Text(f"note: {phase.note}")
    if phase.static_shape is not None:
        yield _static_shape(phase.static_shape, places)
    sinks = {sink.id: sink for sink in codemap.sinks}
    for arm in phase.arms:
        yield _arm(arm, phase, sinks[arm.sink], places, width)
    decisions = {decision.id: decision for decision in codemap.decisions}
    for name in phase.decisions:
        yield _decision(decisions[name], places)


def _static_shape(shape: StaticShape, places: Places) -> Text:
    word_ = "static shape" if shape.fixed else "dynamic shape"
    place = f" ({places.show(shape.span)})" if shape.span else ""
    note = f"; {shape.note}" if shape.note else ""
    return Text(f"{word_}: {shape.tokens_per_request} tokens per request{place}{note}")


def _arm(arm: Arm, phase: Phase, sink: Sink, places: Places, width: int) -> Group:
    title = word(arm.kind.value.upper())
    rest = after_refusal(arm, phase)
    if rest == All(()):
        title.append(" when the graph is not replayed", style="none")
    else:
        title.append(" when", style="none")
        title.append("" if rest is None else " the graph is not replayed, and", style="none")
    terms = arm.condition if rest is None else rest
    shown = [] if rest == All(()) else [indent(condition(terms, places))]
    rows = [
        (
            ("-> " if index else "") + qualname_of(symbol),
            f"{places.file(file_of(symbol))}:{line}",
        )
        for index, (symbol, line) in enumerate(arm.chain)
    ]
    end = Text.assemble("=> ", (sink.text, "bold"), f" on line {sink.span.line}")
    path = indent(hops(rows, width - 4))
    return Group("", title, *shown, indent(Text("through", style="dim")), path, indent(end))


def _decision(decision: Decision, places: Places) -> Group:
    title = Text.assemble(
        "decision ", (decision.kind, "bold"), f" in {qualname_of(decision.holder)}"
    )
    title.append(f"  {places.show(decision.span)}", style="dim")
    rows = [
        (
            hanging("-", term.text if term.graph_when else f"not ({term.text})"),
            f"part of {term.conjunct_of}" if term.conjunct_of else "",
            str(term.span.line),
        )
        for term in decision.terms
    ]
    return Group("", title, indent(grid(rows) if rows else Text(decision.text)))


def _flags(codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    """Yield one table a file."""
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
                    "\n".join(filter(None, (guards(flag.guards), _flag_note(flag)))),
                )
                for flag in flags
            ],
            wide="guards and origin",
        )


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


def _syncs(codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    """Yield one table a pair of passes."""
    by_gap: dict[str, list[HostSync]] = {}
    for sync in codemap.syncs:
        by_gap.setdefault(sync.phase_between, []).append(sync)
    for gap, syncs in by_gap.items():
        yield Text(gap.replace("->", " -> "))
        yield table(
            ("place", "kind", "operation", "label", "captured"),
            [
                (
                    places.brief(sync.span),
                    word(sync.kind.value),
                    _operation(sync),
                    word(sync.label),
                    "yes" if sync.captured else "no",
                )
                for sync in syncs
            ],
            wide="operation",
        )


def _operation(sync: HostSync) -> Text:
    text = Text(sync.operation)
    if sync.guards:
        text.append(f"\nunder {guards(sync.guards)}", style="dim")
    return text


def swapped(codemap: CodeMap) -> list[tuple[str, Assignment]]:
    """Return the stores that change an attribute from outside, or for a while only."""
    return [
        (attribute.name, store)
        for attribute in codemap.attributes
        for store in attribute.assignments
        if store.from_outside or store.context_manager or store.restored_line is not None
    ]


def _swaps(codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    for name, store in swapped(codemap):
        line = Text.assemble((name, "bold"), f" = {store.value}  ")
        line.append(f"{qualname_of(store.holder)}, {places.show(store.span)}", style="dim")
        if store.restored_line is not None:
            line.append(f", restored on line {store.restored_line}")
        yield line


def _doubles(codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    for double in codemap.doubles:
        first, second = places.show(double.first), places.show(double.second)
        yield Text.assemble((double.phase.value, "bold"), f": first {first}, again {second}")
        if double.only_first:
            yield indent(Text("only the first asks: " + "; ".join(double.only_first)))
        if double.only_second:
            yield indent(Text("only the second asks: " + "; ".join(double.only_second)))


def _shared(codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    for code in codemap.shared:
        yield Text.assemble(
            (qualname_of(code.function), "bold"),
            f"  captured from {places.brief(code.captured_from)}, "
            f"eager from {places.brief(code.eager_from)}",
        )


def _unresolved(codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    rows = [
        (places.brief(edge.span), f"{edge.text}\nin {qualname_of(edge.caller)}", edge.reason)
        for edge in codemap.edges
        if edge.status is EdgeStatus.UNRESOLVED
    ]
    if rows:
        yield table(("place", "call", "reason"), rows, wide="reason")


def _outside(codemap: CodeMap, places: Places) -> Iterator[RenderableType]:
    """Yield what a plugin or another platform can put in, which no scan of the tree sees."""
    for edge in codemap.edges:
        if edge.also_unknown:
            yield Text(f"{edge.text} ({places.show(edge.span)}): {', '.join(edge.also_unknown)}")
    for factory in codemap.factories:
        if factory.unknown:
            name = qualname_of(factory.function)
            yield Text(f"{name} ({places.show(factory.span)}): {', '.join(factory.unknown)}")
    for attribute in codemap.attributes:
        for store in attribute.assignments:
            if store.also_unknown:
                place = places.show(store.span)
                yield Text(f"{attribute.name} ({place}): {', '.join(store.also_unknown)}")
