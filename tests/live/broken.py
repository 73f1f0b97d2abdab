"""Two forks of 0.5.12 whose verify lost its graph, each with tokens as before.

``wrapped``: a class around the graph runner, without ``can_run``, takes a batch with more than
one token a request for one that no graph holds. ``half-pass``: the v2 worker plans the metadata
of an eager pass, and a method of its own calls the eager half.
"""

from __future__ import annotations

import ast
from pathlib import Path

WRAPPED, HALF = "wrapped", "half-pass"
RUNNER = "sglang/srt/model_executor/model_runner.py"
INFO = "sglang/srt/speculative/eagle_info_v2.py"
WORKER = "sglang/srt/speculative/eagle_worker_v2.py"

GUARD = '''

class Guard:
    """Lets a batch to the graphs that has the shape of a step of decoding."""

    def __init__(self, inner: CudaGraphRunner):
        self.inner = inner

    @property
    def bs(self):
        return self.inner.bs

    @property
    def graphs(self):
        return self.inner.graphs

    def takes(self, batch) -> bool:
        return self._one_token_each(batch) and self.inner.can_run(batch)

    def _one_token_each(self, batch) -> bool:
        return batch.input_ids.shape[0] == batch.batch_size

    def replay_prepare(self, batch, *args, **kwargs):
        return self.inner.replay_prepare(batch, *args, **kwargs)

    def replay(self, batch, **kwargs):
        return self.inner.replay(batch, **kwargs)


'''
PLAN = """if not batch.forward_mode.is_idle():
    target_worker.model_runner.attn_backend.init_forward_metadata(verify_forward_batch)"""
PREPARED = """verify_forward_batch = verify_input.prepare_for_v2_verify(
    self.req_to_token_pool, batch, self.target_worker
)
can_run_cuda_graph = False"""
SCORED = (
    "forward_batch_output = GenerationBatchResult(logits_output=self._score(verify_forward_batch))"
)
SCORE = """    def _score(self, batch):
        runner = self.target_worker.model_runner
        return runner.forward_extend(batch, skip_attn_backend_init=True)[0]

"""


def broken(folder: Path, kind: str) -> None:
    """Break a tree in place."""
    if kind == WRAPPED:
        text = (folder / RUNNER).read_text("utf-8")
        text = _once(text, "self.graph_runner.can_run(", "self.graph_runner.takes(")
        made = "graph_runners[self.device](self)"
        text = _once(text, made, f"Guard({made})")
        text = _once(text, "\nclass ModelRunner(", f"{GUARD}class ModelRunner(")
        (folder / RUNNER).write_text(text, "utf-8")
        text = (folder / INFO).read_text("utf-8")
        asked = "target_worker.model_runner.graph_runner."
        (folder / INFO).write_text(_once(text, f"{asked}can_run(", f"{asked}takes("), "utf-8")
        return
    prepare, verify = "prepare_for_v2_verify", "verify"
    _statement(folder / INFO, prepare, "can_run_cuda_graph = ", "")
    _statement(folder / INFO, prepare, "if can_run_cuda_graph:", PLAN)
    _statement(folder / INFO, prepare, "return ", "return verify_forward_batch")
    _statement(folder / WORKER, verify, "verify_forward_batch, can_run_cuda_graph", PREPARED)
    _statement(folder / WORKER, verify, "forward_batch_output = ", SCORED)
    text = (folder / WORKER).read_text("utf-8")
    method = "    def _mamba_verify_update("
    (folder / WORKER).write_text(_once(text, method, SCORE + method), "utf-8")


def _once(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def _statement(file: Path, function: str, begins: str, new: str) -> None:
    """Put another statement in the place of the one that begins so, as ``ast`` writes it."""
    text = file.read_text("utf-8")
    [found] = (
        node
        for outer in ast.walk(ast.parse(text))
        if isinstance(outer, ast.FunctionDef) and outer.name == function
        for node in ast.walk(outer)
        if isinstance(node, ast.stmt) and ast.unparse(node).lstrip("(").startswith(begins)
    )
    lines = text.splitlines(keepends=True)
    indent = " " * found.col_offset
    lines[found.lineno - 1 : found.end_lineno] = [f"{indent}{line}\n" for line in new.splitlines()]
    file.write_text("".join(lines), "utf-8")
