"""A run as JSON, versioned; ``docs/schema/run-1.0.schema.json`` says what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from specmap.codemap.event import AcceptStats, Run

SCHEMA_VERSION = "1.0"


def render_run_json(run: Run) -> str:
    """Return the run as JSON, keys in the order of the model."""
    data = {"schema": SCHEMA_VERSION, "failing": run.failing, **_plain(run)}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        made = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        if isinstance(value, AcceptStats):
            made["length"] = value.length
        return made
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
