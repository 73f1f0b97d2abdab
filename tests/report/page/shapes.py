"""Checks data against the TypeScript types that the front end reads it with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import specmap

TYPES = Path(specmap.__file__).parent / "report/page/app/src/data.ts"
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DECLARED = re.compile(r"export (?:interface (\w+) (\{)|type (\w+) =([^;]*);)")
_FIELD = re.compile(r"(\w+)(\??): ")
_BASE: dict[str, Any] = {"string": str, "number": (int, float), "boolean": bool}


@cache
def declared() -> dict[str, str]:
    """Return the declared types by name: the text of an interface's braces, or of a type."""
    text = _COMMENTS.sub("", TYPES.read_text("utf-8"))
    found = {}
    for match in _DECLARED.finditer(text):
        name, brace, other, meaning = match.groups()
        if brace:
            found[name] = text[match.start(2) : _end(text, match.start(2))]
        else:
            found[other] = meaning
    return {name: " ".join(meaning.split()) for name, meaning in found.items()}


def _end(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "{[<(") - (text[at] in "}]>)")
        if depth == 0:
            return at + 1
    raise AssertionError("a brace is not closed")


def _split(text: str, mark: str) -> list[str]:
    """Split at a mark that stands in no bracket."""
    parts, depth, last = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "{[<(") - (letter in "}]>)")
        if letter == mark and depth == 0:
            parts.append(text[last:at])
            last = at + 1
    return [part.strip() for part in (*parts, text[last:]) if part.strip()]


def wrong(value: Any, kind: str, path: str = "page") -> Iterator[str]:
    """Yield where a value is not of a type."""
    ways = _split(kind, "|")
    if len(ways) > 1:
        answers = [list(wrong(value, way, path)) for way in ways]
        if all(answers):
            yield min(answers, key=len)[0]
        return
    kind = ways[0]
    if kind in declared():
        yield from wrong(value, declared()[kind], path)
    elif kind.endswith("[]"):
        yield from _list(value, kind[:-2].strip(), path)
    elif kind.startswith("(") and kind.endswith(")"):
        yield from wrong(value, kind[1:-1], path)
    elif kind.startswith("["):
        yield from _tuple(value, _split(kind[1:-1], ","), path)
    elif kind.startswith("{"):
        yield from _object(value, kind[1:-1], path)
    elif kind.startswith(("Record<", "Partial<")):
        yield from _record(value, kind, path)
    elif kind in _BASE:
        if not isinstance(value, _BASE[kind]) or isinstance(value, bool) is not (kind == "boolean"):
            yield f"{path}: {value!r} is no {kind}"
    elif kind == "null" or kind.startswith('"') or kind.isdecimal():
        if value != {"null": None}.get(kind, int(kind) if kind.isdecimal() else kind[1:-1]):
            yield f"{path}: {value!r} is not {kind}"
    else:
        raise AssertionError(f"the type {kind!r} is not understood")


def _list(value: Any, kind: str, path: str) -> Iterator[str]:
    if not isinstance(value, list | tuple):
        yield f"{path}: {value!r} is no list"
        return
    for number, item in enumerate(value):
        yield from wrong(item, kind, f"{path}[{number}]")


def _tuple(value: Any, kinds: list[str], path: str) -> Iterator[str]:
    if not isinstance(value, list | tuple):
        yield f"{path}: {value!r} is no tuple"
        return
    if kinds[-1].startswith("..."):
        kinds = [*kinds[:-1], *[kinds[-1][3:-2]] * (len(value) - len(kinds) + 1)]
    if len(value) != len(kinds):
        yield f"{path}: {len(value)} items instead of {len(kinds)}"
    for number, (item, kind) in enumerate(zip(value, kinds, strict=False)):
        yield from wrong(item, kind, f"{path}[{number}]")


def _object(value: Any, text: str, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is no object"
        return
    fields = {}
    for part in _split(text, ";"):
        match = _FIELD.match(part)
        assert match is not None, part
        fields[match[1]] = part[match.end() :]
    if set(value) != set(fields):
        yield f"{path}: keys {sorted(set(value) ^ set(fields))} are on one side only"
    for name in set(value) & set(fields):
        yield from wrong(value[name], fields[name], f"{path}.{name}")


def _record(value: Any, kind: str, path: str) -> Iterator[str]:
    inner = kind.partition("<")[2][:-1]
    if kind.startswith("Partial<"):
        yield from wrong(value, inner, path)
        return
    keys, values = _split(inner, ",")
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is no object"
        return
    for key, item in value.items():
        yield from wrong(key, keys, f"{path} key")
        yield from wrong(item, values, f"{path}.{key}")
