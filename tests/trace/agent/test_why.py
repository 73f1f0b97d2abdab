"""Rewritten decisions: same values, same calls, same truth questions, and the right reason."""

from __future__ import annotations

import ast
import types
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specmap.trace.agent.names import Names
from specmap.trace.agent.reasons import NOTE, WHY, Reasons
from specmap.trace.agent.ring import PythonRing
from specmap.trace.agent.why import Asked, rewrite
from specmap.trace.agent.wrapplan import Graph, Plan

PLAN = Plan("toy", (), Graph(), ())


@dataclass
class Rewritten:
    """A function of source text, rewritten, with what it said."""

    source: str
    expressions: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        self.names = Names()
        reasons = Reasons(PythonRing(), self.names, PLAN)
        tree = ast.parse(self.source)
        (function,) = (one for one in tree.body if isinstance(one, ast.FunctionDef))
        self.missing = rewrite(function, [Asked(7, self.expressions)], reasons)
        space: dict[str, Any] = {WHY: reasons.why, NOTE: reasons.note}
        exec(compile(ast.fix_missing_locations(tree), "<rewritten>", "exec"), space)
        self.function = space[function.name]

    def says(self, *args: Any) -> list[tuple[str, dict[str, Any]]]:
        """Return (conjunct, operands) of what a call said anew."""
        self.function(*args)
        lines = self.names.take().decode().splitlines()
        parsed = [ast.literal_eval(_python(line)) for line in lines]
        return [(one["conjunct"], one["operands"]) for one in parsed]


def _python(line: str) -> str:
    for word, value in (("true", "True"), ("false", "False"), ("null", "None")):
        line = line.replace(f": {word}", f": {value}")
    return line


def thing(**fields: Any) -> Any:
    return types.SimpleNamespace(**fields)


CAN_RUN = """
def can_run(self, forward_batch):
    if forward_batch.replace_embeds is not None:
        return False
    cuda_graph_bs = forward_batch.batch_size
    is_bs_supported = (
        cuda_graph_bs in self.graphs
        if self.disable_padding
        else cuda_graph_bs <= self.max_bs
    )
    if self.require_mlp_sync:
        is_bs_supported = is_bs_supported and forward_batch.can_run_dp_cuda_graph
    is_tbo_supported = forward_batch.can_run_tbo if self.two_batch else True
    return (
        is_bs_supported
        and is_tbo_supported
    )
"""


@pytest.mark.parametrize(
    ("runner", "batch", "expected"),
    [
        ({}, {}, []),
        ({}, {"batch_size": 4}, [("cuda_graph_bs <= self.max_bs",
                                  {"cuda_graph_bs": 4, "self.max_bs": 2})]),
        ({"disable_padding": True}, {"batch_size": 3},
         [("cuda_graph_bs in self.graphs", {"cuda_graph_bs": 3, "len(self.graphs)": 2})]),
        ({"require_mlp_sync": True}, {}, [("forward_batch.can_run_dp_cuda_graph",
                                           {"forward_batch.can_run_dp_cuda_graph": False})]),
        ({"require_mlp_sync": True}, {"batch_size": 4},
         [("cuda_graph_bs <= self.max_bs", {"cuda_graph_bs": 4, "self.max_bs": 2})]),
        ({"two_batch": True}, {}, [("forward_batch.can_run_tbo is None",
                                    {"forward_batch.can_run_tbo": None})]),
        ({}, {"replace_embeds": 1}, [("forward_batch.replace_embeds is None",
                                      {"forward_batch.replace_embeds": 1})]),
    ],
)  # fmt: skip
def test_a_runner_says_which_conjunct_was_false(
    runner: dict[str, Any], batch: dict[str, Any], expected: list[tuple[str, dict[str, Any]]]
) -> None:
    decision = Rewritten(CAN_RUN)
    assert decision.missing == []
    self = thing(**{"graphs": {1: 0, 2: 0}, "max_bs": 2, "disable_padding": False,
                    "require_mlp_sync": False, "two_batch": False} | runner)  # fmt: skip
    forward = thing(**{"batch_size": 2, "replace_embeds": None, "can_run_dp_cuda_graph": False,
                       "can_run_tbo": None} | batch)  # fmt: skip
    assert decision.says(self, forward) == expected


def test_a_route_looks_through_the_name_it_tests() -> None:
    route = Rewritten(
        "def draft(self, batch):\n"
        "    can = bool(self.graph_runner and self.graph_runner.can_run(batch))\n"
        "    if can:\n"
        "        return 'graph'\n"
        "    return 'eager'\n",
        ((3, 3),),
    )
    assert route.says(thing(graph_runner=None), 1) == [
        ("self.graph_runner is None", {"self.graph_runner": None})
    ]
    yes = thing(graph_runner=thing(can_run=lambda batch: True))
    assert route.function(yes, 1) == "graph"
    no = thing(graph_runner=thing(can_run=lambda batch: False))
    assert route.says(no, 1) == [("self.graph_runner.can_run(batch)", {"batch": 1})]


def test_a_test_of_a_class_names_the_class() -> None:
    decision = Rewritten("def f(self):\n    return not isinstance(self.runner, Exception)\n")
    assert decision.says(thing(runner=KeyError())) == [
        ("not isinstance(self.runner, Exception)", {"type(self.runner)": "KeyError"})
    ]


def test_a_place_that_is_not_there_is_told() -> None:
    assert Rewritten("def f(a):\n    return a\n", ((1, 9),)).missing == [7]


def test_neither_tensors_nor_long_texts_nor_properties_are_kept() -> None:
    class Tensor:
        def __bool__(self) -> bool:
            raise AssertionError("a truth that nobody asked for")

    class Batch:
        text, tensor = "x" * 100, Tensor()

        @property
        def costly(self) -> int:
            raise AssertionError("a property was run")

    decision = Rewritten(
        "def f(self, seen):\n    return self.text in seen and self.tensor\n"
        "    return self.costly == 3\n"
    )
    assert decision.says(Batch(), []) == [("self.text in seen", {"len(seen)": 0})]
    # the truth of what is returned is the caller's question
    assert isinstance(decision.function(Batch(), ["x" * 100]), Tensor)


# ---- random functions: rewritten and not, they do the same ----

_LEAVES = st.sampled_from(["a(0)", "a(1)", "a(2)", "x", "y", "z", "True", "False", "None"])


def _combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, parts).map(lambda two: f"({two[0]} and {two[1]})"),
        st.tuples(parts, parts).map(lambda two: f"({two[0]} or {two[1]})"),
        st.tuples(parts, parts, parts).map(lambda three: "({} if {} else {})".format(*three)),
        parts.map(lambda one: f"(not {one})"),
        parts.map(lambda one: f"bool({one})"),
    )


EXPRESSIONS = st.recursive(_LEAVES, _combined, max_leaves=8)


class Truth:
    """A value that counts how often its truth is asked."""

    def __init__(self, value: bool, log: list[str], name: str) -> None:
        self.value, self.log, self.name = value, log, name

    def __bool__(self) -> bool:
        self.log.append(self.name)
        return self.value


def _outcome(function: Any, values: list[bool]) -> tuple[str, list[str]]:
    log: list[str] = []
    known = [Truth(value, log, f"v{number}") for number, value in enumerate(values)]

    def a(number: int) -> Truth:
        log.append(f"call {number}")
        return known[number]

    result = function(a, *known[3:])
    return getattr(result, "name", repr(result)), log


TEXTS = (
    "def f(a, x, y, z):\n    y = {}\n    if {}:\n        return None\n    return {}\n",
    "def f(a, x, y, z):\n    y = {}\n    if {}:\n        return {}\n    return x\n",
)


@settings(deadline=None, derandomize=True, database=None)
@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS, st.lists(st.booleans(), min_size=6, max_size=6))
@pytest.mark.parametrize(("text", "marks"), [(TEXTS[0], ()), (TEXTS[1], ((3, 3), (4, 4)))])
def test_rewriting_changes_no_value_and_no_call_and_asks_no_truth_more_often(
    text: str, marks: tuple[tuple[int, ...], ...], first: str, guard: str, last: str,
    values: list[bool],
) -> None:  # fmt: skip
    source = text.format(first, guard, last)
    space: dict[str, Any] = {}
    exec(source, space)
    result, log = _outcome(space["f"], values)
    new_result, new_log = _outcome(Rewritten(source, marks).function, values)
    assert new_result == result
    assert [one for one in new_log if "call" in one] == [one for one in log if "call" in one]
    assert Counter(new_log) <= Counter(log)
