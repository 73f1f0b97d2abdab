"""The same job as a server: ``launch_server`` with its HTTP front, until it is stopped.

``server.py JOB PORT`` answers requests at that port.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import engine
import pydantic
import stubs

JOB = json.loads(Path(sys.argv[1]).read_text("utf-8"))


def stub_front() -> None:
    """Stand in for what the front imports for tools and structured output."""
    stubs.install("jsonschema", "interegular", "llguidance", "outlines")
    for name in ("xgrammar", "xgrammar.structural_tag"):
        module = ModuleType(name)
        module.StructuralTag = type("StructuralTag", (pydantic.BaseModel,), {})  # type: ignore[attr-defined]
        sys.modules[name] = module


def main(port: int) -> None:
    """Serve over HTTP."""
    stub_front()
    from sglang.srt.entrypoints.http_server import launch_server
    from sglang.srt.server_args import ServerArgs

    arguments = {**JOB["arguments"], "port": port, "skip_server_warmup": True}
    launch_server(ServerArgs(**arguments), run_scheduler_process_func=engine.rank)


if __name__ == "__main__":
    main(int(sys.argv[2]))
