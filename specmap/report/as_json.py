"""The code map as JSON, and back.

The reader and the writer are made from the model's own type annotations, once for each
record, so that neither can forget a field. ``docs/json.md`` describes the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from specmap.codemap.condition import (
    All,
    AnyOf,
    Atom,
    AtomKind,
    Condition,
    Leaf,
    Not,
    atoms_of,
)
from specmap.codemap.condition import (
    render as condition_text,
)
from specmap.codemap.graph import SCHEMA_VERSION, CodeMap
from specmap.codemap.source import Span
from specmap.errors import SpecmapError
from specmap.report.options import RenderOptions
from specmap.report.select import narrow

_Convert = Callable[[Any], Any]

# Pairs that the model keeps as tuples, and the names that JSON gives to their halves.
_PAIRS = {
    ("Arm", "chain"): ("symbol", "line"),
    ("CallEdge", "rejects"): ("symbol", "keyword"),
    ("ClassRecord", "methods"): ("name", "line"),
    ("Factory", "arms"): ("class", "condition"),
}


class MapFormatError(SpecmapError):
    """A text is not a code map, or one of a newer major schema."""


def render(codemap: CodeMap, options: RenderOptions) -> str:
    """Return the narrowed map as indented JSON, with a final newline."""
    return dumps(narrow(codemap, options.workers, options.phases), indent=2) + "\n"


def dumps(codemap: CodeMap, indent: int | None = None) -> str:
    """Return the map as JSON; without ``indent`` in the shortest form."""
    body = _writer(CodeMap)(codemap)
    head = {"schema": body.pop("schema"), "partial": codemap.partial}
    separators = (",", ":") if indent is None else None
    return json.dumps(head | body, indent=indent, separators=separators)


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
def _writer(hint: Any) -> _Convert:
    if hint == Condition:
        return _write_condition
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return _record_writer(hint)
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return _tuple_converter(arguments, _writer, list)
    if get_origin(hint) in (Union, UnionType):
        return _optional(_writer(_only(arguments)))
    return _same


def _record_writer(record: type) -> _Convert:
    columns = tuple((name, _field_writer(record, name, hint)) for name, hint in _hints(record))

    def write(value: Any) -> dict[str, Any]:
        return {name: convert(getattr(value, name)) for name, convert in columns}

    return write


def _field_writer(record: type, name: str, hint: Any) -> _Convert:
    keys = _PAIRS.get((record.__name__, name))
    if keys is None:
        return _writer(hint)
    first, second = map(_writer, get_args(get_args(hint)[0]))
    return lambda pairs: [{keys[0]: first(a), keys[1]: second(b)} for a, b in pairs]


@cache
def _reader(hint: Any) -> _Convert:
    if hint == Condition:
        return _read_condition
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return _record_reader(hint)
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return _tuple_converter(arguments, _reader, tuple)
    if get_origin(hint) in (Union, UnionType):
        return _optional(_reader(_only(arguments)))
    return hint if isinstance(hint, type) and issubclass(hint, StrEnum) else _same


def _record_reader(record: type) -> _Convert:
    defaults = {field.name: field.default for field in fields(record)}
    columns = tuple((name, _field_reader(record, name, hint)) for name, hint in _hints(record))

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
    keys = _PAIRS.get((record.__name__, name))
    if keys is None:
        return _reader(hint)
    first, second = map(_reader, get_args(get_args(hint)[0]))
    return lambda pairs: tuple((first(pair[keys[0]]), second(pair[keys[1]])) for pair in pairs)


def _hints(record: type) -> list[tuple[str, Any]]:
    hints = get_type_hints(record)
    return [(field.name, hints[field.name]) for field in fields(record)]


def _only(arguments: tuple[Any, ...]) -> Any:
    (hint,) = (argument for argument in arguments if argument is not NoneType)
    return hint


def _optional(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _tuple_converter(
    arguments: tuple[Any, ...], make: Callable[[Any], _Convert], into: Callable[[Any], Any]
) -> _Convert:
    """Convert ``tuple[X, ...]``; plain text and numbers need no look at each element."""
    convert = make(arguments[0])
    if convert is _same:
        return into
    return lambda values: into([convert(value) for value in values])


def _write_condition(term: Condition) -> dict[str, Any]:
    atoms = list(dict.fromkeys(atoms_of(term)))
    places = {atom: index for index, atom in enumerate(atoms)}
    return {
        "text": condition_text(term),
        "tree": _write_tree(term, places),
        "atoms": [_write_atom(atom) for atom in atoms],
    }


def _write_tree(term: Condition, places: dict[Atom, int]) -> list[Any]:
    if isinstance(term, Leaf):
        return ["atom", places[term.atom]]
    if isinstance(term, Not):
        return ["not", _write_tree(term.term, places)]
    word = "and" if isinstance(term, All) else "or"
    return [word, *(_write_tree(inner, places) for inner in term.terms)]


def _write_atom(atom: Atom) -> dict[str, Any]:
    span = atom.span
    place = {"file": None, "line": None, "end_line": None} if span is None else _writer(Span)(span)
    return {"text": atom.text, "kind": atom.kind, **place}


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
