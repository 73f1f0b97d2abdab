"""A runner that is taken away, or replaced, while verify runs: by whatever means, whenever."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.condition import render
from tests.review_tree import VERIFY, edit, plant, scan

WORKER = "sglang/srt/speculative/eagle_worker.py"
SET_UP = "        self.init_cuda_graphs()\n"
CHECK = "        self.check = server_args.check_eager\n"
PASS = "        result = self.target_worker.forward_batch_generation(batch, is_verify=True)\n"
BLOCK = "    " + PASS
RUNNER = "self.target_worker.model_runner"
KEPT = f"        kept = {RUNNER}.graph_runner\n"
GONE = f"        {RUNNER}.graph_runner = None\n"
BACK = f"        {RUNNER}.graph_runner = kept\n"
TAKEN_AWAY = """
@contextlib.contextmanager
def graphs_taken_away(runner, check=True):
    if not check:
        yield
        return
    kept, runner.graph_runner = runner.graph_runner, None
    try:
        yield
    finally:
        runner.graph_runner = kept


class NoGraphs:
    def __init__(self, runner):
        self.runner = runner

    def __enter__(self):
        self.kept = self.runner.graph_runner
        self.runner.graph_runner = None

    def __exit__(self, *_):
        self.runner.graph_runner = self.kept


class EagerRunner:
    def can_run(self, forward_batch):
        return False


class EagleVerify"""
METHODS = """
    def take_away(self):
        if not self.check:
            return
        self.kept = self.target_worker.model_runner.graph_runner
        self.target_worker.model_runner.graph_runner = None

    def give_back(self):
        if self.check:
            self.target_worker.model_runner.graph_runner = self.kept

    def eagerly(self, batch):
        with graphs_taken_away(self.target_worker.model_runner):
            return self.target_worker.forward_batch_generation(batch, is_verify=True)

    def verify("""


def verify_replays(folder: Path, instead: str) -> str:
    """When verify of the EAGLE worker replays a graph, with a changed target forward."""
    plant(folder)
    changes = (PASS, instead), ("\nclass EagleVerify", TAKEN_AWAY), ("\n    def verify(", METHODS)
    edit(folder, VERIFY, *changes)
    edit(folder, WORKER, (SET_UP, CHECK + SET_UP))
    worker = next(w for w in scan(folder).workers if w.name == "EAGLEWorker")
    return next(render(p.graph_when) for p in worker.phases if p.name.value == "verify")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """When verify replays in the tree as it is."""
    return verify_replays(tmp_path_factory.mktemp("usual") / "t", PASS)


def under(manager: str) -> str:
    return f"        with {manager}:\n{BLOCK}"


NULL = "contextlib.nullcontext()"
AWAY = f"graphs_taken_away({RUNNER})"
ALWAYS = {
    "block": KEPT + GONE + PASS + BACK,
    "finally": f"{KEPT}{GONE}        try:\n{BLOCK}        finally:\n    {BACK}",
    "never back": GONE + PASS,
    "kept on the worker": f"        self.kept = {RUNNER}.graph_runner\n{GONE}{PASS}"
    f"        {RUNNER}.graph_runner = self.kept\n",
    "setattr": f"{KEPT}        setattr({RUNNER}, 'graph_runner', None)\n{PASS}{BACK}",
    "another kind of runner": f"        {RUNNER}.graph_runner = EagerRunner()\n{PASS}",
    "manager": under(AWAY),
    "manager by name": f"        away = {AWAY}\n{under('away')}",
    "manager told to": under(f"graphs_taken_away({RUNNER}, True)"),
    "manager of a class": under(f"NoGraphs({RUNNER})"),
    "method that returns inside": "        result = self.eagerly(batch)\n",
}


@pytest.mark.parametrize("instead", ALWAYS.values(), ids=ALWAYS)
def test_a_runner_is_gone_while_verify_runs(tmp_path: Path, instead: str) -> None:
    assert verify_replays(tmp_path / "t", instead) == "never"


TESTED = {
    "both tested": f"        if self.check:\n    {KEPT}    {GONE}{PASS}"
    f"        if self.check:\n    {BACK}",
    "one tested": f"{KEPT}        if self.check:\n    {GONE}{PASS}{BACK}",
    "never back": f"        if self.check:\n    {GONE}{PASS}",
    "value": f"{KEPT}        {RUNNER}.graph_runner = None if self.check else kept\n{PASS}{BACK}",
    "another kind": f"        if self.check:\n"
    f"            {RUNNER}.graph_runner = EagerRunner()\n{PASS}",
    "manager": under(f"({AWAY} if self.check else {NULL})"),
    "manager, negated": under(f"({NULL} if not self.check else {AWAY})"),
    "manager by name": f"        away = {AWAY} if self.check else {NULL}\n{under('away')}",
    "manager by branch": f"        away = {NULL}\n        if self.check:\n"
    f"            away = {AWAY}\n{under('away')}",
    "manager told to": under(f"graphs_taken_away({RUNNER}, self.check)"),
    "manager of a class": under(f"(NoGraphs({RUNNER}) if self.check else {NULL})"),
    "stack of managers": "        with contextlib.ExitStack() as stack:\n"
    f"            if self.check:\n                stack.enter_context({AWAY})\n{BLOCK}",
    "method that returns early": f"        self.take_away()\n{PASS}        self.give_back()\n",
    "short circuit": f"        self.check and self.take_away()\n{PASS}",
    "exception": f"{KEPT}        try:\n            if self.check:\n        {GONE}{BLOCK}"
    f"        except ValueError:\n            pass\n        finally:\n    {BACK}",
}


@pytest.mark.parametrize("instead", TESTED.values(), ids=TESTED)
def test_a_runner_that_a_test_takes_away(tmp_path: Path, usual: str, instead: str) -> None:
    """The test is a term of verify's condition, whatever way it takes the runner away."""
    found = verify_replays(tmp_path / "t", instead)
    assert found == f"not server_args.check_eager and {usual}"


def test_a_runner_that_a_loop_takes_away(tmp_path: Path, usual: str) -> None:
    """Nobody knows whether it went round."""
    loop = f"        for flag in self.flags:\n    {GONE}{PASS}"
    assert verify_replays(tmp_path / "t", loop) == f"not self.flags and {usual}"


@pytest.mark.parametrize(
    "instead",
    [
        KEPT + GONE + BACK + PASS,
        PASS + KEPT + GONE + BACK,
        f"        with {AWAY}:\n            pass\n{PASS}",
        f"        {AWAY}\n{PASS}",
        under("graphs_taken_away(self.draft_worker.model_runner)"),
        under(f"graphs_taken_away({RUNNER}, False)"),
        f"        away = {AWAY}\n{PASS}",
        f"        with NoGraphs({RUNNER}):\n            pass\n{PASS}",
        f"        self.eagerly(batch)\n{PASS}",
    ],
)
def test_a_runner_that_is_back_or_another_one_is_not(
    tmp_path: Path, usual: str, instead: str
) -> None:
    assert verify_replays(tmp_path / "t", instead) == usual != "never"


SIZED = """

class SizedRunner(CudaGraphRunner):
    def __init__(self, model_runner, small):
        super().__init__(model_runner)
        self.small = small

    def can_run(self, forward_batch):
        if self.small:
            return forward_batch.batch_size == 1
        return super().can_run(forward_batch)


class ModelRunner:"""


@pytest.mark.parametrize("small", [True, False])
def test_another_runner_of_the_same_kind(tmp_path: Path, usual: str, small: bool) -> None:
    folder = tmp_path / "t"
    plant(folder)
    runners = "sglang/srt/model_executor/model_runner.py"
    made = "self.graph_runner = CudaGraphRunner(self)"
    of_target = made.replace("CudaGraphRunner(self)", "SizedRunner(self, False)")
    edit(folder, runners, ("\n\nclass ModelRunner:", SIZED), (made, of_target))
    own = f"        self.own = SizedRunner({RUNNER}, {small})\n"
    imported = (
        "from sglang.srt.model_executor.model_runner import SizedRunner\n\n\nclass EAGLEWorker("
    )
    edit(folder, WORKER, (SET_UP, own + SET_UP), ("\n\nclass EAGLEWorker(", imported))
    edit(folder, VERIFY, (PASS, f"        {RUNNER}.graph_runner = self.own\n{PASS}"))
    worker = next(w for w in scan(folder).workers if w.name == "EAGLEWorker")
    found = next(render(p.graph_when) for p in worker.phases if p.name.value == "verify")
    expected = "(forward_batch.batch_size == 1)" if small else usual.split(" and ")[1]
    assert found == expected.strip("()")
