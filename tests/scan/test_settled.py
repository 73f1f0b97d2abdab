"""Ways to a graph that the source itself rules out: by the mode, the worker, a default."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.condition import render
from specmap.codemap.graph import CodeMap
from specmap.codemap.verdict import PhaseName, Verdict
from tests.review_tree import edit, plant, scan

MODEL_RUNNER = "sglang/srt/model_executor/model_runner.py"
WORKER = "sglang/srt/speculative/eagle_worker.py"
ASKED = "            and self.graph_runner.can_run(forward_batch)\n"
INIT = "    def __init__(self, server_args, is_draft_worker: bool):\n"
CLASS = "class ModelRunner:\n"
IMPORTS = "from dataclasses import dataclass\n"
ALGORITHM = "from sglang.srt.speculative.spec_info import SpeculativeAlgorithm\n"
BUILT = "        if not server_args.disable_cuda_graph and"
ATTRIBUTE = "        self.is_draft_worker = is_draft_worker\n"
STORED = "        self.spec_algorithm = SpeculativeAlgorithm.from_string("
STORED += "server_args.speculative_algorithm)\n"


def ways(codemap: CodeMap, worker: str = "EAGLEWorker") -> dict[str, str]:
    """The ways that a worker's verify can take, each with its condition."""
    found = next(w for w in codemap.workers if w.name == worker)
    verify = next(p for p in found.phases if p.name is PhaseName.VERIFY)
    return {arm.kind.value: render(arm.condition) for arm in verify.arms}


def asking(folder: Path, test: str, helper: str, before: str = INIT) -> CodeMap:
    edit(folder, MODEL_RUNNER, (ASKED, f"{ASKED}            and {test}\n"))
    edit(folder, MODEL_RUNNER, (before, f"{helper}\n{before}"))
    return scan(folder)


@pytest.mark.parametrize("returns", ["", " -> bool"])
@pytest.mark.parametrize("batch", ["fb", "fb: ForwardBatch"])
@pytest.mark.parametrize(
    "body",
    [
        "        return fb.forward_mode.is_decode()\n",
        "        return not fb.forward_mode.is_target_verify() and self.is_draft_worker\n",
        "        if fb.forward_mode.is_target_verify():\n            return False\n"
        "        return True\n",
    ],
)
def test_a_method_that_tests_the_mode_of_the_batch_it_is_given(
    tmp_path: Path, returns: str, batch: str, body: str
) -> None:
    helper = f"    def _graph_allowed(self, {batch}){returns}:\n{body}"
    found = asking(plant(tmp_path / "t"), "self._graph_allowed(forward_batch)", helper)
    assert ways(found) == {"eager": "always"}
    assert ways(found, "NGRAMWorker") == {"eager": "always"}


@pytest.mark.parametrize(
    ("test", "helper"),
    [
        (
            "allowed(forward_batch)",
            "def allowed(fb) -> bool:\n    return fb.forward_mode.is_idle()",
        ),
        ("allowed(forward_batch.forward_mode)", "def allowed(mode):\n    return mode.is_decode()"),
    ],
)
def test_a_function_that_tests_the_mode(tmp_path: Path, test: str, helper: str) -> None:
    found = asking(plant(tmp_path / "t"), test, f"{helper}\n\n", CLASS)
    assert ways(found) == {"eager": "always"}


def test_a_helper_that_gives_nothing_for_the_mode(tmp_path: Path) -> None:
    helper = (
        "    def _width(self, fb: ForwardBatch) -> Optional[int]:\n        mode = fb.forward_mode\n"
    )
    helper += "        if mode.is_decode():\n            return 1\n        return None\n"
    folder = plant(tmp_path / "t")
    edit(folder, MODEL_RUNNER, (IMPORTS, f"{IMPORTS}from typing import Optional\n"))
    found = asking(folder, "self._width(forward_batch) is not None", helper)
    assert ways(found) == {"eager": "always"}


def test_a_helper_that_asks_for_more_than_the_mode_stays_a_test(tmp_path: Path) -> None:
    helper = "    def _graph_allowed(self, fb) -> bool:\n"
    helper += "        return fb.forward_mode.is_target_verify() and fb.batch_size < 3\n"
    found = asking(plant(tmp_path / "t"), "self._graph_allowed(forward_batch)", helper)
    assert "self._graph_allowed(forward_batch)" in ways(found)["graph"]


NO_SPECULATION = [
    "not self.spec_algorithm.is_none()",
    "server_args.speculative_algorithm is not None",
    "self.server_args.speculative_algorithm",
]


def leaving_early(folder: Path, test: str) -> CodeMap:
    left = f"        if {test}:\n            return\n"
    changes = ((IMPORTS, IMPORTS + ALGORITHM), (ATTRIBUTE, STORED + ATTRIBUTE))
    edit(folder, MODEL_RUNNER, *changes, (BUILT, left + BUILT))
    return scan(folder)


@pytest.mark.parametrize("test", NO_SPECULATION)
def test_a_runner_that_is_made_without_speculation_only(tmp_path: Path, test: str) -> None:
    found = leaving_early(plant(tmp_path / "t"), test)
    for worker in ("EAGLEWorker", "NGRAMWorker"):
        assert list(ways(found, worker)) == ["eager"]
    verdicts = {p.verdict for w in found.workers for p in w.phases if p.name is PhaseName.VERIFY}
    assert verdicts == {Verdict.EAGER}


def test_a_runner_that_is_made_for_another_worker_only(tmp_path: Path) -> None:
    found = leaving_early(plant(tmp_path / "t"), "not self.spec_algorithm.is_ngram()")
    assert list(ways(found)) == ["eager"]
    assert list(ways(found, "NGRAMWorker")) == ["graph", "eager"]


SWITCH = """
    def apply_runtime_state(self, state):
        self.target_worker.model_runner.graph_runner = CudaGraphRunner(state)
"""
IMPORTED = "from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner\n"


def test_a_default_that_nobody_overrides(tmp_path: Path) -> None:
    folder = plant(tmp_path / "t")
    made = "        self._graphs(server_args)\n\n"
    made += "    def _graphs(self, server_args, on: bool = False):\n        if not on:\n"
    edit(folder, MODEL_RUNNER, (BUILT, f"{made}            return\n{BUILT}"))
    edit(folder, MODEL_RUNNER, ("and not is_draft_worker", "and not self.is_draft_worker"))
    assert ways(scan(folder)) == {"eager": "always"}
    # A worker that may switch runners while it runs has one from then on.
    worker = (folder / WORKER).read_text("utf-8")
    (folder / WORKER).write_text(f"{IMPORTED}{worker}{SWITCH}", "utf-8")
    found = ways(scan(folder))
    assert found["graph"].startswith("server_args.speculative_adaptive and ")
    assert found["eager"].startswith("not server_args.speculative_adaptive or ")
