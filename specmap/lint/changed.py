"""What only a comparison of two maps tells: graphs that are lost, decisions that ask more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specmap.codemap.finding import Finding, LintReport, Match, fingerprint
from specmap.codemap.graph import CodeMap
from specmap.codemap.rule import Rule
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.compare.asked import ReadText
from specmap.compare.diff import paired_workers
from specmap.compare.renames import Renames
from specmap.compare.terms import Gain, gained_tests
from specmap.lint.detectors.selecting import DECODE_PHASES, clip
from specmap.lint.engine import order
from specmap.lint.losses import with_losses
from specmap.lint.rulebook import GRAPH_LOST, GRAPH_UNTOLD, TEST_ADDED


def with_changes(
    report: LintReport,
    maps: tuple[CodeMap, CodeMap],
    sources: tuple[ReadText, ReadText],
    renames: Renames,
) -> LintReport:
    """Add what the rules about changes find, those that are among the report's rules.

    ``report`` knows what the base has; ``maps`` and ``sources`` are those of the base and of the
    change. A partial map tells nothing.
    """
    rules = {rule.id: rule for rule in report.rules}
    if any(codemap.partial for codemap in maps):
        return report
    report = with_losses(report, maps, sources, renames, rules)
    if TEST_ADDED in rules:
        pairs = paired_workers(*maps, renames)[0]
        gains = list(gained_tests(*maps, pairs, renames, sources))
        made = _added(report, gains, maps[1], rules[TEST_ADDED])
        report = replace(report, findings=tuple(sorted([*report.findings, *made], key=order)))
    return report


def _added(
    report: LintReport, gains: list[Gain], codemap: CodeMap, rule: Rule
) -> Iterator[Finding]:
    """One finding for each test; what another new finding says at its line is said already."""
    told = [f.match for f in report.new if f.rule.topic == rule.topic]
    lost = [f.match for f in report.new if f.rule.id in (GRAPH_LOST, GRAPH_UNTOLD)]
    ids = {worker.name: worker.id for worker in codemap.workers}
    places: dict[tuple[Span, str], list[Gain]] = {}
    for gain in gains:
        places.setdefault((gain.span, gain.text), []).append(gain)
    for (span, text), those in places.items():
        workers = tuple(sorted({ids[name] for gain in those for name in gain.workers}))
        asked = {phase for gain in those for phase in gain.phases}
        asked -= {
            phase for match in lost for phase in match.phases if {*workers} & {*match.workers}
        }
        phases = tuple(phase for phase in DECODE_PHASES if phase in asked)
        if phases and not any(_meet(span, match.span) for match in told):
            yield _finding(rule, span, text, phases, workers, codemap)


def _meet(one: Span, other: Span) -> bool:
    return one.file == other.file and one.line <= other.end_line and other.line <= one.end_line


def _finding(
    rule: Rule,
    span: Span,
    text: str,
    phases: tuple[PhaseName, ...],
    workers: tuple[str, ...],
    codemap: CodeMap,
) -> Finding:
    around = [f for f in codemap.functions if _meet(f.span, span)]
    holder = max(around, key=lambda f: f.span.line).id if around else f"{span.file}::<module>"
    match = Match(
        span=span,
        holder=holder,
        anchor=f"test added: {text}",
        message=f"whether {', '.join(phases)} replays is also decided by {clip(text)}, "
        "which the base does not test",
        phases=phases,
        workers=workers,
    )
    return Finding(rule, match, fingerprint(rule.id, match))
