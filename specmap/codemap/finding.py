"""What a detector yields (a match), and what a reader sees (a finding)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from specmap.codemap.graph import CodeMap
from specmap.codemap.rule import Confidence, Rule, Severity
from specmap.codemap.source import Span, canonical, qualname_of
from specmap.codemap.verdict import PhaseName


@dataclass(frozen=True, slots=True)
class Step:
    """One place on the way to a match, or one that belongs to it, with a short text."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Match:
    """What a detector found at one place.

    ``holder`` is the symbol id of the function (or class) around ``span``. ``anchor`` is
    what identifies the match inside its holder by meaning: normalised source text, never a
    line number; two alike in one holder are told apart by their order. ``message`` is one
    sentence without a final stop. ``workers`` are class ids. ``flow`` leads from the
    scheduler's call to the site, in order; ``related`` are other places that a reader
    should see. ``severity`` and ``confidence`` stand for the rule's where set. ``label``
    marks a path that few servers take: ``debug``, ``grammar``, ``logprob``.
    """

    span: Span
    holder: str
    anchor: str
    message: str
    phases: tuple[PhaseName, ...] = ()
    workers: tuple[str, ...] = ()
    flow: tuple[Step, ...] = ()
    related: tuple[Step, ...] = ()
    severity: Severity | None = None
    confidence: Confidence | None = None
    label: str = ""


Detector = Callable[[CodeMap, Mapping[str, object]], Iterator[Match]]
"""Pure: selects from the map, no input or output, no clock, a stable order."""


class FindingStatus(StrEnum):
    """``new`` counts; ``suppressed`` by a comment in the source; ``baselined`` was accepted
    before: by the baseline file, or because the base of a change has it too."""

    NEW = "new"
    SUPPRESSED = "suppressed"
    BASELINED = "baselined"


@dataclass(frozen=True, slots=True)
class Finding:
    """A match of a rule. ``reason`` is the one given where it was suppressed or accepted.

    ``fingerprint`` is 32 hexadecimal digits, the same wherever the code stands in its file.
    """

    rule: Rule
    match: Match
    fingerprint: str
    status: FindingStatus = FindingStatus.NEW
    reason: str = ""

    @property
    def severity(self) -> Severity:
        """The match's severity, else the rule's."""
        return self.match.severity or self.rule.severity

    @property
    def confidence(self) -> Confidence:
        """The match's confidence, else the rule's."""
        return self.match.confidence or self.rule.confidence


def fingerprint(rule: str, match: Match, occurrence: int = 0) -> str:
    """Return what identifies a match over changes of the file around it.

    It hashes the rule's id, the holder's dotted name, the anchor whatever its formatting,
    and how many alike stand before it in the same holder.
    """
    parts = (rule, qualname_of(match.holder), canonical(match.anchor), str(occurrence))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Crash:
    """A rule that failed on a map: a fault of the rule, not a finding.

    ``place`` is the file and line of the rule's own code that failed.
    """

    rule: str
    place: str
    message: str


@dataclass(frozen=True, slots=True)
class Known:
    """One finding of before: rule id, dotted name of the holder, anchor, phases, message."""

    rule: str
    holder: str
    anchor: str
    phases: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class LintReport:
    """Everything that one lint run says, findings by file and line.

    ``base`` names what a change was compared with. ``gone`` holds accepted findings
    that the source does not have any more.
    """

    target: str
    release: str | None
    rules: tuple[Rule, ...]
    findings: tuple[Finding, ...]
    crashes: tuple[Crash, ...] = ()
    base: str | None = None
    gone: tuple[Known, ...] = ()

    @property
    def new(self) -> tuple[Finding, ...]:
        """The findings that count."""
        return tuple(f for f in self.findings if f.status is FindingStatus.NEW)
