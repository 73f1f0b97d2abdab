"""The map of a file whose lines moved."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from specmap.codemap import graph, hazards, source
from specmap.scan.index import Tree
from specmap.scan.moved import ApartError, moved
from tests.review_tree import VERIFY, plant, scan

_WORD = re.compile(r"\w+")

# Every number of the model and what it is: lines that moved.py renumbers, or something else.
LINES = {
    "Arm.chain", "Assignment.restored_line", "ClassRecord.getattr_delegates_line",
    "ClassRecord.methods", "Flag.result_line", "Flag.result_source_line", "Flag.source_chain",
    "Flag.source_line", "ModeTest.chain", "Problem.line", "Span.end_line", "Span.line",
}  # fmt: skip
NO_LINES = {"Flag.tuple_position", "ModeTest.order"}


def test_every_number_of_the_model_is_known() -> None:
    kinds = [k for m in (graph, hazards, source) for k in vars(m).values() if isinstance(k, type)]
    numbers = {
        f"{kind.__name__}.{field.name}"
        for kind in kinds
        if is_dataclass(kind)
        for field in fields(kind)
        if "int" in _WORD.findall(str(field.type))
    }
    assert numbers == LINES | NO_LINES


def test_a_line_without_a_new_number_is_refused(tmp_path: Path) -> None:
    folder = plant(tmp_path / "tree")
    with pytest.raises(ApartError):
        moved(scan(folder), VERIFY, {}, Tree(folder, "sglang"))
