"""Raises on the way from derived settings to a running worker, and counts below all code."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.tables import Inputs
from tests.scan.launch.programs import launch

WORKER = "sglang/srt/speculative/worker.py"
SOURCE = """from sglang.srt.managers.outer import Outer
from sglang.srt.speculative.parts import Draft, check


class Worker(Outer):
    def __init__(self, server_args, gpu_id, target_worker):
        self.server_args = server_args
        self.kind = server_args.name
        self.steps = server_args.a
        super().__init__(server_args=server_args)
        self.draft = Draft(server_args, target_worker)
        if self.kind == "here":
            raise ValueError("made here")
        if self.steps == 1:
            raise ValueError("what the outer class may have changed")
        if target_worker.size > 3:
            raise ValueError("what nobody knows")
        if self.server_args.name == "caught":
            try:
                check("caught")
            except ValueError:
                pass

    def init_attention_backends(self):
        self.draft.init_attention_backends()
"""
PARTS = """
class Draft:
    def __init__(self, server_args, target_worker):
        self.server_args = server_args

    def init_attention_backends(self):
        check(self.server_args.name)


def check(name):
    assert name != "child", f"{name} is refused"
    if name == "caught":
        raise ValueError("caught")
"""
OUTER = """
class Outer:
    def __init__(self, server_args):
        self.steps = 1
        if server_args.name == "outer":
            raise ValueError("in another package")
        server_args.name = "overwritten"
"""


def evaluator(tmp_path: Path, name: str) -> Evaluator:
    files = {
        WORKER: SOURCE,
        "sglang/srt/speculative/parts.py": PARTS,
        "sglang/srt/managers/outer.py": OUTER,
    }
    return launch(tmp_path, "pass", files=files, inputs=Inputs(values={"name": name}))


@pytest.mark.parametrize(
    ("name", "error", "message", "line"),
    [
        ("here", "ValueError", "made here", 13),
        ("child", "AssertionError", "child is refused", 11),
    ],
)
def test_a_worker_that_cannot_be_made(
    tmp_path: Path, name: str, error: str, message: str, line: int
) -> None:
    found = evaluator(tmp_path, name).stopped(WORKER, "Worker")
    assert found is not None
    assert found.certain
    assert (found.error, found.message, found.span.line) == (error, message, line)


@pytest.mark.parametrize("name", ["plain", "outer"])
def test_what_may_not_raise_is_no_refusal(tmp_path: Path, name: str) -> None:
    """Unknown tests, and functions of other packages, settle nothing; no setting is lost."""
    asked = evaluator(tmp_path, name)
    assert asked.stopped(WORKER, "Worker") is None
    assert asked.facts().facts["name"].value == name


def test_a_class_that_is_not_there(tmp_path: Path) -> None:
    assert evaluator(tmp_path, "here").stopped(WORKER, "Other") is None


RUNNER = """
class ModelRunner:
    def __init__(self, server_args):
        self.server_args = server_args

    def model_specific_adjustment(self):
        if self.is_draft_worker:
            raise ValueError("of a draft")
        args = self.server_args
        if args.name is None:
            args.name = "chosen"
        assert args.name != "odd"
"""


@pytest.mark.parametrize(("name", "value"), [(None, "chosen"), ("given", "given")])
def test_the_runner_of_the_target_changes_settings(
    tmp_path: Path, name: str | None, value: str
) -> None:
    files = {"sglang/srt/model_executor/model_runner.py": RUNNER}
    inputs = Inputs(values={"name": name})
    found = launch(tmp_path, "pass", files=files, inputs=inputs).facts().facts["name"]
    assert found.value == value


def test_the_runner_of_the_target_refuses(tmp_path: Path) -> None:
    files = {"sglang/srt/model_executor/model_runner.py": RUNNER}
    found = launch(tmp_path, "pass", files=files, inputs=Inputs(values={"name": "odd"})).facts()
    assert found.refused is not None
    assert found.refused.span.line == 12
