"""A limit of a fork's own: the batch size against numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specmap.verdicts import sizetests
from specmap.verdicts.sizes import Sizes

NAMES = {"forward_batch.batch_size", "bs"}
PAGE = Path(__file__).parents[2] / "specmap/report/page/app/test/sizetests.json"


def number(text: str) -> int | None:
    return {"server_args.limit": 8}.get(text)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("forward_batch.batch_size <= 2", {1, 2}),
        ("2 >= forward_batch.batch_size", {1, 2}),
        ("bs % 2 == 0", {2, 4, 6, 8}),
        ("bs % 2", {1, 3, 5, 7, 9}),
        ("bs * 4 < server_args.limit + 1", {1, 2}),
        ("bs != 3", {1, 2, 4, 5, 6, 7, 8, 9}),
        ("bs // 3 == 1", {3, 4, 5}),
    ],
)
def test_python_says_for_which_sizes_it_holds(text: str, holds: set[int]) -> None:
    test = sizetests.read(text, NAMES, number)
    assert test is not None
    assert {size for size in range(1, 10) if sizetests.holds(test, size)} == holds
    sizes = Sizes((1, 2, 4))
    steps = sizes.steps(9, [test])
    for size in range(1, 10):
        step = max(s for s in steps if s <= size)
        assert sizes.holds(test, size) is sizes.holds(test, step)


@pytest.mark.parametrize(
    "text",
    ["bs <= self.limit", "self.limit <= 2", "bs", "bs and x", "bs <= 2 <= x", "bs <=", "bs < 1.5"],
)
def test_any_other_test_is_none_of_the_batch_size(text: str) -> None:
    assert sizetests.read(text, NAMES, number) is None


def test_the_page_and_the_command_line_agree() -> None:
    """The page's own test reads the same cases."""
    for test, size, holds in json.loads(PAGE.read_text("utf-8")):
        assert sizetests.holds(_tuples(test), size) is holds, (test, size)


def _tuples(test: object) -> object:
    return tuple(map(_tuples, test)) if isinstance(test, list) else test
