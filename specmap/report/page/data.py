"""The data of a page: one side or two, and what differs; ``app/src/data.ts`` has the shapes."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Sequence

from specmap import __version__
from specmap.codemap.outcome import CYCLE
from specmap.codemap.verdict import PhaseName
from specmap.report.page import findings, ran, settings
from specmap.report.page.differences import differences
from specmap.report.page.graph import drawing
from specmap.report.page.headline import headline
from specmap.report.page.phases import workers
from specmap.report.page.secrets import scrubbed, secrets_of
from specmap.report.page.subject import Subject
from specmap.report.page.tables import Json, Tables
from specmap.report.page.timeline import Columns, timelines
from specmap.report.palette import PHASES, VERDICTS

SCHEMA = 1
_ALIGNED = 8
_LEVEL = 9


def page(
    subjects: Sequence[Subject], changes: Sequence[tuple[str, list[str]]] = ()
) -> tuple[Json, bytes]:
    """Return the JSON of a page of one side or two, and its columns.

    ``changes`` are title and lines of what two sources differ in.
    """
    columns = Columns()
    sides = [_side(subject, columns) for subject in subjects]
    data = {
        "schema": SCHEMA,
        "specmap": __version__,
        "sides": sides,
        "differences": differences(*subjects) if len(subjects) == 2 else [],
        "changes": [{"title": title, "lines": lines} for title, lines in changes],
        "palette": {
            "verdicts": {word: list(pair) for word, pair in VERDICTS.items()},
            "phases": {name.value: color for name, color in PHASES.items()},
        },
        "phases": [name.value for name in PhaseName],
        "cycle": [name.value for name in CYCLE],
    }
    secrets = frozenset(secret for subject in subjects for secret in secrets_of(subject))
    return scrubbed(data, secrets), columns.content()


def _side(subject: Subject, columns: Columns) -> Json:
    codemap = subject.codemap
    tables = Tables(subject.size_test, subject.source)
    drawn = drawing(codemap, tables)
    for atom, value in (pair for values in subject.values.values() for pair in values):
        if value.source in ("assumed", "stated"):
            tables.assumed(atom)
    shown = workers(subject, tables, drawn.sinks)
    drawn.judge(shown)
    recorded = timelines(subject.recordings, columns)
    side = {
        "label": subject.label,
        "target": codemap.target,
        "release": codemap.release,
        "commit": codemap.commit,
        "platform": codemap.platform,
        "partial": codemap.unread,
        "facts": _facts(subject),
        "headline": headline(subject).data(tables),
        "launch": settings.launch(subject.outcome, tables),
        "workers": shown,
        "graph": drawn.data(),
        "findings": findings.findings(subject.lint, tables),
        "crashes": findings.crashes(subject.lint),
        "rules": findings.rules(subject.lint),
        "tried": subject.fix is not None,
        "remedies": findings.remedies(subject, tables),
        "rewrites": findings.rewrites(subject),
        "run": ran.run(subject, tables, recorded),
    }
    return side | {"atoms": tables.atoms, "terms": tables.terms, "sources": tables.sources()}


def _facts(subject: Subject) -> list[Json]:
    codemap, run = subject.codemap, subject.run
    first = run.ranks[0] if run is not None and run.ranks else None
    release = codemap.release or ""
    versions = first.versions if first else {}
    rows = [
        ("target", codemap.target),
        ("release", "" if release in codemap.target else release),
        ("commit", codemap.commit or ""),
        ("platform", codemap.platform),
        ("run", subject.run_name if run is not None else ""),
        ("ranks", str(len(run.ranks)) if run is not None else ""),
        ("GPU", first.gpu if first else ""),
        *((name, version) for name, version in versions.items() if version != release),
    ]
    return [{"name": name, "value": value} for name, value in rows if value]


def packed(data: Json, columns: bytes) -> bytes:
    """Return data and columns as the page unpacks them; the same bytes for the same data."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    head = struct.pack("<I", len(text)) + text
    content = gzip.compress(head + bytes(-len(head) % _ALIGNED) + columns, _LEVEL, mtime=0)
    # The tenth byte names the operating system, which is nobody's business.
    return content[:9] + b"\xff" + content[10:]
