"""One way to ask what a mistyped name was meant to be."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import specmap
from specmap.nearest import meant, nearest


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("verfy", ["verify", "draft"], ["verify"]),
        ("eagleworker", ["EAGLEWorker", "NGRAMWorker"], ["EAGLEWorker", "NGRAMWorker"]),
        ("--speculative_num_step", ["--speculative-num-steps"], ["--speculative-num-steps"]),
        ("host", ["host-sync-on-cycle", "buffer-rebound"], ["host-sync-on-cycle"]),
        ("zzz", ["verify", "draft"], []),
        ("", ["verify"], []),
    ],
)
def test_what_is_near(name: str, known: list[str], found: list[str]) -> None:
    assert nearest(name, known) == found


def test_a_question_or_another_word() -> None:
    assert meant("drft", ["draft", "draft_extend"], "none") == "did you mean draft?"
    assert meant("draft-ext", ["draft", "draft_extend"], "none", 1) == "did you mean draft_extend?"
    assert meant("zzz", ["verify"], "there are: verify") == "there are: verify"


def test_nobody_else_asks_for_close_matches() -> None:
    package = Path(specmap.__file__).parent
    asking = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute | ast.Name | ast.alias)
        if "get_close_matches" in ast.unparse(node)
    }
    assert asking == {"nearest.py"}
