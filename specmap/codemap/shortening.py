"""A shorter form of a finished condition, for people to read.

``simplify`` (see ``condition``) is what a scan can afford at every step. A finished condition is
read by people and evaluated many times: here its terms are compared as sets, whatever their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specmap.codemap.condition import (
    FALSE,
    TRUE,
    All,
    AnyOf,
    Condition,
    Leaf,
    Not,
    all_of,
    any_of,
    negate,
)

_Kind = type[All] | type[AnyOf]

# Rounds of the rules below; each makes the condition smaller, so that this is a guard only.
_MAX_ROUNDS = 40


def shorten(term: Condition) -> Condition:
    """Return an equivalent condition, never a longer one; terms keep their order.

    Rules, until none applies, the first three also with ``and`` and ``or`` exchanged:

    ``A and (A or B)``                    is ``A`` (absorption)
    ``A and (B or (A and C))``            is ``A and (B or C)`` (what is stated holds inside)
    ``(not M and A) or (M and A and B)``  is ``A and (not M or B)`` (a test added under M)
    ``(A and B) or (A and C)``            is ``A and (B or C)``
    """
    for factor in (False, True):
        for _ in range(_MAX_ROUNDS):
            shorter = _Round(factor).of(term)
            if shorter == term or shorter.size > term.size:
                break
            term = shorter
    return term


class _Round:
    """One round over a condition. What arms share is stated once when all else is done."""

    def __init__(self, factor: bool) -> None:
        self._factor = factor
        self._keys: dict[Condition, object] = {}

    def of(self, term: Condition) -> Condition:
        if isinstance(term, Leaf | Not):
            return term
        kind: _Kind = type(term)
        terms = self._told(kind, [self.of(inner) for inner in term.terms])
        terms = self._merged(kind, self._absorbed(kind, terms))
        return _join(kind, self._factored(terms) if self._factor and kind is AnyOf else terms)

    def key(self, term: Condition) -> object:
        """Return what two terms have in common that differ in the order of their terms only."""
        if isinstance(term, Leaf | Not):
            return term
        if term not in self._keys:
            self._keys[term] = (type(term), frozenset(map(self.key, term.terms)))
        return self._keys[term]

    def _parts(self, kind: _Kind, term: Condition) -> dict[object, Condition]:
        """Return the terms of a term that is joined the given way, else the term itself."""
        terms = term.terms if isinstance(term, kind) else (term,)
        return {self.key(part): part for part in terms}

    def _told(self, kind: _Kind, terms: list[Condition]) -> list[Condition]:
        """Inside every other term, what a conjunction states is true."""
        for place, told in enumerate(terms):
            known = self.key(told), self.key(negate(told))
            for other, term in enumerate(terms):
                if other != place:
                    terms[other] = self._assumed(term, *known, kind is All)
        return terms

    def _assumed(self, term: Condition, told: object, denied: object, holds: bool) -> Condition:
        key = self.key(term)
        if key in (told, denied):
            return TRUE if (key == told) is holds else FALSE
        if isinstance(term, Leaf | Not):
            return term
        inner = [self._assumed(one, told, denied, holds) for one in term.terms]
        return term if inner == list(term.terms) else _join(type(term), inner)

    def _absorbed(self, kind: _Kind, terms: list[Condition]) -> list[Condition]:
        """Drop each term that another one implies (in a disjunction: that implies another)."""
        other = AnyOf if kind is All else All
        parts = [frozenset(self._parts(other, term)) for term in terms]
        return [
            term
            for place, term in enumerate(terms)
            if not any(
                mine < parts[place] or (mine == parts[place] and before < place)
                for before, mine in enumerate(parts)
                if before != place
            )
        ]

    def _merged(self, kind: _Kind, terms: list[Condition]) -> list[Condition]:
        """Join the arms that a test parts and that differ by what one of them adds."""
        other: _Kind = AnyOf if kind is All else All
        for test in self._tests(other, terms):
            joined = self._joined_by(kind, other, test, terms)
            if joined is not None:
                return joined
        return terms

    def _tests(self, other: _Kind, terms: Iterable[Condition]) -> Iterator[Condition]:
        seen: set[object] = set()
        for term in terms:
            for key, part in self._parts(other, term).items():
                if key not in seen:
                    seen.add(key)
                    yield part

    def _joined_by(
        self, kind: _Kind, other: _Kind, test: Condition, terms: list[Condition]
    ) -> list[Condition] | None:
        with_test: list[Condition] = []
        without: list[Condition] = []
        rest: list[Condition] = []
        places: list[int] = []
        one, two = self._parts(other, test), self._parts(other, negate(test))
        for place, term in enumerate(terms):
            parts = self._parts(other, term)
            if one.keys() <= parts.keys():
                with_test.append(_join(other, [p for k, p in parts.items() if k not in one]))
                places.append(place)
            elif two.keys() <= parts.keys():
                without.append(_join(other, [p for k, p in parts.items() if k not in two]))
                places.append(place)
            else:
                rest.append(term)
        if not with_test or not without:
            return None
        first = self._parts(other, _join(kind, with_test))
        second = self._parts(other, _join(kind, without))
        if first.keys() > second.keys():
            shared, added, guard = second, first, negate(test)
        elif second.keys() >= first.keys():
            shared, added, guard = first, second, test
        else:
            return None
        more = [part for key, part in added.items() if key not in shared]
        arm = _join(other, [*shared.values(), _join(kind, [guard, _join(other, more)])])
        where = len([p for p in range(places[0]) if p not in places])
        return [*rest[:where], arm, *rest[where:]]

    def _factored(self, arms: list[Condition]) -> list[Condition]:
        """State once what the two arms share that share most."""
        parts = [self._parts(All, arm) for arm in arms]
        pairs = [
            (sum(parts[one][key].size for key in parts[one].keys() & parts[two].keys()), -one, -two)
            for two in range(len(arms))
            for one in range(two)
        ]
        shared, one, two = max(pairs, default=(0, 0, 0))
        if not shared:
            return arms
        first, second = parts[-one], parts[-two]
        rest = [
            all_of(*(p for k, p in a.items() if k not in b))
            for a, b in ((first, second), (second, first))
        ]
        arm = all_of(*(p for k, p in first.items() if k in second), any_of(*rest))
        return [arm if place == -one else a for place, a in enumerate(arms) if place != -two]


def _join(kind: _Kind, terms: Iterable[Condition]) -> Condition:
    return all_of(*terms) if kind is All else any_of(*terms)
