"""What was there before: findings of the base of a change, or of a baseline file.

A finding is the same as an old one when the same rule finds the same thing by meaning; it may
have moved to another line, function or file, and names in it may have changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from specmap.codemap.finding import Finding, FindingStatus, Known, LintReport
from specmap.codemap.source import canonical, qualname_of
from specmap.compare.matching import Key, pair, renamed, shape
from specmap.compare.renames import Renames


@dataclass(frozen=True, slots=True)
class Before:
    """All of them, and how names changed since.

    ``holders`` are the functions that there were, ``None`` where that is not known.
    """

    findings: tuple[Known, ...]
    renames: Renames = field(default_factory=Renames)
    holders: frozenset[str] | None = None


def known_of(report: LintReport) -> tuple[Known, ...]:
    """Return the findings of a report, suppressed ones too, as what is known from now on."""
    return tuple(
        Known(
            finding.rule.id,
            qualname_of(finding.match.holder),
            canonical(finding.match.anchor),
            tuple(sorted(finding.match.phases)),
            finding.match.message,
        )
        for finding in report.findings
    )


def accept(
    report: LintReport, before: Before, reason: str, holders: frozenset[str] = frozenset()
) -> LintReport:
    """Mark the findings that were there before; ``holders`` are the functions there are now.

    ``gone`` of the result holds what its rules found before and do not any more.
    """
    old = [_renamed(known, before.renames) for known in before.findings]
    fresh = [f for f in report.findings if f.status is FindingStatus.NEW]
    suppressed = [f for f in report.findings if f.status is FindingStatus.SUPPRESSED]
    pairs, left, _ = pair(old, fresh, _keys(before.holders, holders), _fits)
    _, gone, _ = pair(left, suppressed, _keys(before.holders, holders), _fits)
    accepted = {id(finding) for _, finding in pairs}
    values = {_value(finding) for _, finding in pairs} - {None}
    accepted |= {id(finding) for finding in fresh if _value(finding) in values}
    findings = tuple(
        replace(finding, status=FindingStatus.BASELINED, reason=reason)
        if id(finding) in accepted
        else finding
        for finding in report.findings
    )
    ran = {rule.id for rule in report.rules}
    away = (known for known in gone if known.rule in ran)
    return replace(report, findings=findings, gone=(*report.gone, *away))


def _renamed(known: Known, renames: Renames) -> Known:
    return replace(
        known,
        holder=renames.qualname(known.holder),
        anchor=renamed(known.anchor, renames.everything),
    )


def _keys(before: frozenset[str] | None, now: frozenset[str]) -> Sequence[Key[Known, Finding]]:
    """Return the keys from the surest down.

    The same text in the same function; the same but for local names; the same text
    elsewhere; the same but for local names, where one of the functions is new or gone.
    """

    def holder(finding: Finding) -> str:
        return qualname_of(finding.match.holder)

    def anchor(finding: Finding) -> str:
        return canonical(finding.match.anchor)

    def old_elsewhere(known: Known) -> Hashable | None:
        return (known.rule, shape(known.anchor)) if shape(known.anchor) else None

    def new_elsewhere(finding: Finding) -> Hashable | None:
        come = before is None or holder(finding) not in before
        text = shape(anchor(finding)) if come else None
        return (finding.rule.id, text) if text else None

    def old_gone(known: Known) -> Hashable | None:
        return old_elsewhere(known) if known.holder not in now else None

    def new_shape(finding: Finding) -> Hashable | None:
        text = shape(anchor(finding))
        return (finding.rule.id, text) if text else None

    return (
        (lambda k: (k.rule, k.holder, k.anchor), lambda f: (f.rule.id, holder(f), anchor(f))),
        (
            lambda k: (k.rule, k.holder, shape(k.anchor)) if shape(k.anchor) else None,
            lambda f: (f.rule.id, holder(f), shape(anchor(f))),
        ),
        (lambda k: (k.rule, k.anchor), lambda f: (f.rule.id, anchor(f))),
        (old_elsewhere, new_elsewhere),
        (old_gone, new_shape),
    )


def _value(finding: Finding) -> tuple[str, str, str] | None:
    """Return the key of a finding about a name and no operation: one value, used once or often."""
    anchor = finding.match.anchor
    return (finding.rule.id, finding.match.holder, anchor) if anchor.isidentifier() else None


def _fits(known: Known, finding: Finding) -> bool:
    """Refuse code that moved onto a phase that it was not part of."""
    same_place = known.holder == qualname_of(finding.match.holder)
    return same_place or not known.phases or set(finding.match.phases) <= set(known.phases)
