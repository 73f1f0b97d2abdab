"""The text page of one worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from textwrap import shorten

from rich.console import Group, RenderableType
from rich.text import Text

from specmap.codemap.condition import All, Condition
from specmap.codemap.graph import Arm, CodeMap, Decision, Phase, Sink, StaticShape, Worker
from specmap.codemap.source import file_of, qualname_of
from specmap.report.conditions import Names, Row, condition, listing, wrapped
from specmap.report.select import chain_symbols, class_of
from specmap.report.text_findings import (
    doubles,
    flags,
    outside,
    shared,
    swaps,
    syncs,
    unresolved,
)
from specmap.report.text_parts import (
    grid,
    heading,
    indent,
    short_condition,
    table,
    verdict,
    word,
)
from specmap.report.wording import Places, after_refusal, endings

Chain = tuple[tuple[str, int], ...]
_LETTER = 2
# The JSON report has the rest.
_MAX_PART_LINES = 400


def worker_page(
    worker: Worker, codemap: CodeMap, places: Places, width: int
) -> Iterator[RenderableType]:
    """Yield the blocks of one worker's page; ``codemap`` is narrowed to that worker."""
    names = Names([worker.selected_when, *(_asked(a, p) for p in worker.phases for a in p.arms)])
    yield from _header(worker, places, names, width)
    yield from _section("Phases", _phases(worker))
    yield from _section("Methods of the cycle", _methods(worker, codemap))
    pages = Pages(codemap, places, names, width)
    for phase in worker.phases:
        yield from _section(phase.name.value, _phase(phase, pages), _role(phase))
    yield from _section("Graph flags", flags(worker, codemap, places))
    yield from _section("Host synchronisations", syncs(codemap, places, width - 2))
    yield from _section("Attributes swapped from outside", swaps(codemap, places))
    yield from _section("Decisions taken twice", doubles(codemap, places))
    yield from _section("Code both captured and eager", shared(worker, codemap, places, width - 2))
    yield from _section("Unresolved call sites", unresolved(worker, codemap, places, width - 2))
    yield from _section("Only known outside the tree", outside(codemap, places, width - 2))
    parts = list(_parts(pages))
    if parts:
        yield from _section("Parts of conditions, by letter", iter(parts))


def _parts(pages: Pages) -> Iterator[RenderableType]:
    """Yield the parts that letters stand for, until there are more than anybody reads."""
    lines = 0
    for letter, term in pages.names.printed():
        shown = condition(term, pages.places, pages.width - 2 - _LETTER, pages.names, whole=True)
        lines += len(shown.plain.splitlines())
        if lines > _MAX_PART_LINES:
            yield Text(f"{letter} and later: --format json, or one --phase", style="dim")
            return
        yield Text.assemble((letter, "bold"), ":")
        yield indent(shown)


@dataclass(frozen=True, slots=True)
class Pages:
    """What every block of a page needs; ``decided`` holds the decisions printed so far."""

    codemap: CodeMap
    places: Places
    names: Names
    width: int
    decided: set[str] = field(default_factory=set)


def _section(
    title: str, blocks: Iterator[RenderableType], note: str = ""
) -> Iterator[RenderableType]:
    """Yield a heading and its blocks; a section without blocks says none."""
    found = list(blocks)
    yield ""
    yield heading(title, note if found else "none")
    yield from map(indent, found)


def _header(worker: Worker, places: Places, names: Names, width: int) -> Iterator[RenderableType]:
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
    yield indent(condition(worker.selected_when, places, width - 4, names), 4)


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


def _phase(phase: Phase, pages: Pages) -> Iterator[RenderableType]:
    line = Text.assemble("verdict ", verdict(phase))
    if phase.verdict is None:
        line.append(f" on launch arguments or the batch; ends in {endings(phase)}")
    yield line
    if phase.note:
        yield Text(f"note: {phase.note}")
    if phase.static_shape is not None:
        yield _static_shape(phase.static_shape, pages.places)
    sinks = {sink.id: sink for sink in pages.codemap.sinks}
    above: Chain = ()
    for arm in phase.arms:
        yield _arm(arm, phase, sinks[arm.sink], pages, above)
        above = arm.chain
    decisions = {decision.id: decision for decision in pages.codemap.decisions}
    fresh = [name for name in phase.decisions if name not in pages.decided]
    for name in fresh:
        yield _decision(decisions[name], pages)
    again = [decisions[name] for name in phase.decisions if name in pages.decided]
    pages.decided.update(fresh)
    if again:
        places = (f"{qualname_of(d.holder)} ({pages.places.brief(d.span)})" for d in again)
        lines = wrapped(f"decisions listed above: {', '.join(places)}", pages.width - 4)
        yield Group("", Text("\n  ".join(lines)))


def _static_shape(shape: StaticShape, places: Places) -> Text:
    word_ = "static shape" if shape.fixed else "dynamic shape"
    place = f" ({places.show(shape.span)})" if shape.span else ""
    note = f"; {shape.note}" if shape.note else ""
    return Text(f"{word_}: {shape.tokens_per_request} tokens per request{place}{note}")


def _asked(arm: Arm, phase: Phase) -> Condition:
    """Return what is printed of an arm's condition."""
    rest = after_refusal(arm, phase)
    return arm.condition if rest is None else rest


def _arm(arm: Arm, phase: Phase, sink: Sink, pages: Pages, above: Chain) -> Group:
    """Return an arm; of its calls only those that differ from the arm ``above``."""
    title = word(arm.kind.value.upper())
    rest = after_refusal(arm, phase)
    if rest == All(()):
        title.append(" when the graph is not replayed", style="none")
    else:
        title.append(" when", style="none")
        title.append("" if rest is None else " the graph is not replayed, and", style="none")
    terms = condition(_asked(arm, phase), pages.places, pages.width - 4, pages.names)
    shown = [] if rest == All(()) else [indent(terms)]
    same = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(arm.chain, above, strict=False))
    )
    end = Text.assemble("=> ", (sink.text, "bold"), f" on line {sink.span.line}")
    through = Text("through", style="dim")
    if same > 1:
        through.append(f" {same} calls as above, then")
    path = _path(arm.chain, same if same > 1 else 0, pages)
    return Group("", title, *shown, indent(through), indent(path), indent(end))


def _path(chain: Chain, first: int, pages: Pages) -> Text:
    """Return the calls of a chain from number ``first`` on, with the comments at them."""
    width = pages.width - 4
    out = []
    column = max((len(qualname_of(symbol)) for symbol, _ in chain[first:]), default=0) + 5
    for index, (symbol, line) in enumerate(chain[first:], first):
        name = ("-> " if index else "") + qualname_of(symbol)
        place = f"{pages.places.file(file_of(symbol))}:{line}"
        between = " " * (column - len(name)) if column + len(place) <= width else "\n     "
        out.append(Text.assemble(name, between, (place, "dim")))
        if comment := _comment(symbol, line, pages.codemap):
            text = shorten(comment, width - 5, placeholder=" \N{HORIZONTAL ELLIPSIS}")
            out.append(Text(f"   # {text}", style="dim"))
    return Text("\n").join(out)


def _comment(symbol: str, line: int, codemap: CodeMap) -> str:
    """Return what the source says in words at a call on a chain."""
    found = (e.comment for e in codemap.edges if e.caller == symbol and e.span.line == line)
    return next(filter(None, found), "")


def _decision(decision: Decision, pages: Pages) -> Group:
    """Return a decision, one term a line, the parts of a term below it."""
    title = Text.assemble(
        "decision ", (decision.kind, "bold"), f" in {qualname_of(decision.holder)}"
    )
    title.append(f"  {pages.places.show(decision.span)}", style="dim")
    depths: dict[str, int] = {}
    rows = []
    for term in decision.terms:
        whole = term.conjunct_of
        if whole not in depths and not whole.isidentifier() and whole:
            depths[whole] = 0
            rows.append(Row(0, "", whole, ()))
        nested = whole in depths
        depth = depths[whole] + 1 if nested else 0
        depths.setdefault(term.text, depth)
        text = term.text if term.graph_when else f"not ({term.text})"
        part = f"part of {whole}" if whole and not nested else ""
        rows.append(Row(depth, "- ", text, (part, str(term.span.line))))
    shown = listing(rows, pages.width - 4) if rows else Text(decision.text)
    return Group("", title, indent(shown))
