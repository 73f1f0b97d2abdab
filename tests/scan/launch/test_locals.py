"""Tests of the map whose names are bound in the function around them, or by a set-up method."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.tables import Inputs
from tests.scan.launch.programs import GPU, launch

WORKER = "sglang/srt/speculative/worker.py"
SOURCE = """from sglang.srt.layers.attention.plain import *
_is_cuda = True


class DraftWorker:
    def init_attention_backend(self):
        makers = {"first": FirstBackend, "second": SecondBackend}
        self.draft_attn_backend = makers[self.server_args.name](self.draft_runner)
        self.draft_extend_attn_backend = None

    def capture(self, runner, limit):
        kinds = [FirstBackend]
        if _is_cuda:
            from sglang.srt.layers.attention.plain import ThirdBackend

            kinds.append(ThirdBackend)
        for extra in runner.extras:
            rest = extra
        width = self.server_args.b
        if width is not None and rest and isinstance(self.draft_attn_backend, tuple(kinds)):
            return width
"""
BACKENDS = """
class Base(ABC):
    pass

class FirstBackend(Base):
    def __init__(self, runner):
        raise ValueError("needs a GPU")

class SecondBackend(FirstBackend):
    pass

class ThirdBackend(FirstBackend):
    pass
"""
LAST = 20


def evaluator(tmp_path: Path, name: str) -> Evaluator:
    files = {WORKER: SOURCE, "sglang/srt/layers/attention/plain.py": BACKENDS}
    return launch(tmp_path, "pass", files=files, inputs=Inputs(values={"name": name}))


@pytest.mark.parametrize(("name", "admitted"), [("first", True), ("second", True)])
def test_a_list_that_the_function_builds(tmp_path: Path, name: str, admitted: bool) -> None:
    text = "isinstance(self.draft_attn_backend, tuple(kinds))"
    assert evaluator(tmp_path, name).truth(text, WORKER, LAST).truth is admitted


def test_what_the_list_does_not_hold(tmp_path: Path) -> None:
    text = "isinstance(self.draft_attn_backend, SecondBackend)"
    assert evaluator(tmp_path, "first").truth(text, WORKER, LAST).truth is False
    assert evaluator(tmp_path, "second").truth(text, WORKER, LAST).truth is True


@pytest.mark.parametrize(
    ("kinds", "holds"),
    [
        ("(FirstBackend, ThirdBackend)", True),
        ("(SecondBackend, ThirdBackend)", None),
        ("(ThirdBackend, Base)", True),
        ("(ThirdBackend,)", False),
        ("SecondBackend", None),
    ],
)
def test_one_of_two_objects_and_a_list_of_classes(
    tmp_path: Path, kinds: str, holds: bool | None
) -> None:
    text = f"isinstance(self.draft_attn_backend, {kinds})"
    files = {WORKER: SOURCE, "sglang/srt/layers/attention/plain.py": BACKENDS}
    asked = launch(tmp_path, GPU + 'self.name = "first" if gpu else "second"', files=files)
    assert asked.truth(text, WORKER).truth is holds


def test_only_what_stands_before_the_line_counts(tmp_path: Path) -> None:
    text = "len(kinds) == 2"
    assert evaluator(tmp_path, "first").truth(text, WORKER, LAST).truth is True
    assert evaluator(tmp_path, "first").truth(text, WORKER, 13).truth is False


def test_a_local_name_of_a_setting(tmp_path: Path) -> None:
    found = evaluator(tmp_path, "first").truth("width == 2", WORKER, LAST)
    assert found.truth is True
    assert [fact.name for fact in found.settings] == ["b"]


@pytest.mark.parametrize("text", ["rest", "limit > 2"])
def test_loops_and_parameters_are_not_followed(tmp_path: Path, text: str) -> None:
    assert evaluator(tmp_path, "first").truth(text, WORKER, LAST).truth is None


def test_an_object_is_true_and_none_is_not(tmp_path: Path) -> None:
    asked = evaluator(tmp_path, "first")
    assert asked.truth("self.draft_attn_backend", WORKER, LAST).truth is True
    assert asked.truth("self.draft_extend_attn_backend", WORKER, LAST).truth is False


def test_the_name_of_a_class(tmp_path: Path) -> None:
    assert evaluator(tmp_path, "first").kind("self.draft_attn_backend", WORKER) == "FirstBackend"
    assert evaluator(tmp_path, "third").kind("self.draft_attn_backend", WORKER) == ""


RUNNER = """class Runner:
    limit = 0

    def __init__(self, server_args):
        self.server_args = server_args
        self.limit = server_args.b

    @property
    def few(self):
        return self.server_args.b <= 2

    def may_run(self, most=2):
        return self.few and self.server_args.b <= most

    def counts(self):
        return self.server_args.b > 0

    def run(self, batch):
        if self.may_run():
            return batch


class Below(Runner):
    def counts(self):
        return True
"""


@pytest.mark.parametrize(
    ("text", "value", "truth"),
    [
        ("self.may_run()", 2, True),
        ("self.may_run()", 3, False),
        ("self.may_run(most=1)", 2, False),
        ("self.few", 2, True),
        ("self.few", 3, False),
        # What a class gives an attribute, an object may hold otherwise.
        ("self.limit", 2, None),
        # A class below has a method of its own.
        ("self.counts()", 2, None),
    ],
)
def test_a_method_that_reads_settings_is_run(
    tmp_path: Path, text: str, value: int, truth: bool | None
) -> None:
    files = {WORKER: RUNNER}
    inputs = Inputs(values={"b": value})
    made = launch(tmp_path, "pass", files=files, inputs=inputs)
    line = RUNNER.splitlines().index("        if self.may_run():") + 1
    assert made.truth(text, WORKER, line).truth is truth
