"""What an ``isinstance`` test on the way to a call keeps the called object from being."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.review_tree import edit, plant, scan

RUNNERS = "sglang/srt/model_executor/model_runner.py"
MADE = "            self.graph_runner = CudaGraphRunner(self)\n"
EAGER = """

class EagerRunner:
    def replay(self, forward_batch):
        return None


class ModelRunner:"""
REPLAY = (
    "            return ModelRunnerOutput(self.graph_runner.replay(forward_batch), can_run_graph)\n"
)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("{replay}", {"CudaGraphRunner", "EagerRunner"}),
        ("if not isinstance(self.graph_runner, EagerRunner):\n    {replay}", {"CudaGraphRunner"}),
        ("if isinstance(self.graph_runner, EagerRunner):\n    {replay}", {"EagerRunner"}),
        (
            "if forward_batch and not isinstance(self.graph_runner, EagerRunner):\n    {replay}",
            {"CudaGraphRunner"},
        ),
        (
            "if forward_batch or not isinstance(self.graph_runner, EagerRunner):\n    {replay}",
            {"CudaGraphRunner", "EagerRunner"},
        ),
        (
            "if isinstance(self.graph_runner, EagerRunner):\n    return None\n{replay}",
            {"CudaGraphRunner"},
        ),
        (
            "if not isinstance(self.graph_runner, EagerRunner):\n    self.graph_runner = "
            "EagerRunner()\n    {replay}",
            {"CudaGraphRunner", "EagerRunner"},
        ),
    ],
)
def test_an_isinstance_test_keeps_other_objects_out(
    tmp_path: Path, lines: str, found: set[str]
) -> None:
    folder = plant(tmp_path / "t")
    eager = "            if server_args.check:\n                self.graph_runner = EagerRunner()\n"
    edit(folder, RUNNERS, (MADE, MADE + eager), ("\n\nclass ModelRunner:", EAGER))
    asked = lines.format(replay=REPLAY.strip())
    block = "".join(f"            {line}\n" for line in asked.splitlines())
    edit(folder, RUNNERS, (REPLAY, block))
    edges = [e for e in scan(folder).edges if e.text == "self.graph_runner.replay"]
    assert {c.rpartition("::")[2].partition(".")[0] for e in edges for c in e.callees} == found
