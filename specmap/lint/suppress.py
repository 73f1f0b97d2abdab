"""Comments that accept a finding: ``# specmap: allow NAME -- reason``.

A comment stands at the end of the finding's first or last line, or in the comment lines
directly above it. ``NAME`` is a rule's name or id; several are separated by commas.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from specmap.codemap.finding import Finding, FindingStatus, Match, fingerprint
from specmap.codemap.rule import Rule
from specmap.codemap.source import Span, lines_of, symbol_id
from specmap.lint.rulebook import MALFORMED, UNUSED

Source = Callable[[str], str | None]
"""Returns the text of a file of the tree, ``None`` if there is none."""

_MARK = "specmap: allow"
_COMMENT = re.compile(r"#\s*specmap:\s*allow\b(?P<names>[^#]*?)(?:\s--\s*(?P<reason>.*))?$")


@dataclass(frozen=True, slots=True)
class Allow:
    """One comment. ``target`` is the line of code it speaks about; lines count from 1."""

    span: Span
    target: int
    names: tuple[str, ...]
    reason: str


def apply(
    findings: Sequence[Finding], files: Iterable[str], source: Source, known: Sequence[Rule]
) -> tuple[list[Finding], list[Finding]]:
    """Mark the findings that a comment accepts, and report comments that are of no use.

    ``known`` are all rules there are. Returns the findings, and those about comments; a
    comment about a rule that did not run (``findings`` cannot tell) is the caller's to drop.
    """
    ids = {name: rule.id for rule in known for name in (rule.id, rule.name)}
    allowed: dict[tuple[str, int, str], Allow] = {}
    about: list[tuple[str, Allow, str, str]] = []
    usable = []
    for allow in _comments(files, source):
        wrong = _wrong(allow, ids)
        if wrong:
            about.append((MALFORMED, allow, ", ".join(allow.names), wrong))
            continue
        for name in allow.names:
            allowed[allow.span.file, allow.target, ids[name]] = allow
            usable.append((allow, name))
    used: set[tuple[Allow, str]] = set()
    marked = []
    for finding in findings:
        span, rule = finding.match.span, finding.rule
        found = [allowed.get((span.file, line, rule.id)) for line in (span.line, span.end_line)]
        comment = found[0] or found[1]
        if comment is not None:
            used.add((comment, rule.id))
            status = FindingStatus.SUPPRESSED
            finding = replace(finding, status=status, reason=comment.reason)
        marked.append(finding)
    about += [
        (UNUSED, allow, name, f"nothing here is {name!r}; remove it from the comment")
        for allow, name in usable
        if (allow, ids[name]) not in used
    ]
    rules = {rule.id: rule for rule in known}
    return marked, [
        _about(rules[id], comment, anchor, message)
        for id, comment, anchor, message in about
        if id in rules
    ]


def _wrong(allow: Allow, ids: dict[str, str]) -> str:
    if not allow.names:
        return "the comment names no rule; write '# specmap: allow NAME -- reason'"
    unknown = [name for name in allow.names if name not in ids]
    if unknown:
        return f"there is no rule {unknown[0]!r}; 'specmap rules' lists them"
    if not allow.reason:
        return "the comment gives no reason; write '# specmap: allow NAME -- reason'"
    return ""


def _about(rule: Rule, allow: Allow, anchor: str, message: str) -> Finding:
    match = Match(allow.span, symbol_id(allow.span.file, "<comment>"), anchor, message)
    return Finding(rule, match, fingerprint(rule.id, match))


def _comments(files: Iterable[str], source: Source) -> Iterator[Allow]:
    for file in sorted(set(files)):
        text = source(file)
        if text is not None and _MARK in text:
            yield from comments_in(file, text)


def comments_in(file: str, text: str) -> Iterator[Allow]:
    """Yield the comments of one file; none where Python cannot read it."""
    lines = lines_of(text)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for token in tokens:
        if token.type != tokenize.COMMENT:
            continue
        found = _COMMENT.match(token.string)
        if found is None:
            continue
        line = token.start[0]
        names = tuple(name.strip() for name in found["names"].split(",") if name.strip())
        alone = lines[line - 1].lstrip().startswith("#")
        target = _below(lines, line) if alone else line
        reason = (found["reason"] or "").strip()
        yield Allow(Span(file, line, line), target, names, reason)


def _below(lines: Sequence[str], line: int) -> int:
    """Return the first line after ``line`` that is not only a comment."""
    while line < len(lines) and lines[line].lstrip().startswith("#"):
        line += 1
    return line + 1
