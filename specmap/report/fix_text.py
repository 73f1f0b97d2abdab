"""What rewrites did, for a person."""

from __future__ import annotations

import textwrap
from collections import Counter

from specmap.codemap.remedy import Attempt, FixReport, Outcome, Rewrite

_INDENT = "    "


def render_fix(report: FixReport, width: int = 100) -> str:
    """Return a line that counts and one block for each attempt, by outcome.

    What is refused for the same reason is one block, with a line for each place.
    """
    lines = [f"{report.target}: {_counted(report)}", ""]
    alike: dict[tuple[str, str], list[Attempt]] = {}
    for attempt in report.attempts:
        if attempt.outcome is Outcome.REFUSED:
            alike.setdefault((attempt.rewrite.id, attempt.reason), []).append(attempt)
        else:
            lines += [*_block(attempt, width), ""]
    for _, attempts in sorted(alike.items()):
        same = len(attempts) > 1
        lines += [*(_places(attempts, width) if same else _block(attempts[0], width)), ""]
    return "\n".join(lines)


def _places(attempts: list[Attempt], width: int) -> list[str]:
    rewrite = attempts[0].rewrite
    head = f"refused {rewrite.id} {rewrite.name} ({rewrite.safety}) at {len(attempts)} places"
    lines = [head, *_wrapped(f"why not: {attempts[0].reason}", width)]
    for attempt in attempts:
        lines += _wrapped(f"{attempt.proposal.span}: {attempt.proposal.what}", width)
    return lines


def _counted(report: FixReport) -> str:
    counts = Counter(attempt.outcome for attempt in report.attempts)
    said = [f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]]
    return ", ".join(said) or "nothing to rewrite"


def _block(attempt: Attempt, width: int) -> list[str]:
    rewrite, proposal = attempt.rewrite, attempt.proposal
    head = f"{attempt.outcome} {rewrite.id} {rewrite.name} ({rewrite.safety}) {proposal.span}"
    lines = [head, *_wrapped(proposal.what, width)]
    if attempt.reason:
        lines += _wrapped(f"why not: {attempt.reason}", width)
    lines += [line for fact in proposal.facts if fact for line in _wrapped(f"fact: {fact}", width)]
    if attempt.outcome is Outcome.APPLIED:
        for step in attempt.proof:
            lines += _wrapped(f"proof, {step.layer}: {step.status}: {step.detail}", width)
        if not attempt.proven:
            lines += _wrapped("not proven, applied because of --unsafe", width)
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    flat = " ".join(text.split())
    return textwrap.wrap(
        flat, width, initial_indent=_INDENT, subsequent_indent=_INDENT * 2,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def render_catalogue(rewrites: tuple[Rewrite, ...]) -> str:
    """Return one line for each rewrite."""
    return "".join(f"{r.id}  {r.name:24} {r.safety:8} {r.summary}\n" for r in rewrites)


def render_rewrite(rewrite: Rewrite) -> str:
    """Return the page of one rewrite."""
    rules = ", ".join(rewrite.rules) or "none"
    layers = ", ".join(rewrite.layers)
    return (
        f"# {rewrite.id} {rewrite.name}\n\n{rewrite.page.strip()}\n\n"
        f"Safety: {rewrite.safety}. Lint rules: {rules}. Layers of proof: {layers}.\n"
    )
