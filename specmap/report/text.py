"""The map as text for people: an overview of all workers, or a page for each chosen one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from specmap.codemap.graph import CodeMap, EdgeStatus, FlagStatus, SyncKind, Worker
from specmap.codemap.verdict import PhaseName
from specmap.report.options import RenderOptions
from specmap.report.select import narrow
from specmap.report.text_findings import swapped
from specmap.report.text_parts import console, heading, indent, table, word
from specmap.report.text_worker import worker_page
from specmap.report.wording import Places, base_hint, endings, verdict_word


def render(codemap: CodeMap, options: RenderOptions) -> str:
    """Return the report; trailing spaces are removed."""
    chosen = narrow(codemap, options.workers, options.phases)
    out, sink = console(options)
    for block in _blocks(codemap, chosen, options):
        out.print(block)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()).rstrip() + "\n"


def _blocks(codemap: CodeMap, chosen: CodeMap, options: RenderOptions) -> Iterator[RenderableType]:
    places = Places.of(codemap)
    yield _title(codemap, places)
    yield from _problems(codemap)
    if not options.workers:
        yield from _overview(chosen)
        return
    for worker in chosen.workers:
        yield ""
        own = narrow(codemap, (worker.id,), options.phases)
        yield from worker_page(worker, own, places, max(options.width, 80))


def _title(codemap: CodeMap, places: Places) -> Text:
    facts = [f"platform {codemap.platform}"]
    if codemap.release and codemap.release not in codemap.target:
        facts.insert(0, f"release {codemap.release}")
    if codemap.commit:
        facts.insert(0, f"commit {codemap.commit[:12]}")
    if places.root:
        facts.append(f"paths below {places.root}")
    return heading(codemap.target, " · ".join(facts))


def _problems(codemap: CodeMap) -> Iterator[Text]:
    if codemap.partial:
        yield Text("This map is partial; it lacks what could not be read:", style="bold red")
    for problem in codemap.problems:
        place = problem.file if problem.line is None else f"{problem.file}:{problem.line}"
        yield Text(f"  {place}: {problem.message}", style="red" if problem.partial else "")


def _overview(codemap: CodeMap) -> Iterator[RenderableType]:
    names = [p for p in PhaseName if any(p == x.name for w in codemap.workers for x in w.phases)]
    yield ""
    yield table(
        ("worker", *(name.value for name in names)),
        [[_worker_cell(w), *(_phase_cell(w, name) for name in names)] for w in codemap.workers],
        wide="",
    )
    yield Text("depends: on launch arguments or the batch; below it, how the phase can end")
    yield ""
    yield heading("Findings")
    for line in _findings(codemap):
        yield indent(line)
    if codemap.workers:
        yield ""
        yield Text(
            f"One worker in full: --worker {codemap.workers[0].name}; one phase: --phase verify"
        )
    if hint := base_hint(codemap.target):
        yield Text(hint)


def _worker_cell(worker: Worker) -> Text:
    cell = Text(worker.name, style="bold" if worker.reachable else "dim")
    if not worker.reachable:
        cell.append("\nnever selected", style="dim")
    return cell


def _phase_cell(worker: Worker, name: PhaseName) -> Text:
    """Return the verdicts of a worker's phases of one name, each said once."""
    cells = dict.fromkeys(
        (verdict_word(phase), endings(phase, "\n") if phase.verdict is None else "")
        for phase in worker.phases
        if phase.name == name
    )
    shown = [
        word(verdict).append(f"\n{ends}" if ends else "", style="dim") for verdict, ends in cells
    ]
    return Text("\n").join(shown) if shown else Text("-", style="dim")


def _findings(codemap: CodeMap) -> Iterator[Text]:
    """Yield one line a kind of finding, with its number; zero is said too."""
    constant = [f for f in codemap.flags if f.status is FlagStatus.CONSTANT and f.value is False]
    dropped = [f for f in codemap.flags if f.status is FlagStatus.DROPPED]
    kinds = Counter(sync.kind for sync in codemap.syncs)
    removable = sum(sync.label == "removable" for sync in codemap.syncs)
    captured = sum(s.captured for s in codemap.syncs if s.kind is not SyncKind.NONE)
    deciding = sum(flag.decides for flag in constant)
    edges = Counter(edge.status for edge in codemap.edges)
    inside = sum(edges.values()) - edges[EdgeStatus.EXTERNAL]
    share = 100 * edges[EdgeStatus.UNRESOLVED] / inside if inside else 0.0
    rows = (
        (len(constant), f"graph flags are constantly False ({deciding} of them decide a path)"),
        (len(dropped), "graph flags are computed and dropped"),
        (
            kinds[SyncKind.EXPLICIT] + kinds[SyncKind.IMPLICIT],
            f"host synchronisations: {kinds[SyncKind.EXPLICIT]} explicit, "
            f"{kinds[SyncKind.IMPLICIT]} implicit; {removable} removable, "
            f"{captured} inside captured code",
        ),
        (kinds[SyncKind.NONE], "operations look like one but work on a CPU tensor"),
        (len(codemap.shared), "functions run both captured and eager"),
        (len(codemap.doubles), "passes whose graph decision is taken twice"),
        (len(swapped(codemap)), "attributes swapped from outside their object"),
        (
            edges[EdgeStatus.UNRESOLVED],
            f"call sites unresolved of {inside} inside SGLang ({share:.1f} %)",
        ),
    )
    width = max(len(str(count)) for count, _ in rows)
    for count, text in rows:
        yield Text(f"{count:>{width}}  {text}", style="" if count else "dim")
