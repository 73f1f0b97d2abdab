"""The code map as a table of its different values: small, and read in one pass.

Guards, spans and conditions repeat thousands of times in a map. Here each is written once,
after the values it is made of, and named by its row. This is what the cache keeps; the
format for people and other programs is the JSON report.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any

from specmap.codemap import condition, graph, hazards, source, verdict
from specmap.codemap.condition import All, AnyOf, Leaf, Not
from specmap.codemap.graph import CodeMap

_TUPLE = "tuple"


def _kinds() -> dict[str, type[Any]]:
    """Every class of the model, by name."""
    modules = (source, verdict, condition, hazards, graph)
    values = [v for module in modules for v in vars(module).values()]
    classes = [v for v in values if isinstance(v, type)]
    model = [c for c in classes if is_dataclass(c) or (issubclass(c, StrEnum) and c is not StrEnum)]
    return {c.__name__: c for c in (*model, Leaf, Not, All, AnyOf)}


_KINDS = _kinds()
_FIELDS = {
    kind: tuple(field.name for field in fields(kind)) if is_dataclass(kind) else kind.__match_args__
    for kind in _KINDS.values()
    if not issubclass(kind, StrEnum)
}


class _Packer:
    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._places: dict[object, int] = {}
        self._seen: dict[int, int] = {}

    def place(self, value: Any) -> int:
        """Return the row of a value, written now if it is new."""
        known = self._seen.get(id(value))
        if known is None:
            known = self._seen[id(value)] = self._place(value)
        return known

    def _place(self, value: Any) -> int:
        kind = type(value)
        if kind is tuple:
            row: Any = (_TUPLE, *map(self.place, value))
        elif isinstance(value, StrEnum):
            row = (kind.__name__, self.place(value.value))
        elif kind in _FIELDS:
            row = (kind.__name__, *(self.place(getattr(value, f)) for f in _FIELDS[kind]))
        else:
            row = value
        key = (kind, row)
        if key not in self._places:
            self._places[key] = len(self.rows)
            self.rows.append(row)
        return self._places[key]


def dumps(codemap: CodeMap) -> str:
    """Return the map as text; equal maps give equal texts."""
    packer = _Packer()
    packer.place(codemap)
    names = (_TUPLE, *_KINDS)
    numbers = {name: number for number, name in enumerate(names)}
    rows = [(numbers[r[0]], *r[1:]) if isinstance(r, tuple) else r for r in packer.rows]
    return json.dumps([names, rows], separators=(",", ":"))


def loads(text: str | bytes) -> CodeMap:
    """Read what :func:`dumps` wrote.

    Raises:
        ValueError: the text is something else, or of another model.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        names, rows = json.loads(text)
        made = _unpacked(rows, [tuple if name == _TUPLE else _maker(name) for name in names])
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a packed code map: {error}") from None
    finally:
        if collects:
            gc.enable()
    if not made or not isinstance(made[-1], CodeMap):
        raise ValueError("not a packed code map")
    return made[-1]


def _maker(name: str) -> Callable[[list[Any]], Any]:
    kind = _KINDS[name]
    return lambda values: kind(*values)


def _unpacked(rows: Sequence[Any], makers: Sequence[Callable[[list[Any]], Any]]) -> list[Any]:
    made: list[Any] = []
    for row in rows:
        if isinstance(row, list):
            made.append(makers[row[0]]([made[place] for place in row[1:]]))
        else:
            made.append(row)
    return made
