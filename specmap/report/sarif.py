"""Findings as SARIF 2.1.0, with code flows, stable fingerprints and suppressions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from specmap.codemap.finding import Finding, FindingStatus, LintReport, Step
from specmap.codemap.rule import Confidence, Rule
from specmap.codemap.source import Span, qualname_of
from specmap.report.findings import FindingOptions

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_FINGERPRINT = "specmap/v1"
_PRECISION = {Confidence.HIGH: "high", Confidence.MEDIUM: "medium", Confidence.LOW: "low"}
_BASELINE = {FindingStatus.BASELINED: "unchanged", FindingStatus.NEW: "new"}


def render(report: LintReport, options: FindingOptions) -> str:
    """Return the run as one SARIF log; what was accepted before is ``unchanged``."""
    places = {rule.id: index for index, rule in enumerate(report.rules)}
    run = {
        "tool": {
            "driver": {
                "name": "specmap",
                **({"semanticVersion": options.version} if options.version else {}),
                "rules": [_rule(rule) for rule in report.rules],
            }
        },
        "invocations": [_invocation(report)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(f, places[f.rule.id], report, options) for f in report.findings],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> Mapping[str, object]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.explanation or rule.summary, "markdown": rule.explanation},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"precision": _PRECISION[rule.confidence], "tags": [rule.topic]},
    }


def _invocation(report: LintReport) -> Mapping[str, object]:
    notes = [
        {
            "level": "error",
            "message": {"text": f"{crash.place}: {crash.message}"},
            "associatedRule": {"id": crash.rule},
        }
        for crash in report.crashes
    ]
    return {"executionSuccessful": not notes, "toolExecutionNotifications": notes}


def _result(
    finding: Finding, place: int, report: LintReport, options: FindingOptions
) -> Mapping[str, object]:
    match = finding.match
    result: dict[str, object] = {
        "ruleId": finding.rule.id,
        "ruleIndex": place,
        "level": finding.severity.value,
        "message": {"text": match.message},
        "locations": [
            {
                **_location(match.span, options),
                "logicalLocations": [{"fullyQualifiedName": qualname_of(match.holder)}],
            }
        ],
        "partialFingerprints": {_FINGERPRINT: finding.fingerprint},
        "properties": {
            "confidence": finding.confidence.value,
            "phases": list(match.phases),
            "workers": [qualname_of(worker) for worker in match.workers],
        },
    }
    if match.related:
        result["relatedLocations"] = _numbered(match.related, options)
    if match.flow:
        steps = (*match.flow, Step(match.span, match.message))
        locations = [{"location": _step(step, options)} for step in steps]
        result["codeFlows"] = [{"threadFlows": [{"locations": locations}]}]
    if finding.status is FindingStatus.SUPPRESSED:
        result["suppressions"] = [{"kind": "inSource", "justification": finding.reason}]
    elif report.base or finding.status is FindingStatus.BASELINED:
        result["baselineState"] = _BASELINE[finding.status]
    return result


def _numbered(steps: Sequence[Step], options: FindingOptions) -> list[Mapping[str, object]]:
    return [{"id": number, **_step(step, options)} for number, step in enumerate(steps)]


def _step(step: Step, options: FindingOptions) -> Mapping[str, object]:
    return {**_location(step.span, options), "message": {"text": step.text}}


def _location(span: Span, options: FindingOptions) -> Mapping[str, object]:
    region = {"startLine": span.line, "endLine": span.end_line}
    return {"physicalLocation": {"artifactLocation": {"uri": options.path(span)}, "region": region}}
