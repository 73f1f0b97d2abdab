"""Every fact of the answer key, compared with the JSON of the map of its release.

``data/facts.json`` was read from SGLang's source by hand, line by line, before the scanner
was written.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.releases.answer_key import NOT_IN_THE_MODEL, Fact, differences, load_facts
from tests.releases.trees import map_of

pytestmark = pytest.mark.releases

FACTS = load_facts()

# True of the source, and not something that a map of calls, flags and decisions holds.
OUTSIDE_THE_MAP = {
    "0.5.12-reg-missing-predicate": "a method that a class lacks; a lint rule's business",
    "0.5.12-cond-musa": "the arm of another platform in a table of classes; a lint rule's business",
}

# Facts that the map does not meet, each with its reason. Strict: one that is met must leave.
UNMET = {
    "0.5.9-flag-drop-extend": (
        "the key names the call, eagle_worker.py:373; in its sibling facts the line is that of "
        "the statement that takes the result apart (0.5.12 eagle_worker_v2.py:1046 after the "
        "call on 1040, 0.5.23 eagle_worker_common.py:660 after 654), here 374"
    ),
    "0.5.23-edge-assign": (
        "the key says that an object is made on cuda_graph_setup.py:440; that line passes "
        "eager_runner on, which line 416 makes"
    ),
}


def _parameters() -> list[object]:
    inside = [f for f in FACTS if f["id"] not in OUTSIDE_THE_MAP]
    return [
        pytest.param(
            fact,
            id=fact["id"],
            marks=[pytest.mark.xfail(reason=UNMET[fact["id"]])] if fact["id"] in UNMET else [],
        )
        for fact in inside
    ]


@pytest.mark.parametrize("fact", _parameters())
def test_fact(fact: Fact) -> None:
    found = differences(fact, map_of(fact["release"]), FACTS)
    assert not found, "\n".join([f"{fact['id']}: {fact['detail']}", *found])


def test_the_key_is_whole() -> None:
    assert len(FACTS) == 75
    assert Counter(f["release"] for f in FACTS) == {"0.5.9": 25, "0.5.12": 25, "0.5.23": 25}
    assert {f["id"] for f in FACTS if not f.get("map_fact", True)} == set(OUTSIDE_THE_MAP)
    assert set(UNMET) <= {f["id"] for f in FACTS}


@pytest.mark.parametrize("identifier", sorted(OUTSIDE_THE_MAP))
def test_outside_the_map(identifier: str) -> None:
    """No decision and no flag of the map claims the place of a fact that it does not hold."""
    fact = next(f for f in FACTS if f["id"] == identifier)
    code_map = map_of(fact["release"])
    terms = [t.span for d in code_map.decisions for t in d.terms]
    claims = [*terms, *(f.span for f in code_map.flags)]
    assert claims
    assert not [s for s in claims if (s.file, s.line) == (fact["file"], fact["line"])]


def test_every_key_is_compared() -> None:
    """A key of ``expect`` is read by a comparison or listed with the reason why not."""
    compared = _words_of_the_comparisons()
    keys = {key for f in FACTS if f["id"] not in OUTSIDE_THE_MAP for key in f["expect"]}
    assert keys - compared - set(NOT_IN_THE_MODEL) == set()


def _words_of_the_comparisons() -> set[str]:
    folder = Path(__file__).parent
    return {
        node.value
        for name in ("answer_key.py", "answer_calls.py", "answer_flags.py")
        for node in ast.walk(ast.parse((folder / name).read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
