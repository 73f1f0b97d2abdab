"""What the tests let SGLang serve: launches of the tiny model, and its requests."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEPS, DRAFT_TOKENS = 3, 4
OLD = ("0.5.9", "0.5.12")
"""Releases whose graphs are asked for by batch size alone."""
TARGET_LAYERS = DRAFT_LAYERS = 2
CAPTURED = (1, 2)
VOCABULARY = range(3, 128)

COMMON: dict[str, object] = {
    "skip_tokenizer_init": True,
    "device": "cpu",
    "dtype": "float32",
    "attention_backend": "triton",
    "triton_attention_num_kv_splits": 1,
    "max_total_tokens": 2048,
    "mem_fraction_static": 0.2,
    "context_length": 256,
    "chunked_prefill_size": 256,
    "disable_radix_cache": True,
    "random_seed": 0,
}
ENVIRONMENT = {
    "TRITON_INTERPRET": "1",  # SGLang's Triton kernels run in Python
    "TORCH_COMPILE_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "SGLANG_CPU_OMP_THREADS_BIND": "0",
}


@dataclass(frozen=True, slots=True)
class Job:
    """One process: a release, a launch, and how long each answer shall be.

    ``overlap`` asks for the second kind of worker (v2), ``graphs`` for tape replay with these
    captured batch sizes; without, everything is eager. ``algorithm`` None decodes plainly.
    At most ``running`` requests share a batch. ``tree`` names the folder that SGLang is taken
    from (``trees.py``), "" what is installed. ``traced`` has the agent in the process, told
    to write to a ``place``: "" a folder, "no-folder", "full-disk". ``fault`` breaks something,
    see ``harness/faults.py``; ``program`` is what runs the job there. With ``command`` it is
    ``specmap trace --live`` that starts it, with all that its user has.
    """

    release: str
    overlap: bool = False
    graphs: tuple[int, ...] = CAPTURED
    algorithm: str | None = "STANDALONE"
    topk: int = 1
    draft_tokens: int = DRAFT_TOKENS
    page_size: int = 1
    tree: str = ""
    new_tokens: tuple[int, ...] = (14, 14)
    running: int = 4
    traced: bool = False
    place: str = ""
    fault: str = ""
    program: str = "driver"
    command: bool = False

    def __str__(self) -> str:
        graphs = "tape-" + "-".join(map(str, self.graphs)) if self.graphs else "eager"
        parts = [
            self.release,
            "v2" if self.overlap else "v1",
            f"{self.algorithm}-{self.topk}-{STEPS}-{self.draft_tokens}",
            graphs,
            f"{len(self.new_tokens)}-requests",
            f"page-{self.page_size}" * (self.page_size > 1),
            self.tree,
            "traced" * self.traced,
            self.place,
            self.fault.replace(":", "-"),
            self.program.replace("driver", ""),
            "command" * self.command,
        ]
        return "_".join(filter(None, parts))

    def arguments(self, checkpoints: Path) -> dict[str, object]:
        """Return the launch arguments, as ``ServerArgs`` takes them."""
        arguments = {**COMMON, "model_path": str(checkpoints / "target")}
        arguments["max_running_requests"] = self.running
        arguments["disable_overlap_schedule"] = not self.overlap
        arguments["page_size"] = self.page_size
        if self.algorithm:
            arguments |= {
                "speculative_algorithm": self.algorithm,
                "speculative_draft_model_path": str(checkpoints / DRAFTS[self.algorithm]),
                "speculative_num_steps": STEPS,
                "speculative_eagle_topk": self.topk,
                "speculative_num_draft_tokens": self.draft_tokens,
            }
        if self.algorithm == "EAGLE3":
            arguments["speculative_draft_load_format"] = "dummy"
        return arguments | self._graph_arguments()

    def _graph_arguments(self) -> dict[str, object]:
        if not self.graphs:
            return {"disable_cuda_graph": True}
        if self.release in OLD:
            return {"cuda_graph_bs": list(self.graphs), "cuda_graph_max_bs": self.graphs[-1]}
        return {
            "cuda_graph_bs_decode": list(self.graphs),
            "cuda_graph_max_bs_decode": self.graphs[-1],
            "cuda_graph_backend_decode": "full",
            "disable_prefill_cuda_graph": True,
        }

    def environment(self) -> dict[str, str]:
        """Return the variables that the process needs."""
        own = {
            "SGLANG_ENABLE_SPEC_V2": "1" if self.overlap else "0",
            "SGLANG_USE_CPU_ENGINE": "1" if self.release in OLD else "0",
        }
        return {**ENVIRONMENT, **own}

    def document(self, checkpoints: Path) -> Mapping[str, Any]:
        """Return what the driver reads."""
        return {
            "release": self.release,
            "tape": bool(self.graphs),
            "fault": self.fault,
            "arguments": self.arguments(checkpoints),
            "requests": [
                {"prompt": prompt(i), "new_tokens": n} for i, n in enumerate(self.new_tokens)
            ],
        }


DRAFTS = {"STANDALONE": "draft", "EAGLE3": "eagle3"}


def prompt(number: int) -> list[int]:
    """Return the prompt of a request, the same in every process."""
    chosen = random.Random(number)
    return [chosen.choice(VOCABULARY) for _ in range(9 + 5 * number)]


GREEDY = {
    release: Job(release, algorithm=None, graphs=(), new_tokens=(24, 24, 24, 24))
    for release in ("0.5.9", "0.5.23")
}
GREEDY["0.5.12"] = GREEDY["0.5.9"]
"""Plain greedy decoding of every prompt, longer than any test asks for; 0.5.12 runs in the
environment of 0.5.9, and is compared with what is installed there."""
