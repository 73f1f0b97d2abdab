from __future__ import annotations

import json
from typing import Any

import pytest

from specmap.codemap.verdict import Verdict
from specmap.report.page.data import page
from specmap.report.page.reference import Reference, vectors
from tests.report.page.subjects import subject


def atom(text: str, same: int, kind: str = "launch") -> dict[str, Any]:
    return {"text": text, "kind": kind, "same": same}


def side(terms: list[Any], graph: int, eager: int, piecewise: int = 0) -> dict[str, Any]:
    """Return a side of one phase; its term 0 never holds."""
    ends = {"graph": graph, "piecewise": piecewise, "eager": eager}
    phase = {"ends": ends, "verdict": "depends", "arms": []}
    return {
        "atoms": [atom("a", 0), atom("b", 1), atom("a", 0)],
        "terms": [["or"], *terms],
        "workers": [{"phases": [phase, {"ends": None, "verdict": "NOT_RUN", "arms": []}]}],
    }


# Terms: 1 a, 2 b, 3 a and b, 4 not a, 5 not b, 6 not a or not b, 7 a at another place, 8 a or not a
TERMS: list[Any] = [
    0, 1, ["and", 1, 2], ["not", 1], ["not", 2], ["or", 4, 5], 2, ["or", 7, 4], ["and", 7, 4],
]  # fmt: skip


@pytest.mark.parametrize(
    ("truths", "expected"),
    [
        ((True, True, None), Verdict.GRAPH),
        ((True, False, None), Verdict.EAGER),
        ((None, False, None), Verdict.EAGER),
        ((None, True, None), Verdict.UNKNOWN),
        ((None, None, None), Verdict.UNKNOWN),
    ],
)
def test_a_phase_ends_where_its_conditions_say(
    truths: tuple[bool | None, ...], expected: Verdict
) -> None:
    reference = Reference(side(TERMS, graph=3, eager=6))
    assert reference.verdict(0, 0, truths) is expected
    assert reference.verdict(0, 1, truths) is Verdict.NOT_RUN


def test_the_same_test_at_two_places_is_one_unknown() -> None:
    assert Reference(side(TERMS, graph=8, eager=9)).verdict(0, 0, (None,) * 3) is Verdict.GRAPH


def test_two_ends_at_once_are_not_known() -> None:
    assert Reference(side(TERMS, graph=1, eager=2)).verdict(0, 0, (True, True, True)) is (
        Verdict.UNKNOWN
    )


def test_vectors_are_the_same_for_the_same_seed_and_reach_graphs() -> None:
    data = json.loads(json.dumps(page([subject()])[0]))["sides"][0]
    made = list(vectors(data, 1, 60))
    assert made == list(vectors(data, 1, 60))
    assert made != list(vectors(data, 2, 60))
    seen = {verdict for one in made for phases in one["expected"] for verdict in phases}
    assert {"GRAPH", "EAGER", "UNKNOWN", "NOT_RUN"} <= seen
    assert all(len(one["truths"]) == len(data["atoms"]) for one in made)
