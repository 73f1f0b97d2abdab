"""What all parts of a side refer to: conditions with shared parts, and places with source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specmap.codemap.condition import All, Atom, AtomKind, Condition, Leaf, Not
from specmap.codemap.source import Span
from specmap.verdicts.sizes import SizeTest

Json = dict[str, Any]
"""One object of the page's data; ``app/src/data.ts`` says which keys."""

_BEFORE, _AFTER = 3, 3
_LONGEST = 40
"""Lines of one place that are shown; the rest of a long function is not."""

_FIXED = {
    AtomKind.STATE: "an attribute that changes while the server runs",
    AtomKind.UNKNOWN: "the source does not say what decides it",
}


class Tables:
    """Numbers the atoms and terms of a side, and collects the places that it names."""

    def __init__(
        self, size_test: Callable[[Atom], SizeTest | None], source: Callable[[str], str | None]
    ) -> None:
        self.atoms: list[Json] = []
        self.terms: list[Any] = []
        self._size_test = size_test
        self._source = source
        self._atoms: dict[tuple[Atom, Span | None], int] = {}
        self._same: dict[Atom, int] = {}
        self._terms: dict[Any, int] = {}
        self._known: dict[int, tuple[Condition, int]] = {}
        self._lines: dict[str, set[int]] = {}

    def place(self, span: Span | None) -> Json | None:
        """Return a place; its source will be on the page."""
        if span is None:
            return None
        last = min(span.end_line, span.line + _LONGEST)
        wanted = self._lines.setdefault(span.file, set())
        wanted.update(range(max(1, span.line - _BEFORE), last + _AFTER + 1))
        return {"file": span.file, "line": span.line, "end": span.end_line}

    def sources(self) -> dict[str, list[Json]]:
        """Return the source around every place so far, in chunks by file."""
        found = {}
        for file in sorted(self._lines):
            text = self._source(file)
            if text is not None:
                found[file] = _chunks(text.splitlines(), sorted(self._lines[file]))
        return found

    def atom(self, atom: Atom) -> int:
        """Return the number of an atom: its text, kind and place."""
        key = (atom, atom.span)
        if key not in self._atoms:
            number = self._atoms[key] = len(self.atoms)
            size = self._size_test(atom)
            self.atoms.append(
                {
                    "text": atom.text,
                    "kind": atom.kind.value,
                    "place": self.place(atom.span),
                    "same": self._same.setdefault(atom, number),
                    "size": size,
                    "togglable": size is None and atom.kind not in _FIXED,
                    "fixed": "" if size is not None else _FIXED.get(atom.kind, ""),
                }
            )
        return self._atoms[key]

    def assumed(self, atom: Atom) -> None:
        """Let an atom be toggled: what is assumed of a batch may not hold."""
        self.atoms[self.atom(atom)] |= {"togglable": True, "fixed": ""}

    def term(self, condition: Condition) -> int:
        """Return the number of a condition."""
        known = self._known.get(id(condition))
        if known is not None:
            return known[1]
        if isinstance(condition, Leaf):
            number = self._number(self.atom(condition.atom))
        elif isinstance(condition, Not):
            number = self._number(("not", self.term(condition.term)))
        else:
            word = "and" if isinstance(condition, All) else "or"
            number = self._number((word, *map(self.term, condition.terms)))
        self._known[id(condition)] = (condition, number)
        return number

    def _number(self, term: Any) -> int:
        if term not in self._terms:
            self._terms[term] = len(self.terms)
            self.terms.append(term)
        return self._terms[term]


def _chunks(lines: list[str], wanted: list[int]) -> list[Json]:
    """Return the wanted lines that there are, those that follow each other in one chunk."""
    chunks: list[Json] = []
    end = -1
    for line in wanted:
        if line > len(lines):
            break
        if line != end + 1:
            chunks.append({"line": line, "lines": []})
        chunks[-1]["lines"].append(lines[line - 1])
        end = line
    return chunks
