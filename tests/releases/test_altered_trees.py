"""Forks of 0.5.4.post3 by one small change each, and what verify makes of it.

The verdicts follow from the change and the release's source: what decides is a method that is
replaced at import, a runner that is taken away, a limit of its own, a thread. The trees were
written down, and their verdicts, before specmap was asked.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specmap.launched import Launch, judge_launch
from tests.releases.trees import checkout_of
from tests.releases.verdicts import verdicts

pytestmark = pytest.mark.releases

RELEASE = "0.5.4.post3"
COMMAND = (
    "--model-path meta-llama/Llama-3.1-8B-Instruct --speculative-draft-model-path someone/draft "
    "--attention-backend fa3 --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4 --speculative-algorithm "
)
RUNNER = "model_executor/cuda_graph_runner.py"
WORKER = "speculative/eagle_worker.py"
PATCH = """\
from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner


def _never(self, forward_batch):
    return False


CudaGraphRunner.can_run = _never
"""


@dataclass(frozen=True)
class Fork:
    """Edits as (file, old, new), files of its own, a launch and (draft, verify, draft extend)."""

    edits: tuple[tuple[str, str, str], ...]
    verdicts: tuple[str, str, str]
    algorithm: str = "EAGLE"
    files: dict[str, str] = field(default_factory=dict)


# A switch for verify alone, and a worker's subclass that drops the graph of draft extend.
SWITCHED = Fork(
    (
        (
            "server_args.py",
            "    disable_cuda_graph_padding: bool = False\n",
            "    disable_cuda_graph_padding: bool = False\n"
            "    disable_verify_cuda_graph: bool = True\n",
        ),
        (
            "model_executor/model_runner.py",
            "            mode_check()\n            and self.graph_runner\n",
            "            mode_check()\n            and self.graph_runner\n"
            "            and not (\n"
            "                forward_batch.forward_mode.is_target_verify()\n"
            "                and self.server_args.disable_verify_cuda_graph\n"
            "            )\n",
        ),
        (
            "speculative/standalone_worker.py",
            "class StandaloneWorker(EAGLEWorker):\n",
            "class StandaloneWorker(EAGLEWorker):\n\n"
            "    def init_cuda_graphs(self):\n"
            "        super().init_cuda_graphs()\n"
            "        self.cuda_graph_runner_for_draft_extend = None\n",
        ),
    ),
    ("GRAPH", "EAGER", "EAGER"),
    "STANDALONE",
)
# A method that another module replaces when it is imported.
REPLACED = Fork(
    (
        (
            "managers/scheduler.py",
            "import faulthandler\n",
            "import faulthandler\n\nimport sglang.srt.fork_patches  # noqa: F401\n",
        ),
    ),
    ("GRAPH", "EAGER", "GRAPH"),
    files={"fork_patches.py": PATCH},
)
# The draft worker takes the target's runner away, after it was built.
TAKEN = Fork(
    (
        (
            WORKER,
            "        # Some dummy tensors\n",
            "        if self.speculative_num_steps > 2:\n"
            "            self.target_worker.model_runner.graph_runner = None\n"
            "        # Some dummy tensors\n",
        ),
    ),
    ("GRAPH", "EAGER", "GRAPH"),
)
# The limit of the target's runner is smaller than what it captures.
LIMITED = Fork(
    (
        (
            RUNNER,
            "        self.max_bs = max(self.capture_bs)\n",
            "        self.max_bs = min(max(self.capture_bs), 2)\n",
        ),
    ),
    ("GRAPH", "EAGER", "GRAPH"),
)
# The target's runner captures some of the sizes that the launch asks for.
SHORTENED = Fork(
    (
        (
            RUNNER,
            "        self.capture_bs, self.compile_bs = get_batch_sizes_to_capture(model_runner)\n",
            "        sizes, self.compile_bs = get_batch_sizes_to_capture(model_runner)\n"
            "        self.capture_bs = sizes[:2]\n",
        ),
    ),
    ("GRAPH", "EAGER", "GRAPH"),
)
# Verify's pass is handed to a thread: the same function runs.
THREADED = Fork(
    (
        (
            WORKER,
            "        batch_result = self.target_worker.forward_batch_generation(\n"
            "            model_worker_batch, is_verify=True\n"
            "        )\n"
            "        logits_output, can_run_cuda_graph",
            "        batch_result = self.verify_pool.submit(\n"
            "            self.target_worker.forward_batch_generation,\n"
            "            model_worker_batch,\n"
            "            is_verify=True,\n"
            "        ).result()\n"
            "        logits_output, can_run_cuda_graph",
        ),
        (
            WORKER,
            "        # Some dummy tensors\n",
            "        self.verify_pool = ThreadPoolExecutor(max_workers=1)\n"
            "        # Some dummy tensors\n",
        ),
        (
            WORKER,
            "import logging\n",
            "import logging\nfrom concurrent.futures import ThreadPoolExecutor\n",
        ),
    ),
    ("GRAPH", "GRAPH", "GRAPH"),
)


def _unmet(name: str, fork: Fork, reason: str) -> object:
    return pytest.param(
        fork, id=name, marks=pytest.mark.xfail(raises=AssertionError, strict=True, reason=reason)
    )


@pytest.mark.parametrize(
    "fork",
    [
        pytest.param(SWITCHED, id="switched"),
        pytest.param(REPLACED, id="replaced"),
        pytest.param(TAKEN, id="taken"),
        _unmet("limited", LIMITED, "UNKNOWN: the smaller of two limits"),
        _unmet("shortened", SHORTENED, "UNKNOWN: a list that the runner shortens"),
        _unmet("threaded", THREADED, "UNKNOWN: a method is handed to code that nobody reads"),
    ],
)
def test_verdicts_of_an_altered_tree(fork: Fork, tmp_path: Path) -> None:
    stock = Path(checkout_of(RELEASE).root)
    source = stock / "sglang" if (stock / "sglang").is_dir() else stock
    root = tmp_path / "sglang"
    shutil.copytree(source, root)
    for name, old, new in fork.edits:
        path = root / "srt" / name
        text = path.read_text("utf-8")
        if old not in text:
            raise ValueError(f"{name} has no {old!r}")
        path.write_text(text.replace(old, new, 1), "utf-8")
    for name, text in fork.files.items():
        (root / "srt" / name).write_text(text, "utf-8")
    launch = Launch(COMMAND + fork.algorithm, gpu_memory=80, sm=90, batch="bs=4")
    assert verdicts(judge_launch(str(root), launch, use_cache=False)) == fork.verdicts
