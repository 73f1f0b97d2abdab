"""The outcome of a launch as text for people: one word a phase, and the line that decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from specmap.codemap.launch import Refusal
from specmap.codemap.outcome import Captured, Outcome, PhaseOutcome, TermValue, WorkerOutcome
from specmap.codemap.source import Span
from specmap.codemap.verdict import Verdict
from specmap.report.options import RenderOptions
from specmap.report.text_parts import console, heading, indent, table, word
from specmap.report.wording import base_hint

_SHOWN_TERMS = 3
_SHOWN_REFUSALS = 4
_SHOWN_LOGGED = 6


def render_outcome(outcome: Outcome, options: RenderOptions) -> str:
    """Return the report; trailing spaces are removed."""
    out, sink = console(options)
    for block in _blocks(outcome):
        out.print(block)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()).rstrip() + "\n"


def _blocks(outcome: Outcome) -> Iterator[RenderableType]:
    facts = [f"platform {outcome.platform}"]
    if outcome.batch_size is not None:
        facts.append(f"batch of {outcome.batch_size}")
    yield heading(outcome.target, " · ".join(facts))
    for text in model_lines(outcome):
        yield Text(text)
    if outcome.refusal is not None:
        yield from _refusal(outcome.refusal)
    elif not outcome.workers:
        none = "No worker runs: the launch has no speculation, it names no speculative algorithm."
        partial = f"No worker is found for this command, and {outcome.partial}."
        yield Text(partial if outcome.partial else none)
    for worker in outcome.workers:
        yield from _worker(worker)
    if outcome.refusal is None:
        yield from _captured(outcome.captured)
    yield from _lines("Preflight", [_concern(c.message, c.failing) for c in outcome.concerns])
    yield from _lines("The server's log", _logged(outcome))
    yield from _lines("Expected", [_expectation(outcome, i) for i in range(_count(outcome))])
    yield from _lines("May refuse to start", _refusals(outcome))
    yield from _lines("Not known; what would settle it", list(outcome.missing))
    yield from _lines("Assumed", _assumed(outcome))
    yield from _lines("Read", list(outcome.notes))
    if hint := base_hint(outcome.target):
        yield from ("", Text(hint))


def _lines(title: str, lines: list[str] | list[Text]) -> Iterator[RenderableType]:
    if lines:
        yield ""
        yield heading(title)
        for line in lines:
            yield indent(line if isinstance(line, Text) else Text(line))


def _refusal(refusal: Refusal) -> Iterator[RenderableType]:
    yield Text.assemble(word(Verdict.NOT_RUN.value), "  the server refuses to start")
    yield indent(Text(f"{refusal.error}: {refusal.message} ({place(refusal.span)})"))
    for test in refusal.tests:
        yield indent(Text(f"{place(test.span)}: {test.text} is {test.outcome}"), 4)


def _worker(worker: WorkerOutcome) -> Iterator[RenderableType]:
    yield ""
    sure = "" if worker.certain else "  may be selected"
    yield heading(f"{worker.name}{sure}", f"{place(worker.span)}, chosen at "
                  f"{place(worker.selected_at)}")  # fmt: skip
    for term in worker.open_terms[:_SHOWN_TERMS]:
        yield indent(Text(f"settled by: {term.text} ({place(term.span)})"))
    yield table(
        ("phase", "verdict", "decided by"),
        [[phase.name.value, word(phase.verdict.value), decided(phase)] for phase in worker.phases],
        wide="decided by",
    )


def decided(phase: PhaseOutcome) -> Text:
    """Say what decides a phase, with lines and numbers."""
    lines = ["as assumed"] if phase.assumed else []
    lines += [f"{reach(phase)}"] if reach(phase) else []
    terms = phase.deciding if phase.verdict is not Verdict.UNKNOWN else phase.open_terms
    lines += [said(term) for term in terms[:_SHOWN_TERMS]]
    if len(terms) > _SHOWN_TERMS:
        lines.append(f"and {len(terms) - _SHOWN_TERMS} more tests")
    if phase.note:
        lines.append(phase.note)
    if phase.backend:
        lines.append(f"attention backend: {phase.backend}")
    return Text("\n".join(lines))


def reach(phase: PhaseOutcome) -> str:
    """Say for which batch sizes the verdict holds, where it changes."""
    if len(phase.ranges) < 2:
        return ""
    parts = []
    for part in phase.ranges:
        sizes = f"bs {part.first}" if part.last == part.first else f"bs {part.first}-{part.last}"
        parts.append(f"{sizes if part.last else f'bs {part.first} on'} {part.verdict.value}")
    shown = parts if len(parts) <= 4 else [*parts[:3], f"and {len(parts) - 3} more ranges"]
    return ", ".join(shown)


def said(term: TermValue) -> str:
    """Say one test: its line, its value, and where that comes from."""
    value = {True: "true", False: "false", None: "not known"}[term.value]
    note = f", {term.note}" if term.note else ""
    why = f" (needs {', '.join(term.reasons)})" if term.value is None and term.reasons else ""
    return f"{place(term.span)}: {term.text} is {value}{note}{why}"


def place(span: Span | None) -> str:
    """Return file and line below the package."""
    if span is None:
        return "outside the tree"
    return f"{span.file.partition('/srt/')[2] or span.file}:{span.line}"


def _captured(captured: Captured) -> Iterator[RenderableType]:
    yield ""
    if captured.sizes == ():
        yield Text("No batch size is captured.")
    elif captured.sizes is not None:
        largest = max(captured.sizes, default=0)
        yield Text(f"Captured batch sizes: {ranges(captured.sizes)} (largest {largest})")
    else:
        least = f"at least {ranges(captured.least)}; " if captured.least else ""
        yield Text(f"Captured batch sizes: {least}needs {', '.join(captured.reasons)}")
    least_in, most = captured.admitted
    if most is not None:
        admitted = str(most) if least_in == most else f"{least_in or 0} to {most}"
        yield Text(f"Requests admitted: {admitted}")
    if captured.concurrency is not None and captured.share is not None:
        yield Text(
            f"Concurrency {captured.concurrency}: a steady batch of {captured.steady}; "
            f"{captured.share:.0%} of the batch sizes up to {captured.concurrency} are covered"
        )


def ranges(sizes: tuple[int, ...]) -> str:
    """Write sizes in short: ``1-8, 10-32 by 2, 40, 44, 48``."""
    parts: list[str] = []
    index = 0
    while index < len(sizes):
        end, step = index + 1, 0
        if end < len(sizes):
            step = sizes[end] - sizes[index]
            while end + 1 < len(sizes) and sizes[end + 1] - sizes[end] == step:
                end += 1
        if end - index >= 3 and end < len(sizes):
            by = f" by {step}" if step > 1 else ""
            parts.append(f"{sizes[index]}-{sizes[end]}{by}")
            index = end + 1
        else:
            parts.append(str(sizes[index]))
            index += 1
    return ", ".join(parts)


def _logged(outcome: Outcome) -> list[str]:
    """Say what the log tells of its decode batches: the worker's own word about verify alone."""
    lines = [
        f"decode batches with {item.size} running: cuda graph: "
        + " and ".join(
            f"{said} in {count}"
            for said, count in ((True, item.graph), (False, item.eager))
            if count
        )
        for item in outcome.logged
        if item.graph or item.eager
    ]
    more = len(lines) - _SHOWN_LOGGED
    return [
        *lines[:_SHOWN_LOGGED],
        *([f"and {more} more sizes that JSON lists"] if more > 0 else []),
    ]


def _concern(message: str, failing: bool) -> Text:
    return Text(message, style="bold yellow" if failing else "")


def _count(outcome: Outcome) -> int:
    return len(outcome.expectations)


def _expectation(outcome: Outcome, index: int) -> Text:
    found = outcome.expectations[index]
    text = f"{found.phase.value}: expected {found.expected.value}, found {found.found.value}"
    return Text(text, style="" if found.met else "bold red")


def _refusals(outcome: Outcome) -> list[str]:
    """Say what may stop the start; checks that need the same are counted, not listed."""
    found: dict[tuple[str, ...], list[Refusal]] = {}
    for refusal in outcome.may_refuse:
        found.setdefault(refusal.reasons, []).append(refusal)
    lines = [counted_refusals(group) for group in found.values()]
    more = len(lines) - _SHOWN_REFUSALS
    return [*lines[:_SHOWN_REFUSALS], *([f"and {more} more that JSON lists"] if more > 0 else [])]


def counted_refusals(group: Sequence[Refusal]) -> str:
    """Return one line for checks that need the same to be known."""
    first = group[0]
    if len(group) == 1:
        return f"{place(first.span)}: {first.message} (needs {', '.join(first.reasons)})"
    return (
        f"{len(group)} checks need {', '.join(first.reasons)}, the first at {place(first.span)}; "
        "JSON lists them"
    )


def model_lines(outcome: Outcome) -> list[str]:
    """Say what is assumed of models that are not given, and which option says otherwise."""
    return [f"assumed: {a.text} ({a.option})" for a in outcome.assumptions if a.option]


def _assumed(outcome: Outcome) -> list[str]:
    keyed = [f"{a.text} (--batch {a.key}=yes)" for a in outcome.assumptions if a.key]
    other = sum(not (a.key or a.option) for a in outcome.assumptions)
    return (
        [*keyed, f"{other} facts about the machine and the model; JSON lists them"]
        if (keyed or other)
        else []
    )
