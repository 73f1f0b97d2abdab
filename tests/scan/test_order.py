"""What runs later counts: stores of a constructor, settings it changes, arms that set the mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.condition import render
from tests.review_tree import DRAFT, edit, plant, scan

WORKER = "sglang/srt/speculative/eagle_worker.py"
SCHEDULER = "sglang/srt/managers/scheduler.py"
SET_UP = "        self.init_cuda_graphs()\n"
OFF = "        server_args.disable_cuda_graph = True\n"
MODE = "        batch.forward_mode = ForwardMode.DRAFT_EXTEND\n"


def graphs(folder: Path) -> dict[str, str]:
    """When each phase of the EAGLE worker replays a graph; phases that do not run are left out."""
    worker = next(w for w in scan(folder).workers if w.name == "EAGLEWorker")
    return {p.name.value: render(p.graph_when) for p in worker.phases if p.arms}


def test_a_store_after_the_set_up_wins(tmp_path: Path) -> None:
    folder = plant(tmp_path / "t")
    before = graphs(folder)
    cleared = "        self.cuda_graph_runner_for_draft_extend = None\n"
    edit(folder, WORKER, (SET_UP, SET_UP + cleared))
    after = graphs(folder)
    assert after["draft_extend"] == "never"
    assert after["draft"] == before["draft"] != "never"
    # Set up once more while it runs: then there is a runner again.
    again = "    def reset(self):\n        self.init_cuda_graphs()\n\n    def forward_batch_gen"
    edit(folder, WORKER, ("    def forward_batch_gen", again))
    assert graphs(folder)["draft_extend"] != "never"


def test_a_store_before_the_set_up_does_not(tmp_path: Path) -> None:
    folder = plant(tmp_path / "t")
    before = graphs(folder)
    cleared = "        self.cuda_graph_runner_for_draft_extend = None\n"
    edit(folder, WORKER, (SET_UP, cleared + SET_UP))
    assert graphs(folder) == before


def test_a_setting_that_is_not_restored_stays(tmp_path: Path) -> None:
    folder = plant(tmp_path / "t")
    before = graphs(folder)
    edit(folder, WORKER, (SET_UP, OFF + SET_UP))
    after = graphs(folder)
    assert (after["draft"], after["draft_extend"]) == ("never", "never")
    assert after["verify"] == before["verify"] != "never"


def test_a_setting_that_is_restored_does_not(tmp_path: Path) -> None:
    folder = plant(tmp_path / "t")
    before = graphs(folder)
    made = "        self.draft_worker = TpModelWorker(server_args, is_draft_worker=True)\n"
    kept = f"        kept = server_args.disable_cuda_graph\n{OFF}"
    edit(folder, WORKER, (made, f"{kept}{made}        server_args.disable_cuda_graph = kept\n"))
    assert graphs(folder) == before


LOADED = """
    def _load(self, options):
        launch = options["server_args"]
        kept = launch.disable_cuda_graph
        launch.disable_cuda_graph = kept or not self.spec_algorithm.is_none()
        target = TpModelWorker(**options)
        launch.disable_cuda_graph = kept
        return target

    def run_batch("""


def test_a_method_that_makes_the_child_under_another_setting(tmp_path: Path) -> None:
    folder = plant(tmp_path / "t")
    before = graphs(folder)
    made = ("TpModelWorker(server_args)", "self._load(dict(server_args=server_args))")
    edit(folder, SCHEDULER, made, ("\n    def run_batch(", LOADED))
    after = graphs(folder)
    assert after["verify"] == "never"
    assert after["draft"] == before["draft"] != "never"


@pytest.mark.parametrize("first", ["DRAFT_EXTEND", "IDLE"])
def test_a_batch_with_nothing_to_do_is_not_the_phase(tmp_path: Path, first: str) -> None:
    """An arm that idles is another rank's situation, whichever arm comes last."""
    folder = plant(tmp_path / "t")
    before = graphs(folder)
    second = "IDLE" if first == "DRAFT_EXTEND" else "DRAFT_EXTEND"
    arms = (
        "        if batch.spec_info is not None:\n"
        f"            batch.forward_mode = ForwardMode.{first}\n        else:\n"
        f"            batch.forward_mode = ForwardMode.{second}\n"
    )
    edit(folder, DRAFT, (MODE, arms))
    assert graphs(folder) == before
    assert "draft_extend" in before


RUNNERS = "sglang/srt/model_executor/model_runner.py"
PIECES = """\
        self.init_pieces()

    def init_pieces(self, for_draft=False):
        self.pieces = None
        if self.is_draft_worker and not for_draft:
            return
        self.pieces = PiecewiseCudaGraphRunner(self)

    def forward(self, forward_batch: ForwardBatch) -> ModelRunnerOutput:
        if forward_batch.forward_mode.is_draft_extend() and self.pieces is not None:
            return ModelRunnerOutput(self.pieces.replay(forward_batch), True)
"""


@pytest.mark.parametrize(
    ("asked", "when"),
    [
        ("", ""),
        ("        self.draft_worker.model_runner.init_pieces()\n", ""),
        (
            "        if server_args.piecewise_draft_extend:\n"
            "            self.draft_worker.model_runner.init_pieces(for_draft=True)\n",
            "server_args.piecewise_draft_extend",
        ),
    ],
)
def test_a_runner_that_the_worker_asks_the_model_runner_for(
    tmp_path: Path, asked: str, when: str
) -> None:
    """The model runner's own call for a runner is not the only one."""
    folder = plant(tmp_path / "t")
    forward = "    def forward(self, forward_batch: ForwardBatch) -> ModelRunnerOutput:\n"
    edit(folder, RUNNERS, (f"\n{forward}", PIECES))
    edit(folder, WORKER, (SET_UP, SET_UP + asked))
    worker = next(w for w in scan(folder).workers if w.name == "EAGLEWorker")
    extend = next(p for p in worker.phases if p.name == "draft_extend")
    ways = {render(arm.condition) for arm in extend.arms if arm.kind == "piecewise"}
    assert bool(ways) == bool(when)
    assert all(when in way for way in ways)


DROPS = "    def drop(self):\n        self.cuda_graph_runner = None\n\n    def forward_batch_gen"
DROPS_THERE = DROPS.replace(
    "        self.cuda", "        if self.cuda_graph_runner is not None:\n            self.cuda"
)
DROPS_IF = DROPS.replace(
    "        self.cuda",
    "        if self.speculative_num_steps > 4:\n            self.cuda",
)
GOES_ON = SET_UP + "        self.drop()\n"
TESTED = SET_UP + "        if self.speculative_num_steps > 4:\n            self.drop()\n"
ANEW = "    def init_cuda_graphs(self):\n        super().init_cuda_graphs()\n"
AFTER = f"{ANEW}        self.cuda_graph_runner = None\n\n    def forward_batch_gen"
BEFORE = AFTER.replace(
    "        super().init_cuda_graphs()\n        self.cuda_graph_runner = None\n",
    "        self.cuda_graph_runner = None\n        super().init_cuda_graphs()\n",
)


@pytest.mark.parametrize(
    ("set_up", "methods", "left"),
    [
        (GOES_ON, DROPS, "never"),
        (GOES_ON, DROPS_THERE, "never"),
        (GOES_ON, DROPS_IF, "steps"),
        (TESTED, DROPS, "steps"),
        ("        self.drop()\n" + SET_UP, DROPS, "same"),
        (SET_UP, DROPS, "same"),
        (SET_UP, AFTER, "never"),
        (SET_UP, BEFORE, "same"),
    ],
)
def test_a_runner_that_a_later_method_of_the_constructor_drops(
    tmp_path: Path, set_up: str, methods: str, left: str
) -> None:
    folder = plant(tmp_path / "t")
    before = graphs(folder)
    edit(folder, WORKER, (SET_UP, set_up), ("    def forward_batch_gen", methods))
    after = graphs(folder)
    draft, usual = after.pop("draft"), before.pop("draft")
    steps = f"not (server_args.speculative_num_steps > 4) and {usual}"
    assert draft == {"never": "never", "steps": steps, "same": usual}[left]
    assert after == before


ENSURE = """
    def ensure(self):
        if self.cuda_graph_runner is not None:
            return
        if self.server_args.disable_cuda_graph:
            return
        self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(self)

    def forward_batch_gen"""


STEPS = "not (server_args.speculative_num_steps <= 1) and "
ONE_STEP = "self.speculative_num_steps <= 1"


@pytest.mark.parametrize(
    ("test", "also"),
    [
        ("is not None:\n            return", ""),
        ("is None:\n            pass", ""),
        (f"is not None or {ONE_STEP}:\n            return", STEPS),
        (f"is None and {ONE_STEP}:\n            return", STEPS),
    ],
)
def test_a_runner_that_is_made_when_it_is_needed(tmp_path: Path, test: str, also: str) -> None:
    """That it is not there yet is the test of its own store, and no reason against it."""
    folder = plant(tmp_path / "t")
    usual = graphs(folder)["draft"]
    none = "        self.cuda_graph_runner = None\n"
    ensure = ENSURE.replace("is not None:\n            return", test)
    graphs_file = "sglang/srt/speculative/eagle_graphs.py"
    edit(folder, graphs_file, ("self.cuda_graph_runner = ", "self.of_another = "))
    graphs_module = "from sglang.srt.speculative.eagle_draft_cuda_graph_runner import (\n"
    graphs_module += "    EAGLEDraftCudaGraphRunner,\n)\n\n\nclass EAGLEWorker("
    edit(
        folder,
        WORKER,
        (SET_UP, none),
        ("\n    def forward_batch_gen", ensure),
        ("\n\nclass EAGLEWorker(", graphs_module),
        ("        draft_tokens = self", "        self.ensure()\n        draft_tokens = self"),
    )
    assert graphs(folder)["draft"] == also + usual != "never"


def test_what_an_exception_leaves_is_not_all_that_a_runner_can_be(tmp_path: Path) -> None:
    """``return None`` in a handler, and a start value before it."""
    folder = plant(tmp_path / "t")
    before = graphs(folder)
    helper = "\n\ndef made(runner):\n    try:\n        shared = runner.shared()\n"
    helper += (
        "    except AttributeError:\n        return None\n    return CudaGraphRunner(runner)\n"
    )
    calls = "            self.set_up_graphs()\n"
    method = "    def set_up_graphs(self):\n        self.graph_runner = None\n"
    method += "        self.graph_runner = made(self)\n\n    def forward("
    edit(
        folder,
        RUNNERS,
        ("            self.graph_runner = CudaGraphRunner(self)\n", calls),
        ("    def forward(", method),
        ("\n\n@dataclass", f"{helper}\n\n@dataclass"),
    )
    assert graphs(folder)["verify"] == before["verify"] != "never"
