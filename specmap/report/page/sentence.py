"""The headline under construction, and the words that its makers share."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from specmap.codemap.finding import Finding
from specmap.codemap.rule import Severity
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.report.page.subject import Subject
from specmap.report.page.tables import Json, Tables

SHOWN = 4
"""Of a list of reasons or advice this many are told; the page below has the others."""


class Headline:
    """Level (``ok``, ``warn``, ``bad``, ``unknown``), sentence, what to do, and why."""

    def __init__(self, level: str, text: str) -> None:
        self.level = level
        self.text = text
        self.todo: list[str] = []
        self.because: list[tuple[str, Span | None]] = []

    def data(self, tables: Tables) -> Json:
        """Return the headline as the page has it."""
        return {
            "level": self.level,
            "text": self.text,
            "todo": list(dict.fromkeys(self.todo)),
            "because": [
                {"text": text, "place": tables.place(span)}
                for text, span in dict.fromkeys(self.because)
            ],
        }


def explained(made: Headline, subject: Subject, worker: str, phases: Sequence[PhaseName]) -> None:
    """Add what lint says of phases of a worker (its name), and the rewrites for that."""
    found = [
        finding
        for finding in (subject.lint.new if subject.lint is not None else ())
        if finding.rule.topic == _TOPIC and _concerns(finding, worker, phases)
    ]
    found.sort(key=lambda f: (list(type(f.severity)).index(f.severity), f.match.span))
    losses = [finding for finding in found if finding.severity is not Severity.NOTE][:SHOWN]
    for finding in losses or found[:SHOWN]:
        made.because.append(told(finding))
    tree = quote(subject.tree) if subject.tree else "TREE"
    fixable = {rule for rewrite in subject.rewrites for rule in rewrite.rules}
    made.todo += [
        f"see whether a rewrite brings the graph back: specmap fix {tree} --select {rule} --diff"
        for rule in sorted({finding.rule.id for finding in losses} & fixable)
    ]


def told(finding: Finding) -> tuple[str, Span]:
    """Return a finding as a reason."""
    return f"{finding.rule.id}: {finding.match.message}", finding.match.span


_TOPIC = "graph-coverage"


def _concerns(finding: Finding, worker: str, phases: Sequence[PhaseName]) -> bool:
    workers = {name.rpartition("::")[2] for name in finding.match.workers}
    return worker in workers and not set(phases).isdisjoint(finding.match.phases)


def listed(names: Sequence[str]) -> str:
    """Join names with commas and ``and``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def count(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def sentence(text: str) -> str:
    """Begin with a capital and end without a stop."""
    return text[:1].upper() + text[1:].rstrip(".")
