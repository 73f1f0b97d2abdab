from __future__ import annotations

from specmap.codemap.condition import Atom, AtomKind, Condition, Leaf, all_of, any_of, negate
from specmap.verdicts.settling import deciding, residual, settled

OFF, BATCH, PADDING, EXACT, FIRST, SECOND = (
    Leaf(Atom(text, AtomKind.LAUNCH))
    for text in ("off", "bs <= max", "no_padding", "bs in graphs", "is first", "is second")
)
SIZE = any_of(all_of(PADDING, EXACT), all_of(negate(PADDING), BATCH))


def ask(term: Condition, **values: bool) -> tuple[str, ...]:
    def value(atom: Atom) -> bool | None:
        return values.get(atom.text.replace(" ", "_"))

    ranks = {"off": 0, "no_padding": 0}
    found = deciding(term, value, lambda atom: ranks.get(atom.text, 1))
    return tuple(atom.text for atom in found)


def test_what_is_known_is_filled_in() -> None:
    left = residual(SIZE, lambda atom: False if atom.text == "no_padding" else None)
    assert left == BATCH
    assert settled(left) is None


def test_a_contradiction_is_settled_without_its_tests() -> None:
    left = residual(all_of(any_of(OFF, BATCH), negate(OFF), negate(BATCH)), lambda atom: None)
    assert settled(left) is False


def test_a_launch_test_decides_before_one_of_the_batch() -> None:
    values = {"off": True, "no_padding": False, "bs_<=_max": False, "bs_in_graphs": False}
    assert ask(all_of(SIZE, negate(OFF)), **values) == ("off",)


def test_of_alternatives_the_one_that_comes_closest_is_named() -> None:
    values = {"no_padding": False, "bs_<=_max": False, "bs_in_graphs": False}
    assert ask(SIZE, **values) == ("bs <= max",)


def test_all_alternatives_that_fail_alike_are_named() -> None:
    assert ask(any_of(FIRST, SECOND), is_first=False, is_second=False) == ("is first", "is second")


def test_a_condition_that_is_open_has_no_deciding_test() -> None:
    assert ask(SIZE, no_padding=False) == ()
