"""Conditions on a page: one term a line, and parts that come again under a letter.

The conditions of one worker share most of their parts. A part is written in full once, at
the end of the page; elsewhere its letter stands for it, or ``not`` and its letter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from string import ascii_uppercase

from rich.text import Text

from specmap.codemap.condition import (
    All,
    AnyOf,
    Atom,
    Condition,
    Leaf,
    Not,
    atoms_of,
    negate,
    render,
)
from specmap.report.wording import Places

# Shorter parts are as quickly read as a letter is looked up.
_WORTH_A_NAME = 4
# More lines than anybody reads; the JSON report always has the whole condition.
_MAX_LINES = 40
_BARE = ("all of:", "any of:", "always", "never")
_PARTS = re.compile(r"[^ .,(]*[ .,(]*")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a condition; ``depth`` counts from 0, ``atom`` is None on a heading."""

    depth: int
    text: str
    atom: Atom | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a listing: text, and notes that stand in columns right of it."""

    depth: int
    mark: str
    text: str
    notes: tuple[str, ...]


class Names:
    """Letters for the parts of conditions, given in the order in which they are printed."""

    def __init__(self, conditions: Iterable[Condition] = ()) -> None:
        self._repeated = _repeated(conditions)
        self._letters: dict[Condition, str] = {}
        self._next = (_letters(number) for number in count())

    def of(self, term: Condition) -> str | None:
        """Return ``A``, or ``not A``, for a part that comes more than once."""
        opposite = negate(term)
        if opposite in self._letters:
            return f"not {self._letters[opposite]}"
        if term not in self._repeated and opposite not in self._repeated:
            return None
        if term not in self._letters:
            self._letters[term] = next(self._next)
        return self._letters[term]

    def printed(self) -> Iterator[tuple[str, Condition]]:
        """Yield letters and parts; printing one may add others behind it."""
        done = 0
        while done < len(self._letters):
            term, letter = list(self._letters.items())[done]
            yield letter, term
            done += 1


def _letters(number: int) -> str:
    more, last = divmod(number, len(ascii_uppercase))
    return (_letters(more - 1) if more else "") + ascii_uppercase[last]


def _repeated(conditions: Iterable[Condition]) -> set[Condition]:
    met: Counter[Condition] = Counter()
    todo = list(conditions)
    while todo:
        term = todo.pop()
        if not isinstance(term, All | AnyOf) or term.size < _WORTH_A_NAME:
            continue
        opposite = negate(term)
        key = opposite if opposite in met else term
        met[key] += 1
        if met[key] == 1:
            todo += term.terms
    return {term for term, times in met.items() if times > 1}


def lines(term: Condition, names: Names, whole: bool = False) -> Iterator[Line]:
    """Yield a condition as a nested list; ``whole`` writes out the term itself in any case."""
    yield from _lines(term, names, 0, whole)


def _lines(term: Condition, names: Names, depth: int, whole: bool) -> Iterator[Line]:
    if isinstance(term, Leaf):
        yield Line(depth, term.atom.text, term.atom)
    elif isinstance(term, Not):
        inner = term.term
        yield Line(depth, render(term), inner.atom if isinstance(inner, Leaf) else None)
    elif not term.terms:
        yield Line(depth, render(term), None)
    elif not whole and (name := names.of(term)):
        yield Line(depth, f"{name}, below", None)
    else:
        yield Line(depth, "all of:" if isinstance(term, All) else "any of:", None)
        for inner in term.terms:
            yield from _lines(inner, names, depth + 1, whole=False)


def condition(
    term: Condition, places: Places, width: int, names: Names, whole: bool = False
) -> Text:
    """Return a condition with one term a line: text, what decides it, where it stands."""
    found = list(lines(term, names, whole))
    shown = found if len(found) <= _MAX_LINES else found[: _MAX_LINES - 1]
    rows = [
        Row(
            line.depth,
            "" if line.text in _BARE else "- ",
            line.text,
            (line.atom.kind.value, places.brief(line.atom.span)) if line.atom else (),
        )
        for line in shown
    ]
    text = listing(rows, width)
    if len(shown) < len(found):
        text.append(f"\n... {len(found) - len(shown)} more lines: --format json", style="dim")
    return text


def terms_in(term: Condition) -> int:
    """Return the number of different tests in a condition."""
    return len(set(atoms_of(term)))


def listing(rows: Sequence[Row], width: int) -> Text:
    """Return rows with their notes in columns; long text takes the whole width, then its notes."""
    notes = [max(map(len, column)) for column in _columns(rows)]
    room = width - sum(notes) - 2 * len(notes)
    column = min(max((_start(row) + len(row.text) for row in rows), default=0), max(room, 24))
    out: list[Text] = []
    for row in rows:
        parts = wrapped(row.text, width - _start(row))
        first = " " * (2 * row.depth) + row.mark
        text = Text(first + ("\n" + " " * _start(row)).join(parts))
        if any(row.notes):
            end = _start(row) + len(parts[-1])
            gap = " " * (column - end) if end <= column else "\n" + " " * column
            padded = (note.ljust(size) for note, size in zip(row.notes, notes, strict=True))
            text.append(gap + "  " + "  ".join(padded).rstrip(), style="dim")
        out.append(text)
    return Text("\n").join(out)


def _columns(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    return list(zip(*(row.notes for row in rows if row.notes), strict=True))


def _start(row: Row) -> int:
    return 2 * row.depth + len(row.mark)


def wrapped(text: str, width: int) -> list[str]:
    """Break text into lines, after a space, dot, comma or bracket, or anywhere if it must."""
    out = [""]
    for part in _PARTS.findall(text):
        if out[-1] and len(out[-1]) + len(part.rstrip()) > width:
            out.append("")
        out[-1] += part
        while len(out[-1].rstrip()) > width:
            out[-1:] = [out[-1][:width], out[-1][width:]]
    return [line.rstrip() for line in out]
