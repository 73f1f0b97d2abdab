"""Boolean conditions over normalised source tests.

A condition is a tree of frozen nodes. It is simplified with boolean.py, printed in
Python's own words, and evaluated three-valued: ``True``, ``False`` or ``None`` (not
known), because a launch command rarely settles every test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import boolean

from specmap.codemap.source import Span


class AtomKind(StrEnum):
    """What decides a test.

    ``launch`` server argument, environment variable or platform; ``batch`` batch size,
    forward mode and other facts of one pass; ``state`` an attribute set while the server
    runs; ``unknown`` anything that could not be classified.
    """

    LAUNCH = "launch"
    BATCH = "batch"
    STATE = "state"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Atom:
    """One test as the source writes it, white space normalised.

    Two atoms with the same text are the same test; ``span`` is where it was first met.
    """

    text: str
    kind: AtomKind
    span: Span | None = field(default=None, compare=False)


class Leaf:
    """A condition that is one atom."""

    __slots__ = ("_hash", "atom", "marked", "negation")
    __match_args__ = ("atom",)
    size = 1

    def __init__(self, atom: Atom) -> None:
        self.atom = atom
        self.marked = atom.text.startswith("?")
        self.negation: Not | None = None
        self._hash = hash(atom)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Leaf) and self._hash == other._hash and self.atom == other.atom

    def __repr__(self) -> str:
        return f"Leaf({self.atom!r})"


class Not:
    """The negation of a condition."""

    __slots__ = ("_hash", "marked", "term")
    __match_args__ = ("term",)
    size = 1

    def __init__(self, term: Condition) -> None:
        self.term = term
        self.marked: bool = term.marked
        self._hash = ~hash(term)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Not) and self._hash == other._hash and self.term == other.term

    def __repr__(self) -> str:
        return f"Not({self.term!r})"


class _Joined:
    """Terms joined by one operator. Conditions nest deep and are compared often, so the
    hash and the number of leaves are computed once."""

    __slots__ = ("_hash", "marked", "negation", "size", "terms")
    __match_args__ = ("terms",)

    def __init__(self, terms: tuple[Condition, ...]) -> None:
        self.terms = terms
        self.size: int = sum(term.size for term in terms)
        self.marked: bool = any(term.marked for term in terms)
        self.negation: Condition | None = None
        self._hash = hash((type(self).__name__, terms))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or not isinstance(other, _Joined):
            return False
        return self._hash == other._hash and self.terms == other.terms

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.terms!r})"


class All(_Joined):
    """Every term holds; ``All(())`` is true."""

    __slots__ = ()


class AnyOf(_Joined):
    """At least one term holds; ``AnyOf(())`` is false."""

    __slots__ = ()


Condition = Leaf | Not | All | AnyOf


def size_of(term: Condition) -> int:
    """Return the number of leaves."""
    return term.size


def is_marked(term: Condition) -> bool:
    """Whether a marker (an atom whose text starts with ``?``) still waits to be replaced."""
    return term.marked


TRUE: Condition = All(())
FALSE: Condition = AnyOf(())

_LEAVES: dict[tuple[str, AtomKind, Span | None], Leaf] = {}


def leaf(text: str, kind: AtomKind, span: Span | None = None) -> Leaf:
    """Return the condition that is one test, the same object for the same test and place."""
    key = (text, kind, span)
    if key not in _LEAVES:
        if len(_LEAVES) >= _MAX_JOINS:
            _LEAVES.clear()
        _LEAVES[key] = Leaf(Atom(text, kind, span))
    return _LEAVES[key]


# Scans build the same conditions over and over: what was joined before is looked up by the
# identity of its terms, which the entry keeps alive. Past this size the table starts anew.
_MAX_JOINS = 1 << 16
_JOINS: dict[tuple[object, ...], tuple[tuple[Condition, ...], Condition]] = {}

# The different leaves of a part, and what it comes to once some are told: kept the same way.
_MAX_PARTS = 1 << 13
_LEAVES_OF: dict[int, tuple[Condition, dict[Leaf, None]]] = {}
_REDUCED: dict[tuple[int, frozenset[Condition]], tuple[Condition, Condition]] = {}

# boolean.py's absorption is quadratic and its distribution exponential; past this many
# different atoms only the unit rule below is applied.
_MAX_ATOMS = 8


def all_of(*terms: Condition) -> Condition:
    """Return the conjunction, flattened, without repeats; false if a term is false."""
    return _join(All, AnyOf, terms)


def any_of(*terms: Condition) -> Condition:
    """Return the disjunction, flattened, without repeats; true if a term is true."""
    return _join(AnyOf, All, terms)


def _join(
    kind: type[All] | type[AnyOf], other: type[All] | type[AnyOf], terms: tuple[Condition, ...]
) -> Condition:
    key = (kind, *map(id, terms))
    known = _JOINS.get(key)
    if known is not None:
        return known[1]
    if len(_JOINS) >= _MAX_JOINS:
        _JOINS.clear()
    joined = _joined(kind, other, terms)
    _JOINS[key] = (terms, joined)
    return joined


def _joined(
    kind: type[All] | type[AnyOf], other: type[All] | type[AnyOf], terms: tuple[Condition, ...]
) -> Condition:
    flat: dict[Condition, None] = {}
    for term in terms:
        if isinstance(term, kind):
            flat.update(dict.fromkeys(term.terms))
        elif isinstance(term, other) and not term.terms:
            return term
        else:
            flat[term] = None
    for term in flat:
        if isinstance(term, Not) and term.term in flat:
            return FALSE if kind is All else TRUE
    if len(flat) == 1:
        return next(iter(flat))
    if not flat:
        return TRUE if kind is All else FALSE
    return kind(tuple(flat))


def either(*terms: Condition) -> Condition:
    """Return the disjunction with what all terms share stated once: ``A and (B or C)``."""
    joined = any_of(*terms)
    if not isinstance(joined, AnyOf) or len(joined.terms) < 2:
        return joined
    parts = [term.terms if isinstance(term, All) else (term,) for term in joined.terms]
    shared = set(parts[0]).intersection(*parts[1:])
    if not shared:
        return joined
    rest = [all_of(*(term for term in part if term not in shared)) for part in parts]
    return all_of(*(term for term in parts[0] if term in shared), either(*rest))


def negate(term: Condition) -> Condition:
    """Return the negation, pushed inwards so that ``Not`` only stands on leaves."""
    if isinstance(term, Not):
        return term.term
    if isinstance(term, Leaf):
        if term.negation is None:
            term.negation = Not(term)
        return term.negation
    if term.negation is None:
        inner = tuple(negate(t) for t in term.terms)
        opposite = any_of(*inner) if isinstance(term, All) else all_of(*inner)
        term.negation = opposite
        if isinstance(opposite, _Joined):
            opposite.negation = term
    return term.negation


def atoms_of(term: Condition) -> Iterator[Atom]:
    """Yield the atoms of a condition from left to right, repeats included."""
    if isinstance(term, Leaf):
        yield term.atom
    elif isinstance(term, Not):
        yield from atoms_of(term.term)
    else:
        for inner in term.terms:
            yield from atoms_of(inner)


def substitute(term: Condition, value: Callable[[Atom], Condition | None]) -> Condition:
    """Replace each atom for which ``value`` returns a condition."""
    if isinstance(term, Leaf):
        found = value(term.atom)
        return term if found is None else found
    if isinstance(term, Not):
        return negate(substitute(term.term, value))
    inner = tuple(substitute(t, value) for t in term.terms)
    return all_of(*inner) if isinstance(term, All) else any_of(*inner)


def evaluate(term: Condition, values: Mapping[str, bool]) -> bool | None:
    """Evaluate three-valued; atoms that ``values`` (by text) does not hold are unknown."""
    if isinstance(term, Leaf):
        return values.get(term.atom.text)
    if isinstance(term, Not):
        inner = evaluate(term.term, values)
        return None if inner is None else not inner
    absorbing = isinstance(term, AnyOf)
    results = [evaluate(t, values) for t in term.terms]
    if absorbing in results:
        return absorbing
    return None if None in results else not absorbing


def simplify(term: Condition) -> Condition:
    """Return an equivalent short form, atoms in the order they first appear.

    First the unit rule: what a conjunction states is true inside its other terms (and
    false inside those of a disjunction). Small conditions are then minimised by boolean.py.
    """
    term = _propagate(term, {})
    order = [one.atom for one in _leaves(term)]
    if len(order) < 2 or len(order) > _MAX_ATOMS:
        return term
    algebra = boolean.BooleanAlgebra()
    symbols = {atom: algebra.Symbol(f"a{index:03d}") for index, atom in enumerate(order)}
    by_name = {str(symbol): Leaf(atom) for atom, symbol in symbols.items()}
    return _from_boolean(_to_boolean(term, algebra, symbols).simplify(), algebra, by_name)


def _leaves(term: Condition) -> dict[Leaf, None]:
    """Return the different leaves of a condition, in the order they first appear."""
    if isinstance(term, Leaf):
        return {term: None}
    if isinstance(term, Not):
        return _leaves(term.term)
    if id(term) not in _LEAVES_OF:
        found = {one: None for inner in term.terms for one in _leaves(inner)}
        _LEAVES_OF[id(term)] = (term, found)
    return _LEAVES_OF[id(term)][1]


def _propagate(term: Condition, known: dict[Leaf, bool]) -> Condition:
    if isinstance(term, Leaf):
        value = known.get(term)
        return term if value is None else TRUE if value else FALSE
    if isinstance(term, Not):
        return negate(_propagate(term.term, known))
    told = {one: known[one] for one in known.keys() & _leaves(term).keys()}
    key = (id(term), frozenset(one if holds else negate(one) for one, holds in told.items()))
    if key not in _REDUCED:
        found = _reduced(term, told)
        if len(_REDUCED) >= _MAX_PARTS:
            _REDUCED.clear()
            _LEAVES_OF.clear()
        _REDUCED[key] = (term, found)
    return _REDUCED[key][1]


def _reduced(term: All | AnyOf, known: dict[Leaf, bool]) -> Condition:
    conjunction = isinstance(term, All)
    units: dict[Leaf, bool] = {}
    for inner in term.terms:
        if isinstance(inner, Leaf):
            units[inner] = conjunction
        elif isinstance(inner, Not) and isinstance(inner.term, Leaf):
            units[inner.term] = not conjunction
    below = known | units
    done = [_propagate(t, known if isinstance(t, Leaf | Not) else below) for t in term.terms]
    return all_of(*done) if conjunction else either(*done)


def _to_boolean(
    term: Condition, algebra: boolean.BooleanAlgebra, symbols: Mapping[Atom, boolean.Symbol]
) -> boolean.Expression:
    if isinstance(term, Leaf):
        return symbols[term.atom]
    if isinstance(term, Not):
        return algebra.NOT(_to_boolean(term.term, algebra, symbols))
    inner = [_to_boolean(t, algebra, symbols) for t in term.terms]
    if not inner:
        return algebra.TRUE if isinstance(term, All) else algebra.FALSE
    return algebra.AND(*inner) if isinstance(term, All) else algebra.OR(*inner)


def _from_boolean(
    term: boolean.Expression, algebra: boolean.BooleanAlgebra, by_name: Mapping[str, Leaf]
) -> Condition:
    if term == algebra.TRUE:
        return TRUE
    if term == algebra.FALSE:
        return FALSE
    if isinstance(term, boolean.Symbol):
        return by_name[str(term)]
    inner = [_from_boolean(arg, algebra, by_name) for arg in term.args]
    if isinstance(term, algebra.NOT):
        return negate(inner[0])
    return all_of(*inner) if isinstance(term, algebra.AND) else any_of(*inner)


def render(term: Condition) -> str:
    """Print a condition as a Python expression; ``always`` and ``never`` for constants."""
    if term == TRUE:
        return "always"
    if term == FALSE:
        return "never"
    return _render(term, nested=False)


def _render(term: Condition, nested: bool) -> str:
    if isinstance(term, Leaf):
        return _wrap(term.atom.text) if nested else term.atom.text
    if isinstance(term, Not):
        return f"not {_render(term.term, nested=True)}"
    word = " and " if isinstance(term, All) else " or "
    text = word.join(_render(t, nested=True) for t in term.terms)
    return f"({text})" if nested else text


def _wrap(text: str) -> str:
    simple = all(
        word not in text for word in (" and ", " or ", " if ", "not ", " in ", "=", "<", ">")
    )
    simple = simple and " is " not in text
    return text if simple else f"({text})"
