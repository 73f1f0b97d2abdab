"""Findings as JSON for other programs; every status is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from specmap.codemap.finding import Finding, LintReport, Step
from specmap.codemap.rule import Rule
from specmap.codemap.source import qualname_of
from specmap.report.findings import FindingOptions

SCHEMA_VERSION = "1.0"


def render(report: LintReport, options: FindingOptions) -> str:
    """Return the run as one object, keys and order stable."""
    content = {
        "specmap_findings": SCHEMA_VERSION,
        "target": report.target,
        "release": report.release,
        "base": report.base,
        "rules": [rule_record(rule) for rule in report.rules],
        "findings": [_finding(finding, options) for finding in report.findings],
        "crashes": [asdict(crash) for crash in report.crashes],
        "gone": [asdict(known) for known in report.gone],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def rule_record(rule: Rule) -> Mapping[str, object]:
    """Return a rule without its page."""
    return {
        "id": rule.id,
        "name": rule.name,
        "summary": rule.summary,
        "topic": rule.topic,
        "severity": rule.severity,
        "confidence": rule.confidence,
        "needs": rule.needs,
        "first_release": rule.first_release,
        "last_release": rule.last_release,
        "fixable": rule.fixable,
        "origin": rule.origin,
    }


def _finding(finding: Finding, options: FindingOptions) -> Mapping[str, object]:
    match = finding.match
    return {
        "rule": finding.rule.id,
        "name": finding.rule.name,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "status": finding.status,
        "reason": finding.reason,
        "fingerprint": finding.fingerprint,
        "file": options.path(match.span),
        "line": match.span.line,
        "end_line": match.span.end_line,
        "symbol": qualname_of(match.holder),
        "message": match.message,
        "phases": list(match.phases),
        "workers": [qualname_of(worker) for worker in match.workers],
        "label": match.label,
        "flow": [_step(step, options) for step in match.flow],
        "related": [_step(step, options) for step in match.related],
    }


def _step(step: Step, options: FindingOptions) -> Mapping[str, object]:
    return {"file": options.path(step.span), "line": step.span.line, "text": step.text}
