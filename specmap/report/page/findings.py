"""Findings of lint with their rules, and the rewrites of fix with what was proven."""

from __future__ import annotations

from collections.abc import Sequence

from specmap.codemap.finding import Finding, LintReport, Step
from specmap.codemap.remedy import Attempt, LayerStatus, Outcome, Rewrite
from specmap.codemap.rule import Rule
from specmap.codemap.source import qualname_of
from specmap.report.page.subject import Subject
from specmap.report.page.tables import Json, Tables


def findings(report: LintReport | None, tables: Tables) -> list[Json]:
    """Return every finding, those that were suppressed or accepted too."""
    return [_finding(finding, tables) for finding in (report.findings if report else ())]


def _finding(finding: Finding, tables: Tables) -> Json:
    match = finding.match
    return {
        "rule": finding.rule.id,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "status": finding.status.value,
        "reason": finding.reason,
        "message": match.message,
        "place": tables.place(match.span),
        "holder": qualname_of(match.holder),
        "phases": [phase.value for phase in match.phases],
        "workers": [qualname_of(worker) for worker in match.workers],
        "label": match.label,
        "flow": _steps(match.flow, tables),
        "related": _steps(match.related, tables),
        "fingerprint": finding.fingerprint,
    }


def _steps(steps: Sequence[Step], tables: Tables) -> list[Json]:
    return [{"place": tables.place(step.span), "text": step.text} for step in steps]


def crashes(report: LintReport | None) -> list[str]:
    """Return the rules that failed, one line each."""
    return [
        f"rule {crash.rule} failed, {crash.place}: {crash.message}"
        for crash in (report.crashes if report else ())
    ]


def rules(report: LintReport | None) -> dict[str, Json]:
    """Return the rules that have findings, with their pages."""
    found = {f.rule.id: f.rule for f in (report.findings if report else ())}
    return {name: _rule(found[name]) for name in sorted(found)}


def _rule(rule: Rule) -> Json:
    return {
        "id": rule.id,
        "name": rule.name,
        "summary": rule.summary,
        "topic": rule.topic,
        "severity": rule.severity.value,
        "confidence": rule.confidence.value,
        "needs": rule.needs.value,
        "fixable": rule.fixable,
        "page": rule.explanation,
    }


def remedies(subject: Subject, tables: Tables) -> list[Json]:
    """Return what the rewrites did or would do; nothing where they were not run."""
    attempts = subject.fix.attempts if subject.fix is not None else ()
    return [_remedy(attempt, subject, tables) for attempt in attempts]


def _remedy(attempt: Attempt, subject: Subject, tables: Tables) -> Json:
    proposal = attempt.proposal
    shown = attempt.outcome is Outcome.APPLIED and not attempt.proven
    return {
        "rewrite": attempt.rewrite.id,
        "place": tables.place(proposal.span),
        "holder": qualname_of(proposal.holder),
        "what": proposal.what,
        "outcome": "proposed" if shown else attempt.outcome.value,
        "reason": _lacking(attempt) if shown else attempt.reason,
        "facts": [fact for fact in proposal.facts if fact],
        "workers": [qualname_of(worker) for worker in proposal.workers],
        "proven": attempt.proven,
        "proof": [
            {"layer": step.layer.value, "status": step.status.value, "detail": step.detail}
            for step in attempt.proof
        ],
        "diff": subject.diff(attempt),
    }


def _lacking(attempt: Attempt) -> str:
    """Say which proof a rewrite lacks that is only shown."""
    left = [s for s in attempt.proof if s.status is not LayerStatus.HELD]
    return f"not proven: {left[0].layer}: {left[0].detail}" if left else "not proven"


def rewrites(subject: Subject) -> dict[str, Json]:
    """Return the rewrites that were tried, and those that a finding's rule asks for."""
    tried = {a.rewrite.id for a in subject.fix.attempts} if subject.fix is not None else set()
    asked = {f.rule.id for f in subject.lint.findings} if subject.lint is not None else set()
    known = {r.id: r for r in subject.rewrites if r.id in tried or asked.intersection(r.rules)}
    return {name: _rewrite(known[name]) for name in sorted(known)}


def _rewrite(rewrite: Rewrite) -> Json:
    return {
        "id": rewrite.id,
        "name": rewrite.name,
        "summary": rewrite.summary,
        "safety": rewrite.safety.value,
        "rules": list(rewrite.rules),
        "page": rewrite.page,
    }
