"""The outcome of a launch, and an explanation, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from specmap.codemap.explanation import Explanation
from specmap.codemap.outcome import Outcome

SCHEMA_VERSION = "1.0"


def render_outcome_json(outcome: Outcome) -> str:
    """Return the outcome as one JSON object, keys as the records call them."""
    data = plain(outcome)
    assert isinstance(data, dict)
    worker = outcome.worker
    head = {
        "schema": SCHEMA_VERSION,
        "worker": worker.name if worker is not None else None,
        "findings": outcome.findings,
    }
    return json.dumps({**head, **data}, indent=1) + "\n"


def render_explanation_json(explanation: Explanation) -> str:
    """Return the explanation as one JSON object, keys as the records call them."""
    data = plain(explanation)
    assert isinstance(data, dict)
    return json.dumps({"schema": SCHEMA_VERSION, **data}, indent=1) + "\n"


def plain(value: object) -> object:
    """Return a record as tables and lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value
