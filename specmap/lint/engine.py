"""Runs rules over a map: matches become findings, a rule that fails becomes a crash."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from packaging.version import Version

from specmap.codemap.finding import Crash, Finding, LintReport, Match, fingerprint
from specmap.codemap.graph import CodeMap
from specmap.codemap.rule import Needs, Rule, Severity
from specmap.codemap.source import canonical
from specmap.errors import RulesError, SpecmapError
from specmap.lint.flow import FlowFinder
from specmap.lint.rulebook import check_parameters, detector_of
from specmap.lint.suppress import Source, apply


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rules run, and what is changed about them.

    ``select`` and ``ignore`` hold ids, names, topics or the beginning of an id (``SPM1``);
    an empty ``select`` means every rule, and ``ignore`` wins. ``severity`` and
    ``parameters`` are by rule id.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def choose(rules: Sequence[Rule], choice: Choice) -> tuple[Rule, ...]:
    """Return the rules that are to run, with their severity and parameters.

    Raises:
        SpecmapError: a selector is about no rule.
    """
    for selector in (*choice.select, *choice.ignore):
        if not any(_selected(rule, (selector,)) for rule in rules):
            raise SpecmapError(f"no rule {selector!r}; 'specmap rules' lists ids, names and topics")
    return tuple(
        replace(
            rule,
            severity=choice.severity.get(rule.id, rule.severity),
            parameters={**rule.parameters, **choice.parameters.get(rule.id, {})},
        )
        for rule in rules
        if (not choice.select or _selected(rule, choice.select))
        and not _selected(rule, choice.ignore)
    )


def lint_map(
    codemap: CodeMap, rules: Sequence[Rule], *, source: Source, known: Sequence[Rule]
) -> LintReport:
    """Return what ``rules`` find in a map; what comments in the source accept is marked.

    ``known`` are all rules there are, chosen or not; one without a detector is not asked of a
    map. Those about comments are reported where ``rules`` holds them. A rule that fails is
    reported as a crash and the others run on.
    """
    running = [rule for rule in rules if rule.detector and _applies(rule, codemap)]
    findings: list[Finding] = []
    crashes: list[Crash] = []
    flows = FlowFinder(codemap)
    for rule in running:
        try:
            findings += _findings(rule, codemap, flows)
        except Exception as error:
            crashes.append(_crash(rule, error))
    ran = {rule.id for rule in running}
    files = {file.file for file in codemap.files} | {f.match.span.file for f in findings}
    findings, about = apply(findings, files, source, known)
    names = {rule.id: rule for rule in rules}
    silent = {name for rule in known if rule.id not in ran for name in (rule.id, rule.name)}
    findings += [
        replace(finding, rule=names[finding.rule.id])
        for finding in about
        if finding.rule.id in names and finding.match.anchor not in silent
    ]
    return LintReport(
        target=codemap.target,
        release=codemap.release,
        rules=tuple(rules),
        findings=tuple(sorted(findings, key=order)),
        crashes=tuple(crashes),
    )


def order(finding: Finding) -> tuple[object, ...]:
    """Sort findings by place, then rule."""
    span = finding.match.span
    return (span.file, span.line, span.end_line, finding.rule.id, finding.fingerprint)


def _selected(rule: Rule, selectors: Sequence[str]) -> bool:
    return any(map(rule.is_selected_by, selectors))


def _applies(rule: Rule, codemap: CodeMap) -> bool:
    """Tell whether a rule is about the map's release and can be answered by the source."""
    if rule.needs is not Needs.STATIC:
        return False
    if codemap.release is None:
        return True
    release = Version(codemap.release)
    first, last = rule.first_release, rule.last_release
    return not (first and release < Version(first)) and not (last and release > Version(last))


def _findings(rule: Rule, codemap: CodeMap, flows: FlowFinder) -> Iterator[Finding]:
    wrong = check_parameters(rule, rule.parameters)
    if wrong:
        raise RulesError(f"parameters: {'; '.join(wrong)}")
    matches = sorted(set(detector_of(rule)(codemap, rule.parameters)), key=_place)
    alike: Counter[tuple[str, str]] = Counter()
    for match in matches:
        if not match.flow:
            match = replace(match, flow=flows.to(match))
        key = (match.holder, canonical(match.anchor))
        yield Finding(rule, match, fingerprint(rule.id, match, alike[key]))
        alike[key] += 1


def _place(match: Match) -> tuple[object, ...]:
    span = match.span
    return (span.file, span.line, span.end_line, match.holder, match.anchor, match.message)


def _crash(rule: Rule, error: Exception) -> Crash:
    """Name the rule's own code, the innermost frame in its detector's module."""
    frames = traceback.extract_tb(error.__traceback__)
    module = rule.detector.partition(":")[0].replace(".", "/")
    own = [f for f in frames if PurePath(f.filename).with_suffix("").as_posix().endswith(module)]
    place = f"{module}.py:{own[-1].lineno}" if own else rule.detector
    return Crash(rule.id, place, f"{type(error).__name__}: {error}")
