"""The baseline file: findings that were accepted, kept beside the source they are about."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from specmap.codemap.finding import FindingStatus, Known, LintReport
from specmap.errors import SpecmapError
from specmap.lint.known import known_of

VERSION = 1
_TEXTS = ("rule", "holder", "anchor", "message")


def dumps(report: LintReport) -> str:
    """Return a baseline of every finding that no comment accepts, in a stable order."""
    kept = [f for f in report.findings if f.status is not FindingStatus.SUPPRESSED]
    known = known_of(LintReport(report.target, report.release, report.rules, tuple(kept)))
    rows = sorted(known, key=lambda k: (k.rule, k.holder, k.anchor, k.message))
    content = {"specmap_baseline": VERSION, "findings": [asdict(row) for row in rows]}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def load(path: Path) -> tuple[Known, ...]:
    """Read a baseline file.

    Raises:
        SpecmapError: it cannot be read, or it is not a baseline.
    """
    try:
        return loads(path.read_text("utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecmapError(
            f"cannot read the baseline {str(path)!r}: {reason}; --update-baseline writes it"
        ) from None
    except ValueError as error:
        raise SpecmapError(
            f"{str(path)!r} is not a baseline: {error}; --update-baseline writes a new one"
        ) from None


def loads(text: str) -> tuple[Known, ...]:
    """Read what :func:`dumps` wrote.

    Raises:
        ValueError: the text is something else, or of a newer version.
    """
    content = json.loads(text)
    if not isinstance(content, dict) or content.get("specmap_baseline") != VERSION:
        raise ValueError(f"'specmap_baseline' must be {VERSION}")
    rows = content.get("findings")
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise ValueError("'findings' must be a list of findings")
    return tuple(Known(**{**row, "phases": tuple(row["phases"])}) for row in rows)


def _is_row(row: object) -> bool:
    if not isinstance(row, dict) or set(row) != {*_TEXTS, "phases"}:
        return False
    phases = row["phases"]
    texts = [row[name] for name in _TEXTS]
    return isinstance(phases, list) and all(isinstance(t, str) for t in (*texts, *phases))
