"""The code map as JSON, and back.

The reader and the writer (:mod:`specmap.report.json_text`) are made from the model's own type
annotations, once for each record, so that neither can forget a field. ``docs/json.md``
describes the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from specmap.codemap.condition import (
    All,
    AnyOf,
    Atom,
    AtomKind,
    Condition,
    Leaf,
    Not,
)
from specmap.codemap.graph import SCHEMA_VERSION, CodeMap
from specmap.codemap.source import Span
from specmap.errors import SpecmapError
from specmap.report.json_text import PAIRS, dumps, hints_of, inner_hint
from specmap.report.options import RenderOptions
from specmap.report.select import narrow

__all__ = ["MapFormatError", "dumps", "load", "render"]

_Convert = Callable[[Any], Any]


class MapFormatError(SpecmapError):
    """A text is not a code map, or one of a newer major schema."""


def render(codemap: CodeMap, options: RenderOptions) -> str:
    """Return the narrowed map as indented JSON, with a final newline."""
    return dumps(narrow(codemap, options.workers, options.phases), indent=2) + "\n"


def load(text: str | bytes) -> CodeMap:
    """Read what :func:`dumps` wrote; unknown keys are ignored.

    Raises:
        MapFormatError: not JSON, not a code map, or a newer major schema.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MapFormatError(f"not a code map: {error}; scan again") from None
    version = data.get("schema") if isinstance(data, dict) else None
    major = version.partition(".")[0] if isinstance(version, str) else ""
    if not major.isdecimal():
        raise MapFormatError("not a code map: it has no schema version; scan again")
    known = SCHEMA_VERSION.partition(".")[0]
    if int(major) > int(known):
        raise MapFormatError(
            f"code map schema {version} is newer than the {known}.x that this specmap reads; "
            "update specmap, or scan again with this one"
        )
    try:
        codemap: CodeMap = _reader(CodeMap)(data)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise MapFormatError(f"not a code map of schema {version} ({detail}); scan again") from None
    return codemap


def _same(value: Any) -> Any:
    return value


@cache
def _reader(hint: Any) -> _Convert:
    if hint == Condition:
        return _read_condition
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return _record_reader(hint)
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return _tuple_reader(_reader(arguments[0]))
    if get_origin(hint) in (Union, UnionType):
        return _optional(_reader(inner_hint(arguments)))
    return hint if isinstance(hint, type) and issubclass(hint, StrEnum) else _same


def _record_reader(record: type) -> _Convert:
    defaults = {field.name: field.default for field in fields(record)}
    columns = tuple((name, _field_reader(record, name, hint)) for name, hint in hints_of(record))

    def read(value: Any) -> Any:
        return record(
            *(
                convert(value[name])
                if name in value or defaults[name] is MISSING
                else defaults[name]
                for name, convert in columns
            )
        )

    return read


def _field_reader(record: type, name: str, hint: Any) -> _Convert:
    keys = PAIRS.get((record.__name__, name))
    if keys is None:
        return _reader(hint)
    first, second = map(_reader, get_args(get_args(hint)[0]))
    return lambda pairs: tuple((first(pair[keys[0]]), second(pair[keys[1]])) for pair in pairs)


def _optional(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _tuple_reader(convert: _Convert) -> _Convert:
    """Convert ``tuple[X, ...]``; plain text and numbers need no look at each element."""
    if convert is _same:
        return tuple
    return lambda values: tuple([convert(value) for value in values])


def _read_condition(value: Any) -> Condition:
    leaves = [Leaf(_read_atom(atom)) for atom in value["atoms"]]
    return _read_tree(value["tree"], leaves)


def _read_tree(tree: Any, leaves: list[Leaf]) -> Condition:
    word, *terms = tree
    if word == "atom":
        (index,) = terms
        leaf: Leaf = leaves[index]
        return leaf
    inner = tuple(_read_tree(term, leaves) for term in terms)
    if word == "not":
        return Not(*inner)
    if word not in ("and", "or"):
        raise ValueError(f"a condition cannot start with {word!r}")
    return All(inner) if word == "and" else AnyOf(inner)


def _read_atom(value: Any) -> Atom:
    span = None if value["file"] is None else _reader(Span)(value)
    return Atom(value["text"], AtomKind(value["kind"]), span)
