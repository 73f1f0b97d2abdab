"""A shortened condition means what the long one means: compared over every setting."""

from __future__ import annotations

import itertools
import random

import pytest

from specmap.codemap.condition import (
    FALSE,
    TRUE,
    AtomKind,
    Condition,
    all_of,
    any_of,
    atoms_of,
    evaluate,
    leaf,
    negate,
    render,
)
from specmap.codemap.shortening import shorten

A, B, C, D, M, N = (leaf(name, AtomKind.LAUNCH) for name in "ABCDMN")
NOT_M = negate(M)


def test_absorption() -> None:
    assert shorten(all_of(any_of(A, B), any_of(A, C, B))) == any_of(A, B)
    assert shorten(any_of(all_of(A, B), all_of(A, C, B))) == all_of(A, B)


def test_what_is_stated_holds_inside_other_terms() -> None:
    both = any_of(A, B)
    assert shorten(all_of(both, any_of(C, all_of(any_of(B, A), D)))) == all_of(both, any_of(C, D))


def test_a_test_that_one_arm_adds() -> None:
    """``ok = A; if M: ok = ok and B`` (the padding and the vote of ``can_run``)."""
    assert shorten(any_of(all_of(A, NOT_M), all_of(M, A, B))) == all_of(A, any_of(NOT_M, B))


def test_a_compound_test_that_one_arm_adds() -> None:
    asked = any_of(M, all_of(N, D))
    either_way = any_of(all_of(A, C), all_of(negate(A), B))
    arms = [all_of(part, negate(asked)) for part in either_way.terms]  # type: ignore[union-attr]
    added = leaf("vote", AtomKind.BATCH)
    shorter = shorten(any_of(*arms, all_of(asked, either_way, added)))
    assert shorter == all_of(either_way, any_of(negate(asked), added))


def test_what_two_arms_share() -> None:
    assert shorten(any_of(all_of(M, A), all_of(NOT_M, C), all_of(M, B))) == any_of(
        all_of(M, any_of(A, B)), all_of(NOT_M, C)
    )


def grown(chance: random.Random, depth: int) -> Condition:
    if depth == 0 or chance.random() < 0.2:
        one = chance.choice((A, B, C, D, M, N))
        return one if chance.random() < 0.5 else negate(one)
    parts = [grown(chance, depth - 1) for _ in range(chance.randint(2, 4))]
    return all_of(*parts) if depth % 2 else any_of(*parts)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_random_conditions_keep_their_meaning_and_do_not_grow(depth: int) -> None:
    """The truth table of the long form is the oracle; what it settles stays settled."""
    chance = random.Random(depth)
    for _ in range(40):
        term = grown(chance, depth)
        shorter = shorten(term)
        assert shorter.size <= term.size
        assert set(atoms_of(shorter)) <= set(atoms_of(term))
        assert shorten(shorter) == shorter
        for values in itertools.product((True, False, None), repeat=6):
            known = {n: v for n, v in zip("ABCDMN", values, strict=True) if v is not None}
            before, after = evaluate(term, known), evaluate(shorter, known)
            assert after == before or before is None, (render(term), known)
            if len(known) == 6:
                assert after == before


def test_constants() -> None:
    assert shorten(TRUE) == TRUE
    assert shorten(FALSE) == FALSE
    assert shorten(any_of(all_of(A, B), all_of(A, negate(B)), negate(A))) == TRUE
