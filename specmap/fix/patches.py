"""Unified diffs, and one patch a rewrite in the format of ``git am``."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Mapping, Sequence

from specmap.codemap.remedy import Attempt

_NO_NEWLINE = "\\ No newline at end of file\n"
# A patch must not depend on when it was made.
_DATE = "Thu, 1 Jan 1970 00:00:00 +0000"


def diff(
    before: Mapping[str, str],
    after: Mapping[str, str],
    prefix: str = "",
    encodings: Mapping[str, str] | None = None,
) -> str:
    """Return the differences of some files as ``git diff`` writes them.

    ``prefix`` is the way from the top of the repository to the folder with the package,
    ``encodings`` those of files that are not UTF-8: written with ``surrogateescape``, their lines
    are the bytes of the file.
    """
    parts = []
    for file in sorted(after):
        if before.get(file, "") != after[file]:
            name = f"{prefix}/{file}" if prefix else file
            encoding = (encodings or {}).get(file, "utf-8")
            old, new = (_lines(texts.get(file, ""), encoding) for texts in (before, after))
            lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
            body = "".join(
                line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines
            )
            parts.append(f"diff --git a/{name} b/{name}\n{body}")
    return "".join(parts)


def _lines(text: str, encoding: str) -> list[str]:
    shown = text.encode(encoding).decode("utf-8", "surrogateescape")
    return re.findall(r"[^\n]*\n|[^\n]+", shown)


def patches(
    attempts: Sequence[Attempt],
    prefix: str,
    version: str,
    encodings: Mapping[str, str] | None = None,
) -> list[tuple[str, bytes]]:
    """Return one patch for each rewrite that was applied: file name and content, in order."""
    found = []
    for number, attempt in enumerate(attempts, 1):
        rewrite = attempt.rewrite
        name = f"{number:04d}-{rewrite.id}-{rewrite.name}.patch"
        changes = diff(attempt.before, attempt.after, prefix, encodings)
        text = f"{_head(attempt, number, len(attempts))}{changes}-- \nspecmap {version}\n\n"
        found.append((name, text.encode("utf-8", "surrogateescape")))
    return found


def _head(attempt: Attempt, number: int, total: int) -> str:
    rewrite, proposal = attempt.rewrite, attempt.proposal
    place = f"{proposal.span.file.rpartition('/')[2]}:{proposal.span.line}"
    record = [
        f"Rewrite: {rewrite.id} {rewrite.name}",
        f"Place: {proposal.span}",
        f"Safety: {rewrite.safety}",
        *(f"Fact: {fact}" for fact in proposal.facts),
        *(f"Proof: {step.layer} {step.status}: {step.detail}" for step in attempt.proof),
    ]
    if not attempt.proven:
        record.append("Proof: incomplete, applied with --unsafe")
    body = "\n".join(_wrap(line) for line in record)
    return (
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
        f"From: specmap <specmap@localhost>\nDate: {_DATE}\n"
        f"Subject: [PATCH {number}/{total}] {rewrite.id}: {rewrite.summary[0].lower()}"
        f"{rewrite.summary[1:]} ({place})\n"
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
        "Content-Transfer-Encoding: 8bit\n\n"
        f"{_wrap(proposal.what)}\n\n{body}\n---\n\n"
    )


def _wrap(line: str) -> str:
    return "\n".join(textwrap.wrap(" ".join(line.split()), 76, subsequent_indent="  "))
