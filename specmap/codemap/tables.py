"""Checks tables that people write (TOML): every error at once, with key and allowed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specmap.nearest import meant

_NAMES = {str: "a string", int: "a whole number", bool: "true or false", list: "a list of strings"}


@dataclass(frozen=True, slots=True)
class Key:
    """What one key may hold: ``str``, ``int``, ``bool``, ``list`` (of strings) or ``dict``.

    ``choices`` are the values allowed, for a list those of its items; empty allows all.
    """

    kind: type
    choices: tuple[str, ...] = ()
    required: bool = False


def problems(table: Mapping[str, object], keys: Mapping[str, Key]) -> Iterator[str]:
    """Yield what is wrong with a table, one line for each key, in the order of the table."""
    for name, value in table.items():
        key = keys.get(name)
        wrong = _unknown(name, keys) if key is None else _wrong(value, key)
        if wrong:
            yield f"{name}: {wrong}"
    for name, key in keys.items():
        if key.required and name not in table:
            yield f"{name}: missing; must be {_allowed(key)}"


def _unknown(name: str, keys: Mapping[str, Key]) -> str:
    return f"unknown key; {meant(name, keys, _listed(keys), 1)}"


def _listed(names: Mapping[str, Key]) -> str:
    return f"allowed: {', '.join(names)}" if names else "none is allowed here"


def _wrong(value: object, key: Key) -> str:
    if key.kind is dict:
        return "" if isinstance(value, dict) else "must be a table"
    fits = isinstance(value, key.kind) and not (key.kind is int and isinstance(value, bool))
    items = value if isinstance(value, list) else [value]
    if not fits or (key.kind is list and not all(isinstance(item, str) for item in items)):
        return f"must be {_allowed(key)}, not {value!r}"
    unknown = [item for item in items if key.choices and item not in key.choices]
    return f"{unknown[0]!r} is not allowed; must be {_allowed(key)}" if unknown else ""


def _allowed(key: Key) -> str:
    if key.choices:
        return f"{'a list of' if key.kind is list else 'one of'} {', '.join(key.choices)}"
    return _NAMES.get(key.kind, "a table")
