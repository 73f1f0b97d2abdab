"""What SGLang itself counts while it serves, and what the tapes count; no tracer is asked."""

from __future__ import annotations

from typing import Any

import torch
from tape import replayed


class Truth:
    """Watches one Scheduler, from outside its worker."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.worker = scheduler.draft_worker or scheduler.tp_worker
        self.draft = getattr(self.worker, "draft_worker", self.worker)
        self.requests: dict[str, Any] = {}
        self.batches: list[dict[str, Any]] = []
        self.layers = {"target": 0, "draft": 0}
        self.draft_forwards = 0
        self._runs: dict[int, dict[str, Any]] = {}
        self._watch_layers()
        self._watch_draft_forward()
        self._watch_batches()
        self.captured = self._captured()
        self.owners = {
            id(graph): (name, size)
            for name, graphs in self.captured.items()
            for size, graph in graphs.items()
        }

    def _runners(self) -> dict[str, Any]:
        target = self.scheduler.tp_worker.model_runner
        old, new = "graph_runner", "decode_cuda_graph_runner"
        return {
            "target": getattr(target, old, None) or getattr(target, new, None),
            "draft": getattr(self.draft, "cuda_graph_runner", None),
            "draft_extend": getattr(self.draft, "cuda_graph_runner_for_draft_extend", None),
        }

    def _captured(self) -> dict[str, dict[int, Any]]:
        """Return the graph objects that each runner of SGLang holds, by captured batch size."""
        found = {}
        for name, runner in self._runners().items():
            backend = getattr(runner, "backend", None)
            graphs = getattr(runner, "graphs", None) or getattr(backend, "_graphs", None) or {}
            found[name] = {getattr(key, "size", key): graph for key, graph in graphs.items()}
        return found

    def _watch_layers(self) -> None:
        """Count calls of decoder layers with PyTorch's own hooks."""
        models = {"target": self.scheduler.tp_worker.model_runner.model}
        if self.scheduler.draft_worker is not None:
            runner = getattr(self.draft, "draft_runner", None) or self.draft.draft_model_runner
            models["draft"] = runner.model
        for name, model in models.items():
            for module in model.modules():
                if type(module).__name__ == "LlamaDecoderLayer":
                    module.register_forward_pre_hook(self._layer_hook(name))

    def _layer_hook(self, name: str) -> Any:
        def hook(module: torch.nn.Module, arguments: Any) -> None:
            self.layers[name] += 1

        return hook

    def _watch_draft_forward(self) -> None:
        method = getattr(self.draft, "draft_forward", None)
        if method is None:
            return

        def draft_forward(*args: Any, **kwargs: Any) -> Any:
            self.draft_forwards += 1
            return method(*args, **kwargs)

        self.draft.draft_forward = draft_forward

    def _watch_batches(self) -> None:
        run, process = self.scheduler.run_batch, self.scheduler.process_batch_result

        def run_batch(batch: Any, *args: Any, **kwargs: Any) -> Any:
            self.requests.update((one.rid, one) for one in batch.reqs)
            seen = {"mode": batch.forward_mode.name, "size": len(batch.reqs)}
            start = (len(replayed), dict(self.layers), self.draft_forwards)
            result = run(batch, *args, **kwargs)
            seen |= {
                "replays": [self.owners[id(graph)] for graph in replayed[start[0] :]],
                "layers": {name: n - start[1][name] for name, n in self.layers.items()},
                "draft_forwards": self.draft_forwards - start[2],
                "can_run_cuda_graph": bool(result.can_run_cuda_graph),
            }
            self.batches.append(seen)
            self._runs[id(result)] = seen
            return result

        def process_batch_result(batch: Any, result: Any, *args: Any, **kwargs: Any) -> Any:
            done = process(batch, result, *args, **kwargs)
            self._runs.pop(id(result))["accepted"] = self._accepted(result)
            return done

        self.scheduler.run_batch = run_batch
        self.scheduler.process_batch_result = process_batch_result

    @staticmethod
    def _accepted(result: Any) -> list[int] | None:
        """Return the accepted draft tokens of each request, without the bonus token."""
        new = getattr(result, "num_correct_drafts_per_req_cpu", None)
        old = getattr(result, "accept_length_per_req_cpu", None)
        return new if new is not None else old

    def finished(self, count: int) -> bool:
        """Return whether all requests were seen and are finished."""
        return len(self.requests) == count and all(r.finished() for r in self.requests.values())

    def result(self) -> dict[str, Any]:
        """Return everything that was counted, ready for JSON."""
        return {
            "worker": type(self.worker).__name__,
            "captured": {name: sorted(graphs) for name, graphs in self.captured.items()},
            "batches": self.batches,
            "requests": [
                {
                    "name": name,
                    "tokens": list(one.output_ids),
                    "verifies": one.spec_verify_ct,
                    "accepted": getattr(one, "spec_num_correct_drafts", None)
                    if hasattr(one, "spec_num_correct_drafts")
                    else one.spec_accepted_tokens,
                }
                for name, one in sorted(self.requests.items())
            ],
        }
