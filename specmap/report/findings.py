"""Renderers of a lint run: one format each, pure functions of the report and the options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from posixpath import join

from specmap.codemap.finding import Finding, LintReport
from specmap.codemap.source import Span, lines_of


@dataclass(frozen=True, slots=True)
class FindingOptions:
    """How to show findings.

    ``source`` returns the text of a file of the tree; ``prefix`` leads from the user's
    repository (or folder) to the folder that holds the tree; ``width`` is in columns.
    """

    source: Callable[[str], str | None] = lambda _file: None
    prefix: str = ""
    width: int = 100
    color: bool = False
    version: str = ""

    def path(self, span: Span) -> str:
        """Return the path of a place as the user's repository has it."""
        return join(self.prefix, span.file)

    def line(self, span: Span) -> str:
        """Return the first source line of a place, or nothing."""
        lines = lines_of(self.source(span.file) or "")
        return lines[span.line - 1] if 0 < span.line <= len(lines) else ""


_FORMATS = {
    "full": ("specmap.report.findings_text", "render_full"),
    "concise": ("specmap.report.findings_text", "render_concise"),
    "json": ("specmap.report.findings_json", "render"),
    "sarif": ("specmap.report.sarif", "render"),
    "github": ("specmap.report.findings_ci", "render_github"),
    "gitlab": ("specmap.report.findings_ci", "render_gitlab"),
    "junit": ("specmap.report.findings_ci", "render_junit"),
    "statistics": ("specmap.report.findings_text", "render_statistics"),
}

FINDING_FORMATS = tuple(name for name in _FORMATS if name != "statistics")


def render_findings(report: LintReport, name: str, options: FindingOptions) -> str:
    """Return a lint run in the format ``name``: one of them, or ``statistics``."""
    module, function = _FORMATS[name]
    render: Callable[[LintReport, FindingOptions], str] = getattr(import_module(module), function)
    return render(report, options)


def title(finding: Finding) -> str:
    """Return the rule of a finding as reports name it."""
    return f"{finding.rule.id} {finding.rule.name}"
