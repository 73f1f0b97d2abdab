"""Small settings classes, written as SGLang writes them, and what a launch makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.tables import Inputs
from specmap.scan.vocabulary import load_vocabulary

HEAD = """
import dataclasses
import os
from typing import Any, List, Optional

import torch

logger = None

def get_device_memory_capacity(device=None):
    return measure(device)

@dataclasses.dataclass
class ServerArgs:
    model_path: str = "m"
    a: Optional[int] = None
    b: Optional[int] = 2
    c: bool = False
    name: Optional[str] = None
    sizes: Optional[List[int]] = None

    def __post_init__(self):
"""


def launch(
    tmp_path: Path,
    body: str,
    *,
    after: str = "",
    files: Mapping[str, str] | None = None,
    inputs: Inputs | None = None,
) -> Evaluator:
    """Evaluate settings whose derivation is ``body``; ``after`` follows the class."""
    indented = "\n".join(" " * 8 + line for line in body.strip("\n").splitlines())
    sources = {"sglang/srt/server_args.py": HEAD + indented + "\n" + after, **(files or {})}
    for file, text in sources.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Evaluator(tmp_path, load_vocabulary(), inputs or Inputs())


# `gpu` stands for a test that nothing settles unless the memory of the GPU is stated.
GPU = "gpu = get_device_memory_capacity() > 1000\n"
