"""Views, declarations, environment variables and questions, on invented settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.launch import Answer
from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.tables import Inputs
from tests.scan.launch.programs import GPU, launch

OVERRIDES = {
    "sglang/srt/arg_groups/overrides.py": """
class ResolvedView:
    pass

def resolving_view(server_args): ...
def resolved_view(server_args): ...
def declare_resolution(server_args, source, **fields): ...
def run_post_process_pass(server_args, fn): ...
def resolution_result(server_args, name): ...

PROVIDERS = {}

def register(name):
    def decorator(fn):
        PROVIDERS.setdefault(name, []).append(fn)
        return fn
    return decorator

@register("x")
def _for_x(server_args):
    return {"a": 1}

@register("y")
def _for_y(server_args):
    declared = {}
    declared["b"] = 7
    return declared
"""
}
IMPORTS = """
from sglang.srt.arg_groups.overrides import (
    PROVIDERS, declare_resolution, resolved_view, resolving_view, run_post_process_pass
)
"""


def test_a_declaration_is_seen_by_live_views_and_not_by_snapshots(tmp_path: Path) -> None:
    body = """
live, snapshot = resolving_view(self), resolved_view(self)
declare_resolution(self, 'me', a=4)
self.sizes = [live.a, 0 if snapshot.a is None else 1, 0 if self.a is None else 1]
"""
    facts = launch(tmp_path, IMPORTS + body, files=OVERRIDES).facts()
    assert facts.value("sizes") == (4, 0, 0)
    assert facts.value("a") == 4


def test_a_pass_declares_what_it_returns_at_the_line_that_says_so(tmp_path: Path) -> None:
    body = IMPORTS + "run_post_process_pass(self, _later)"
    after = "\n\ndef _later(view):\n    if view.b == 2:\n        return {'b': 3}\n    return {}\n"
    facts = launch(tmp_path, body, after=after, files=OVERRIDES).facts()
    assert facts.value("b") == 3
    span = facts.facts["b"].origins[0].span
    assert span is not None
    text = (tmp_path / span.file).read_text().splitlines()[span.line - 1]
    assert text.strip() == "return {'b': 3}"


def test_an_unknown_key_runs_every_registered_provider_maybe(tmp_path: Path) -> None:
    body = (
        IMPORTS
        + """
for fn in PROVIDERS.get(torch.name(), ()):
    declare_resolution(self, 'provider', **fn(self))
"""
    )
    facts = launch(tmp_path, body, files=OVERRIDES).facts()
    assert facts.facts["a"].alternatives == (None, 1)
    assert facts.facts["b"].alternatives == (2, 7)
    assert facts.value("c") is False


ENVIRON = {
    "sglang/srt/environ.py": """
import os


class EnvField:
    def __init__(self, default):
        self.default = default

    def __set_name__(self, owner, name):
        self.name = name

    def get(self):
        value = os.getenv(self.name)
        return self.default if value is None else self.parse(value)

    def is_set(self):
        return self.name in os.environ

    def set(self, value):
        os.environ[self.name] = str(value)


class EnvBool(EnvField):
    def parse(self, value):
        return value.lower() in ("1", "true")


class Envs:
    FAST = EnvBool(False)


envs = Envs()
"""
}
READ = "from sglang.srt.environ import envs\nself.c = envs.FAST.get()\n"


@pytest.mark.parametrize(
    ("environment", "rest_unset", "known", "value"),
    [
        ({}, True, True, False),
        ({"FAST": "1"}, True, True, True),
        ({"FAST": None}, False, True, False),
        ({}, False, False, None),
    ],
    ids=["unset", "set", "known to be unset", "not stated"],
)
def test_environment_variables(
    tmp_path: Path,
    environment: dict[str, str | None],
    rest_unset: bool,
    known: bool,
    value: bool | None,
) -> None:
    inputs = Inputs(environment=environment, rest_unset=rest_unset)
    fact = launch(tmp_path, READ, files=ENVIRON, inputs=inputs).facts().facts["c"]
    assert (fact.known, fact.value) == (known, value)
    if not known:
        assert fact.reasons == ("env FAST",)


def test_a_variable_whose_value_is_not_known(tmp_path: Path) -> None:
    inputs = Inputs(unknown_environment=("FAST",))
    fact = launch(tmp_path, READ, files=ENVIRON, inputs=inputs).facts().facts["c"]
    assert (fact.known, fact.reasons) == (False, ("env FAST",))


def test_a_variable_that_the_code_sets(tmp_path: Path) -> None:
    body = "from sglang.srt.environ import envs\nenvs.FAST.set(1)\nself.c = envs.FAST.is_set()"
    facts = launch(tmp_path, body, files=ENVIRON).facts()
    assert facts.value("c") is True
    assert facts.environment["FAST"].value == "1"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Evaluator:
    files = {
        "sglang/srt/speculative/spec_info.py": """
from enum import Enum, auto

class SpeculativeAlgorithm(Enum):
    EAGLE = auto()
    NONE = auto()

    def is_eagle(self):
        return self == SpeculativeAlgorithm.EAGLE

    @classmethod
    def from_string(cls, name):
        return cls[(name or "none").upper()]
""",
        "sglang/srt/worker.py": "LIMIT = 4\n",
    }
    after = "    speculative_algorithm: Optional[str] = 'EAGLE'\n    pp_size: int = 1\n"
    body = GPU + "if gpu:\n    self.a = 1\nself.b = 3\n"
    return launch(tmp_path_factory.mktemp("asked"), body, after=after, files=files)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("server_args.b == 3", True),
        ("self.server_args.b > 3", False),
        ("self.b > LIMIT", False),
        ("spec_algorithm.is_eagle()", True),
        ("not self.speculative_algorithm.is_eagle()", False),
        ("get_parallel().pp_group.is_last_rank", True),
        ("get_parallel().pp_rank != 0", False),
        ("server_args.a is None", None),
        ("server_args.a is None and server_args.b == 2", False),
        ("self.runner is None", None),
        ("step == 0", None),
        ("hasattr(self.runner, 'x')", None),
        ("self.b + 'x'", None),
        ("this is no expression", None),
    ],
)
def test_whether_a_test_of_the_map_holds(asked: Evaluator, text: str, truth: bool | None) -> None:
    answer = asked.truth(text, "sglang/srt/worker.py")
    assert answer.truth is truth
    assert bool(answer.reasons) is (truth is None)


def test_an_answer_says_what_it_read(asked: Evaluator) -> None:
    answer: Answer = asked.truth("server_args.b > 1")
    [operand] = answer.operands
    assert (operand.name, operand.value) == ("server_args.b", 3)
    [setting] = answer.settings
    assert setting.name == "b"
    assert setting.origins[0].span is not None


def test_a_question_leaves_no_trace(asked: Evaluator) -> None:
    before = asked.facts()
    asked.truth("setattr(server_args, 'b', 9)")
    assert asked.facts() == before
    assert asked.truth("server_args.b == 3").truth is True


@pytest.mark.parametrize(("rest_unset", "known"), [(True, False), (False, False)])
def test_a_variable_that_only_one_way_sets(tmp_path: Path, rest_unset: bool, known: bool) -> None:
    body = GPU + 'if gpu:\n    os.environ["FAST"] = "1"\nself.c = "FAST" in os.environ\n'
    found = launch(tmp_path, body, inputs=Inputs(rest_unset=rest_unset)).facts().facts["c"]
    assert found.known is known


@pytest.mark.parametrize(("test", "value"), [("0 if gpu else 1", None), ("[]", 3)])
def test_a_name_that_a_module_binds_under_a_test(
    tmp_path: Path, test: str, value: int | None
) -> None:
    after = GPU + f"if {test}:\n    LIMIT = 1\nelse:\n    LIMIT = 3\n"
    found = launch(tmp_path, "self.a = LIMIT", after=after).facts().facts["a"]
    assert (found.known, found.value) == (value is not None, value)


CONTEXT = """
class Context:
    def __init__(self):
        self._server_args = None

    @property
    def server_args(self):
        if self._server_args is None:
            raise ValueError("not published")
        return self._server_args

    def publish(self, server_args):
        self._server_args = server_args

_CONTEXT = Context()

def get_server_args():
    return _CONTEXT.server_args

def another_name():
    return _CONTEXT.server_args
"""
ASKING = """
from sglang.srt.runtime_context import another_name, get_server_args

def is_three():
    try:
        server_args = get_server_args()
    except ValueError:
        return False
    return server_args.b == 3

def is_three_too():
    try:
        server_args = another_name()
    except ValueError:
        return False
    return server_args.b == 3
"""


@pytest.mark.parametrize(("test", "truth"), [("is_three()", True), ("is_three_too()", None)])
def test_what_a_server_publishes_is_not_empty(
    tmp_path: Path, test: str, truth: bool | None
) -> None:
    """Code that is asked about runs in a started server, not before the settings are there."""
    files = {"sglang/srt/runtime_context.py": CONTEXT, "sglang/srt/worker.py": ASKING}
    found = launch(tmp_path, "self.b = 3\n", files=files)
    assert found.truth(test, "sglang/srt/worker.py").truth is truth


@pytest.mark.parametrize("values", [{}, {"model_path": None}])
def test_a_launch_without_a_model_is_not_refused(tmp_path: Path, values: dict[str, object]) -> None:
    """SGLang requires a model path: a launch that does not name it leaves it open."""
    body = "self.name = self.model_path.lower()\nself.c = 'gguf' in self.model_path\nself.b = 5\n"
    found = launch(tmp_path, body, inputs=Inputs(values={"model_path": None, **values})).facts()
    assert found.refusals == ()
    assert found.value("b") == 5
    assert not found.facts["name"].known
    assert not found.facts["c"].known
