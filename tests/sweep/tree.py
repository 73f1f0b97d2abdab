"""A small tree whose settings can be swept: a switch, a number, and a refused combination."""

from __future__ import annotations

from pathlib import Path

from tests.review_tree import edit, plant

SETTINGS = """import argparse
from dataclasses import dataclass
from typing import List, Optional


@dataclass
class ServerArgs:
    model_path: str = ""
    disable_cuda_graph: bool = False
    disable_overlap_schedule: bool = False
    enable_dp_attention: bool = False
    cuda_graph_bs: Optional[List[int]] = None
    attention_backend: Optional[str] = None
    speculative_algorithm: Optional[str] = None
    speculative_num_draft_tokens: int = 4
    speculative_num_steps: int = 3
    speculative_eagle_topk: int = 1
    tp_size: int = 1

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--model-path", type=str, required=True)
        parser.add_argument("--disable-cuda-graph", action="store_true")
        parser.add_argument("--cuda-graph-bs", type=int, nargs="+")
        parser.add_argument("--attention-backend", type=str, choices=["triton", "fa3"])
        parser.add_argument("--speculative-algorithm", type=str)
        parser.add_argument("--speculative-num-steps", type=int)
        parser.add_argument("--speculative-num-draft-tokens", type=int)
        parser.add_argument("--speculative-eagle-topk", type=int)
        parser.add_argument("--tp-size", type=int)

    def __post_init__(self):
        if self.speculative_eagle_topk == 1:
            self.speculative_num_draft_tokens = self.speculative_num_steps + 1
        if self.speculative_eagle_topk > 1 and self.speculative_num_steps > 4:
            raise ValueError("too deep a tree")
"""
REFUSAL_LINE = SETTINGS.splitlines().index('            raise ValueError("too deep a tree")') + 1
LAUNCH = "--model-path m --speculative-algorithm EAGLE --speculative-num-draft-tokens 4"


def sweepable(folder: Path) -> Path:
    """Plant the tree in ``folder`` and return its root."""
    root = plant(folder / "tree")
    (root / "sglang/srt/server_args.py").write_text(SETTINGS, "utf-8")
    # What is captured depends on a machine that nobody described.
    listed = "sglang/srt/model_executor/forward_batch_info.py"
    edit(root, listed, ("return [1, 2, 4, 8]", "return sizes_of(model_runner)"))
    return root
