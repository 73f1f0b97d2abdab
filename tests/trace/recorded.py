"""Runs that were recorded on an H200 (SGLang 0.5.12, 2026-11-30), from the first cycle on.

``benchmarks/gpu/engine.py`` made them: an engine of dummy weights, two waves of four requests.
The engine's end killed the rank, so the last 0.2 s are missing. SGLang's own counts of the
same runs stand beside them here.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.trace.spools import FILE_HEAD

DATA = Path(__file__).parent / "data"
RELEASE = "0.5.12"


@dataclass(frozen=True, slots=True)
class Case:
    """A run: its launch, and the verify steps that SGLang counted for each request, by wave."""

    name: str
    worker: str
    launch: str
    steps: tuple[tuple[int, ...], ...]

    def write(self, folder: Path) -> str:
        """Write the run into a folder as the agent leaves it; return the rank's name."""
        data = json.loads((DATA / f"{self.name}.json").read_text("utf-8"))
        rank = "rank-0-0-0-1"
        (folder / "plan.json").write_text(json.dumps(data["plan"]), "utf-8")
        (folder / f"{rank}.json").write_text(json.dumps(data["header"]), "utf-8")
        lines = "".join(json.dumps(item) + "\n" for item in data["names"])
        (folder / f"{rank}.names").write_text(lines, "utf-8")
        records = zlib.decompress(base64.b64decode(data["spool"]))
        (folder / f"{rank}.spool").write_bytes(FILE_HEAD + records)
        return rank


_COMMON = (
    "--model-path target --attention-backend triton --mem-fraction-static 0.7 "
    "--max-total-tokens 32768 --max-running-requests 8 --speculative-num-draft-tokens 4 "
)
_EAGLE3 = (
    "--speculative-algorithm EAGLE3 --speculative-draft-model-path eagle3 "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 "
)
MAX_BS_2 = Case(
    "v2-max-bs-2", "EAGLEWorkerV2", _COMMON + _EAGLE3 + "--cuda-graph-max-bs 2",
    ((15, 15, 15, 15), (19, 31, 43, 63)),
)  # fmt: skip
DISABLED = Case(
    "v2-disabled", "EAGLEWorkerV2",
    _COMMON + _EAGLE3 + "--cuda-graph-max-bs 8 --disable-cuda-graph", ((23, 23, 23, 23),),
)  # fmt: skip
NGRAM = Case(
    "ngram", "NGRAMWorker", _COMMON + "--speculative-algorithm NGRAM --cuda-graph-max-bs 8",
    ((14, 13, 14, 13), (16, 16, 16, 16)),
)  # fmt: skip
CASES = (MAX_BS_2, DISABLED, NGRAM)


def write_pair(folder: Path, **more: Any) -> None:
    """Write the run of two ranks on two H200: EAGLE3, two waves of four requests.

    ``more`` is added to the header of both; ``arguments`` to those that are there.
    """
    arguments = more.pop("arguments", {})
    data = json.loads((DATA / "tp2-v2.json").read_text("utf-8"))
    (folder / "plan.json").write_text(json.dumps(data["plan"]), "utf-8")
    for rank, about in enumerate(data["ranks"]):
        name = f"rank-{rank}-0-0-{rank + 1}"
        header = about["header"] | more
        header["arguments"] |= arguments
        (folder / f"{name}.json").write_text(json.dumps(header), "utf-8")
        lines = "".join(json.dumps(item) + "\n" for item in about["names"])
        (folder / f"{name}.names").write_text(lines, "utf-8")
        records = zlib.decompress(base64.b64decode(about["spool"]))
        (folder / f"{name}.spool").write_bytes(FILE_HEAD + records)
