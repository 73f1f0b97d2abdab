"""Forks of the small tree in which verify lost its graph, each by one fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.review_tree import RUNNER, VERIFY, edit, plant

WORKER = "sglang/srt/speculative/eagle_worker.py"
NGRAM = "sglang/srt/speculative/ngram_worker.py"
MODEL_RUNNER = "sglang/srt/model_executor/model_runner.py"
MODES = "sglang/srt/model_executor/forward_batch_info.py"
SCHEDULER = "sglang/srt/managers/scheduler.py"
FITS = "return forward_batch.batch_size <= self.max_bs\n"
_WIDTH = "self.speculative_num_draft_tokens = server_args.speculative_num_draft_tokens\n"
_FIRST = "target_worker: TpModelWorker):\n"

Fault = Callable[[Path], None]


def whole(folder: Path) -> Path:
    """Return a tree whose workers verify a number of tokens that is fixed at launch."""
    plant(folder)
    for file in (WORKER, NGRAM):
        edit(folder, file, (_FIRST, f"{_FIRST}        {_WIDTH}"))
    return folder


def _in(file: str, *changes: tuple[str, str]) -> Fault:
    return lambda folder: edit(folder, file, *changes)


def _runner(text: str) -> Fault:
    return _in(RUNNER, (f"        {FITS}", text))


FAULTS: dict[str, tuple[str, Fault]] = {
    "constant-term": (
        "SPF101",
        _runner(
            "        is_tree_supported = False\n"
            "        return forward_batch.batch_size <= self.max_bs and is_tree_supported\n"
        ),
    ),
    "mode-term": (
        "SPF101",
        _in(
            MODEL_RUNNER,
            (
                "            and self.graph_runner.can_run(forward_batch)\n",
                "            and self.graph_runner.can_run(forward_batch)\n"
                "            and not forward_batch.forward_mode.is_target_verify()\n",
            ),
        ),
    ),
    "early-return": (
        "SPF101",
        _runner(
            "        # Trees are not supported.\n"
            "        if forward_batch.forward_mode.is_target_verify():\n"
            f"            return False\n        {FITS}"
        ),
    ),
    "flag-cleared": (
        "SPF101",
        _in(
            MODEL_RUNNER,
            (
                "        if can_run_graph:\n",
                "        if forward_batch.spec_info is not None:\n"
                "            can_run_graph = False\n        if can_run_graph:\n",
            ),
        ),
    ),
    "taken-for-variable": (
        "SPF101",
        _runner(
            "        static = forward_batch.input_ids.shape[0] == forward_batch.batch_size\n"
            "        return forward_batch.batch_size <= self.max_bs and static\n"
        ),
    ),
    "constant-decision": (
        "SPF102",
        _in(
            MODEL_RUNNER,
            (
                "        can_run_graph = bool(\n"
                "            forward_batch.forward_mode.is_cuda_graph()\n"
                "            and self.graph_runner\n"
                "            and self.graph_runner.can_run(forward_batch)\n        )\n",
                "        can_run_graph = False\n",
            ),
        ),
    ),
    "not-captured": (
        "SPF104",
        lambda folder: edit(
            folder,
            RUNNER,
            (
                "            self.capture_forward_mode = ForwardMode.TARGET_VERIFY\n"
                "            self.num_tokens_per_bs = "
                "model_runner.server_args.speculative_num_draft_tokens\n",
                "            self.capture_forward_mode = ForwardMode.DECODE\n",
            ),
            (
                f"        {FITS}",
                "        if forward_batch.forward_mode != self.capture_forward_mode:\n"
                f"            return False\n        {FITS}",
            ),
        ),
    ),
    "bypass": (
        "SPF105",
        _in(
            VERIFY,
            (
                "self.target_worker.forward_batch_generation(batch, is_verify=True)",
                "self.target_worker.model_runner.model.forward("
                "batch.input_ids, batch.positions, batch)",
            ),
        ),
    ),
    "disabled": (
        "SPF106",
        _in(
            SCHEDULER,
            (
                "        self.tp_worker = TpModelWorker(server_args)\n",
                "        server_args.disable_cuda_graph = True\n"
                "        self.tp_worker = TpModelWorker(server_args)\n",
            ),
        ),
    ),
}
"""By name: the rewrite that is due, and what breaks a whole tree."""
