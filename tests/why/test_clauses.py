"""The tests of can_run in cuda_graph_runner.py of 0.5.12, lines 785-824, under a Llama launch."""

from __future__ import annotations

import pytest

from specmap.codemap.condition import Atom, AtomKind, Condition, all_of, any_of, leaf, negate
from specmap.codemap.explanation import Clause, Joined
from specmap.codemap.outcome import TermSource, TermValue
from specmap.why.clauses import clauses


def one(text: str) -> Condition:
    return leaf(text, AtomKind.STATE)


FITS, PADDING, EXACT = one("bs <= max_bs"), one("disable_padding"), one("bs in graphs")
ENCODER, ENCODER_LENS = one("is_encoder_decoder"), one("all(encoder_lens > 0)")
TBO, SPLIT = one("enable_two_batch_overlap"), one("can_run_tbo")
NULL, SAME = one("mode == NULL"), one("mode == captured")
SIZES = any_of(all_of(PADDING, EXACT), all_of(negate(PADDING), FITS))
OVERLAP = any_of(SPLIT, negate(TBO))

VALUES = {
    "bs <= max_bs": (False, TermSource.SIZE),
    "bs in graphs": (False, TermSource.SIZE),
    "disable_padding": (False, TermSource.LAUNCH),
    "is_encoder_decoder": (False, TermSource.LAUNCH),
    "all(encoder_lens > 0)": (True, TermSource.ASSUMED),
    "enable_two_batch_overlap": (False, TermSource.LAUNCH),
    "can_run_tbo": (True, TermSource.ASSUMED),
    "mode == NULL": (None, TermSource.UNKNOWN),
    "mode == captured": (True, TermSource.ASSUMED),
}


def valued(atom: Atom) -> TermValue:
    value, source = VALUES[atom.text]
    return TermValue(atom.text, None, value, source)


def told(clause: Clause) -> list[tuple[str, bool | None, bool]]:
    return [(p.need.term.text, p.holds, p.matters) for p in clause.parts if p.need is not None]


@pytest.mark.parametrize(
    ("off", "assumed"), [(ENCODER, ENCODER_LENS), (TBO, SPLIT)], ids=["encoder", "overlap"]
)
def test_what_is_off_settles_what_only_matters_where_it_is_on(
    off: Condition, assumed: Condition
) -> None:
    clause = clauses(any_of(assumed, negate(off)), valued)
    assert (clause.joined, clause.holds) == (Joined.ANY, True)
    assert [(holds, matters) for _, holds, matters in told(clause)] == [(True, True), (True, False)]
    first = clause.parts[0].need
    assert first is not None
    assert (first.term.source, first.wanted) == (TermSource.LAUNCH, False)


def test_an_assumption_that_settles_matters_and_what_is_not_known_beside_it_does_not() -> None:
    clause = clauses(any_of(NULL, SAME), valued)
    assert told(clause) == [("mode == captured", True, True), ("mode == NULL", None, False)]


def test_the_alternative_that_comes_closest_stands_first() -> None:
    clause = clauses(SIZES, valued)
    assert (clause.joined, clause.holds) == (Joined.ANY, False)
    near, far = clause.parts
    assert told(near) == [("bs <= max_bs", False, True), ("disable_padding", True, True)]
    assert [text for text, _, _ in told(far)] == ["disable_padding", "bs in graphs"]


def test_what_decides_against_the_graph_stands_first() -> None:
    clause = clauses(all_of(OVERLAP, SAME, SIZES), valued)
    assert (clause.joined, clause.holds) == (Joined.ALL, False)
    assert [part.holds for part in clause.parts] == [False, True, True]
    assert clause.parts[0].joined is Joined.ANY


def test_an_assumption_in_an_alternative_that_the_launch_rules_out_does_not_matter() -> None:
    clause = clauses(any_of(all_of(TBO, SPLIT), FITS), valued)
    ruled_out = next(part for part in clause.parts if part.joined is Joined.ALL)
    assert told(ruled_out) == [
        ("enable_two_batch_overlap", False, True),
        ("can_run_tbo", True, False),
    ]
