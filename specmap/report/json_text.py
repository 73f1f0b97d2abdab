"""The code map as JSON text, written straight from the model's own type annotations.

A map holds the same guards, spans and atoms thousands of times. The text of an object is made
once for each depth at which it stands, and copied from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from specmap.codemap.condition import All, Atom, Condition, Leaf, Not, atoms_of
from specmap.codemap.condition import render as condition_text
from specmap.codemap.graph import CodeMap
from specmap.codemap.source import Span

_Write = Callable[[Any, str], str]
"""Writes a value; the margin is the line break before its closing bracket."""

# Pairs that the model keeps as tuples, and the names that JSON gives to their halves.
PAIRS = {
    ("Arm", "chain"): ("symbol", "line"),
    ("CallEdge", "rejects"): ("symbol", "keyword"),
    ("ClassRecord", "methods"): ("name", "line"),
    ("Factory", "arms"): ("class", "condition"),
}
_PLACE = tuple(field.name for field in fields(Span))


def dumps(codemap: CodeMap, indent: int | None = None) -> str:
    """Return the map as JSON; without ``indent`` in the shortest form."""
    return _Writer(indent).written(codemap)


def hints_of(record: type) -> list[tuple[str, Any]]:
    """Return the fields of a record and their types."""
    hints = get_type_hints(record)
    return [(field.name, hints[field.name]) for field in fields(record)]


def inner_hint(arguments: tuple[Any, ...]) -> Any:
    """Return the type of ``T | None``, from its arguments."""
    (hint,) = (argument for argument in arguments if argument is not NoneType)
    return hint


# What stands in the map itself and nowhere below: nothing is gained by keeping its text.
_ONCE = frozenset(
    {CodeMap, *(part for _, hint in hints_of(CodeMap) for part in get_args(hint)[:1])}
)


class _Writer:
    """Lays JSON out as :func:`json.dumps` does."""

    def __init__(self, indent: int | None) -> None:
        self._top, self._step = ("", "") if indent is None else ("\n", " " * indent)
        self._colon = ":" if indent is None else ": "
        self._plain: Callable[[Any], str] = lru_cache(None, typed=True)(json.dumps)
        self._writers: dict[Any, _Write] = {}
        self._objects: dict[tuple[tuple[str, ...], str], str] = {}

    def written(self, codemap: CodeMap) -> str:
        """Return the text of a map."""
        return self._writer(CodeMap)(codemap, self._top)

    def _writer(self, hint: Any) -> _Write:
        if hint not in self._writers:
            self._writers[hint] = self._made(hint)
        return self._writers[hint]

    def _made(self, hint: Any) -> _Write:
        if hint == Condition:
            return _once(self._condition)
        if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
            return self._record(hint) if hint in _ONCE else _once(self._record(hint))
        arguments = get_args(hint)
        if get_origin(hint) is tuple:
            return self._tuple(self._writer(arguments[0]))
        if get_origin(hint) in (Union, UnionType):
            inner = self._writer(inner_hint(arguments))
            return lambda value, margin: "null" if value is None else inner(value, margin)
        return lambda value, _: self._plain(value)

    def _record(self, record: type) -> _Write:
        hints = dict(hints_of(record))
        if record is CodeMap:
            hints = {"schema": hints["schema"], "partial": bool, **hints}
        columns = [(name, self._field(record, name, hint)) for name, hint in hints.items()]

        def write(value: Any, margin: str) -> str:
            inside = margin + self._step
            texts = [column(getattr(value, name), inside) for name, column in columns]
            return self._object(tuple(hints), margin) % tuple(texts)

        return write

    def _field(self, record: type, name: str, hint: Any) -> _Write:
        keys = PAIRS.get((record.__name__, name))
        if keys is None:
            return self._writer(hint)
        first, second = map(self._writer, get_args(get_args(hint)[0]))

        def write(pair: tuple[Any, Any], margin: str) -> str:
            inside = margin + self._step
            halves = (first(pair[0], inside), second(pair[1], inside))
            return self._object(keys, margin) % halves

        return self._tuple(write)

    def _tuple(self, write: _Write) -> _Write:
        def written(values: tuple[Any, ...], margin: str) -> str:
            inside = margin + self._step
            return self._array([write(value, inside) for value in values] if values else (), margin)

        return written

    def _array(self, items: Sequence[str], margin: str) -> str:
        if not items:
            return "[]"
        inside = margin + self._step
        return f"[{inside}{f',{inside}'.join(items)}{margin}]"

    def _object(self, keys: tuple[str, ...], margin: str) -> str:
        """Return the text of an object, with ``%s`` in the place of each value."""
        if (keys, margin) not in self._objects:
            inside = margin + self._step
            body = f",{inside}".join(f"{json.dumps(key)}{self._colon}%s" for key in keys)
            self._objects[keys, margin] = f"{{{inside}{body}{margin}}}"
        return self._objects[keys, margin]

    def _condition(self, term: Condition, margin: str) -> str:
        atoms = {atom: place for place, atom in enumerate(dict.fromkeys(atoms_of(term)))}
        inside = margin + self._step
        written = [self._atom(atom, inside + self._step) for atom in atoms]
        return self._object(("text", "tree", "atoms"), margin) % (
            self._plain(condition_text(term)),
            self._tree(term, atoms, inside),
            self._array(written, inside),
        )

    def _tree(self, term: Condition, places: dict[Atom, int], margin: str) -> str:
        if isinstance(term, Leaf):
            return self._array(('"atom"', str(places[term.atom])), margin)
        inside = margin + self._step
        word = "not" if isinstance(term, Not) else "and" if isinstance(term, All) else "or"
        terms = (term.term,) if isinstance(term, Not) else term.terms
        return self._array(
            (f'"{word}"', *(self._tree(inner, places, inside) for inner in terms)), margin
        )

    def _atom(self, atom: Atom, margin: str) -> str:
        place = [None if atom.span is None else getattr(atom.span, name) for name in _PLACE]
        texts = map(self._plain, (atom.text, atom.kind, *place))
        return self._object(("text", "kind", *_PLACE), margin) % tuple(texts)


def _once(write: _Write) -> _Write:
    known: dict[tuple[int, str], str] = {}

    def written(value: Any, margin: str) -> str:
        place = (id(value), margin)
        if place not in known:
            known[place] = write(value, margin)
        return known[place]

    return written
