"""Findings for continuous integration: GitHub annotations, GitLab code quality, JUnit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from xml.etree import ElementTree

from specmap.codemap.finding import Finding, LintReport
from specmap.codemap.rule import Severity
from specmap.report.findings import FindingOptions, title

_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_GITLAB = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.NOTE: "info"}


def render_github(report: LintReport, options: FindingOptions) -> str:
    """Return one workflow command for each new finding; GitHub shows it at its line."""
    lines = [_command(finding, options) for finding in report.new]
    lines += [
        f"::error title={_property(crash.rule)}::{_data(f'{crash.place}: {crash.message}')}"
        for crash in report.crashes
    ]
    return "".join(f"{line}\n" for line in lines)


def render_gitlab(report: LintReport, options: FindingOptions) -> str:
    """Return the new findings as a Code Quality report."""
    issues = [
        {
            "description": finding.match.message,
            "check_name": title(finding),
            "fingerprint": finding.fingerprint,
            "severity": _GITLAB[finding.severity],
            "location": {
                "path": options.path(finding.match.span),
                "lines": {"begin": finding.match.span.line, "end": finding.match.span.end_line},
            },
        }
        for finding in report.new
    ]
    return json.dumps(issues, indent=1, ensure_ascii=False) + "\n"


def render_junit(report: LintReport, options: FindingOptions) -> str:
    """Return one failed test for each new finding, and one that passes if there is none."""
    cases = [*_failures(report, options), *_errors(report)]
    root = ElementTree.Element("testsuites", name="specmap")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=report.target,
        tests=str(max(len(cases), 1)),
        failures=str(len(report.new)),
        errors=str(len(report.crashes)),
    )
    suite.extend(cases or [ElementTree.Element("testcase", name="no findings")])
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _failures(report: LintReport, options: FindingOptions) -> Iterator[ElementTree.Element]:
    for finding in report.new:
        path, span = options.path(finding.match.span), finding.match.span
        case = ElementTree.Element(
            "testcase", name=title(finding), classname=path, file=path, line=str(span.line)
        )
        failure = ElementTree.SubElement(
            case, "failure", message=finding.match.message, type=finding.severity.value
        )
        failure.text = f"{path}:{span.line}: {finding.match.message}"
        yield case


def _errors(report: LintReport) -> Iterator[ElementTree.Element]:
    for crash in report.crashes:
        case = ElementTree.Element("testcase", name=crash.rule, classname=crash.place)
        ElementTree.SubElement(case, "error", message=crash.message)
        yield case


def _command(finding: Finding, options: FindingOptions) -> str:
    span = finding.match.span
    properties = {
        "file": options.path(span),
        "line": str(span.line),
        "endLine": str(span.end_line),
        "title": title(finding),
    }
    joined = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{_GITHUB[finding.severity]} {joined}::{_data(finding.match.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
