"""A shorter form of a finished condition, for people to read.

``simplify`` (see ``condition``) is what a scan can afford at every step. A finished condition is
read by people and evaluated many times: here its terms are compared as sets, whatever their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
        rules = _Rules(factor)
        for _ in range(_MAX_ROUNDS):
            shorter = rules.of(term)
            if shorter == term or shorter.size > term.size:
                break
            term = shorter
    return term


class _Rules:
    """Applies the rules once to every part. What arms share is stated once all else is done.

    What a part comes to is kept by the identity of the part, which the entry keeps alive:
    equal parts may come from different places of the source.
    """

    def __init__(self, factor: bool) -> None:
        self._factor = factor
        self._keys: dict[Condition, object] = {}
        self._leaves: dict[Condition, frozenset[Leaf]] = {}
        self._done: dict[int, tuple[Condition, Condition]] = {}
        self._split: dict[tuple[_Kind, int], tuple[Condition, Mapping[object, Condition]]] = {}

    def of(self, term: Condition) -> Condition:
        if isinstance(term, Leaf | Not):
            return term
        if id(term) not in self._done:
            self._done[id(term)] = term, self._applied(term)
        return self._done[id(term)][1]

    def _applied(self, term: All | AnyOf) -> Condition:
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

    def _parts(self, kind: _Kind, term: Condition) -> Mapping[object, Condition]:
        """Return the terms of a term that is joined the given way, else the term itself."""
        known = self._split.get((kind, id(term)))
        if known is None:
            terms = term.terms if isinstance(term, kind) else (term,)
            known = term, {self.key(part): part for part in terms}
            self._split[kind, id(term)] = known
        return known[1]

    def leaves(self, term: Condition) -> frozenset[Leaf]:
        if term not in self._leaves:
            if isinstance(term, Leaf):
                found = frozenset((term,))
            elif isinstance(term, Not):
                found = self.leaves(term.term)
            else:
                found = frozenset().union(*map(self.leaves, term.terms))
            self._leaves[term] = found
        return self._leaves[term]

    def _told(self, kind: _Kind, terms: list[Condition]) -> list[Condition]:
        """Inside every other term, what a conjunction states is true."""
        for place, told in enumerate(terms):
            keys = self.key(told), self.key(negate(told))
            leaves = self.leaves(told)
            for other, term in enumerate(terms):
                if other != place:
                    terms[other] = self._assumed(term, keys, leaves, kind is All)
        return terms

    def _assumed(
        self, term: Condition, keys: tuple[object, object], leaves: frozenset[Leaf], holds: bool
    ) -> Condition:
        """Replace what has the first key, and the opposite of what has the second."""
        if not leaves <= self.leaves(term):
            return term
        key = self.key(term)
        if key in keys:
            return TRUE if (key == keys[0]) is holds else FALSE
        if isinstance(term, Leaf | Not):
            return term
        inner = [self._assumed(one, keys, leaves, holds) for one in term.terms]
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
        places: dict[object, set[int]] = {}
        tests: dict[object, Condition] = {}
        for place, term in enumerate(terms):
            for key, part in self._parts(other, term).items():
                places.setdefault(key, set()).add(place)
                tests.setdefault(key, part)
        for key, test in tests.items():
            denied = (places.get(part, set()) for part in self._parts(other, negate(test)))
            without = set(range(len(terms))).intersection(*denied) - places[key]
            joined = without and self._joined_by(kind, other, test, places[key], without, terms)
            if joined:
                return joined
        return terms

    def _joined_by(
        self,
        kind: _Kind,
        other: _Kind,
        test: Condition,
        at_test: set[int],
        at_denied: set[int],
        terms: list[Condition],
    ) -> list[Condition] | None:
        with_test, without = (
            [self._rest(other, terms[place], self._parts(other, guard)) for place in sorted(found)]
            for guard, found in ((test, at_test), (negate(test), at_denied))
        )
        places = sorted(at_test | at_denied)
        rest = [term for place, term in enumerate(terms) if place not in places]
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
        return [*rest[: places[0]], arm, *rest[places[0] :]]

    def _rest(self, kind: _Kind, term: Condition, without: Mapping[object, Condition]) -> Condition:
        parts = self._parts(kind, term)
        return _join(kind, [part for key, part in parts.items() if key not in without])

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
