"""A comparison as JSON for other programs; it holds everything."""

from __future__ import annotations

import json
from dataclasses import asdict

from specmap.compare.model import MapDiff
from specmap.report.diff import DiffOptions

SCHEMA_VERSION = "1.0"


def render(found: MapDiff, options: DiffOptions) -> str:
    """Return one object with a list for each kind of change, most important first."""
    content = {"specmap_diff": SCHEMA_VERSION, **asdict(found)}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
