"""Findings for people: in full, one a line, or counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from posixpath import basename

from rich.text import Text

from specmap.codemap.finding import Finding, FindingStatus, LintReport, Step
from specmap.codemap.rule import Severity
from specmap.codemap.source import qualname_of
from specmap.report.findings import FindingOptions, title
from specmap.report.options import RenderOptions
from specmap.report.text_parts import console, table

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_NAMED = 4


def render_full(report: LintReport, options: FindingOptions) -> str:
    """Return every new finding with its source line, its phases, and the way there."""
    blocks = [_block(finding, options) for finding in report.new]
    return _print([*_separated(blocks), summary(report), *_gone(report)], options)


def render_concise(report: LintReport, options: FindingOptions) -> str:
    """Return one line for each new finding: ``path:line: ID name: message``."""
    rows = [
        Text(f"{options.path(f.match.span)}:{f.match.span.line}: {title(f)}: {f.match.message}")
        for f in report.new
    ]
    return _print([*rows, summary(report)], options)


def render_statistics(report: LintReport, options: FindingOptions) -> str:
    """Return how many findings each rule has, most first."""
    counts: dict[str, Counter[FindingStatus]] = {}
    rules = {finding.rule.id: finding.rule for finding in report.findings}
    for finding in report.findings:
        counts.setdefault(finding.rule.id, Counter())[finding.status] += 1
    order = sorted(counts, key=lambda id: (-counts[id][FindingStatus.NEW], id))
    rows = [
        [str(counts[id][status]) for status in FindingStatus]
        + [id, rules[id].name, rules[id].severity.value]
        for id in order
    ]
    columns = [status.value for status in FindingStatus] + ["rule", "name", "severity"]
    made, sink = console(RenderOptions(width=options.width, color=options.color))
    if rows:
        made.print(table(columns, rows, "name"))
    made.print(summary(report))
    return _trimmed(sink.getvalue())


def summary(report: LintReport) -> str:
    """Return the last line: how many findings count, and how many do not."""
    status = Counter(finding.status for finding in report.findings)
    severity = Counter(finding.severity for finding in report.new)
    parts = ", ".join(_count(severity[s], s.value) for s in Severity if severity[s])
    named = _count(status[FindingStatus.NEW], "finding")
    since = f" since {report.base}" if report.base else ""
    text = f"{report.target}: {named}{f' ({parts})' if parts else ''}{since}"
    if status[FindingStatus.BASELINED]:
        text += f"; {status[FindingStatus.BASELINED]} known before"
    if status[FindingStatus.SUPPRESSED]:
        text += f"; {status[FindingStatus.SUPPRESSED]} allowed by comments"
    if report.gone:
        text += f"; {len(report.gone)} gone"
    return text


def _gone(report: LintReport) -> Iterator[Text]:
    """Name what the base had and the source has not; JSON holds all of it."""
    names = {rule.id: rule.name for rule in report.rules}
    for known in report.gone[:_NAMED]:
        yield Text(f"  gone: {known.rule} {names[known.rule]}, {known.holder}: {known.message}")
    more = len(report.gone) - _NAMED
    if more > 0:
        yield Text(f"  ... and {more} more (--output-format json)")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}" if number else f"no {word}s"


def _block(finding: Finding, options: FindingOptions) -> list[Text]:
    match = finding.match
    head = Text.assemble(
        (f"{options.path(match.span)}:{match.span.line}", "bold"),
        f"  {title(finding)}  ",
        (finding.severity.value, _STYLES[finding.severity]),
        (f", {finding.confidence.value} confidence", "dim"),
    )
    lines = [head, Text(f"  {match.message}")]
    source = options.line(match.span).strip()
    if source:
        lines.append(Text(f"  {match.span.line} | {source}"))
    lines += [Text(f"  {said}", style="dim") for said in _context(finding)]
    return lines


def _context(finding: Finding) -> Iterator[str]:
    match = finding.match
    if match.phases:
        names = [qualname_of(worker) for worker in match.workers]
        of = f" of {_listed(names)}" if names else ""
        yield f"phase: {', '.join(match.phases)}{of}"
    if match.label and match.label not in match.message:
        yield f"only on the {match.label} path"
    if match.flow:
        yield f"reached: {' > '.join(map(_hop, match.flow))}"
    yield from (f"see {step.span}: {step.text}" for step in match.related)


def _hop(step: Step) -> str:
    return f"{step.text.partition(' calls ')[0]} ({basename(step.span.file)}:{step.span.line})"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _separated(blocks: Sequence[list[Text]]) -> Iterator[Text]:
    for block in blocks:
        yield from block
        yield Text("")


def _print(lines: Sequence[Text | str], options: FindingOptions) -> str:
    made, sink = console(RenderOptions(width=options.width, color=options.color))
    for line in lines:
        made.print(line, soft_wrap=True)
    return _trimmed(sink.getvalue())


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip() + "\n"
