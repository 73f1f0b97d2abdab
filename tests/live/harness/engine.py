"""The same job through ``sglang.Engine``: SGLang's own processes, sockets and requests.

``engine.py JOB RESULT`` writes the tokens and what the Engine says of each request.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import patches
import stubs

JOB = json.loads(Path(sys.argv[1]).read_text("utf-8"))
stubs.install(*patches.STUBS[JOB["release"]])  # in every process: each imports this file


def rank(*args: Any, **kwargs: Any) -> None:
    """Patch the child that SGLang spawned, then be its rank."""
    from sglang.srt.managers import scheduler

    patches.install(JOB["release"], tape=JOB["tape"])
    scheduler.run_scheduler_process(*args, **kwargs)


def main(result: Path) -> None:
    """Serve all requests at once."""
    from sglang.srt.entrypoints.engine import Engine

    Engine.run_scheduler_process_func = staticmethod(rank)
    engine = Engine(**JOB["arguments"])
    wanted = JOB["requests"]
    answers = engine.generate(
        input_ids=[one["prompt"] for one in wanted],
        sampling_params=[
            {"max_new_tokens": one["new_tokens"], "temperature": 0, "ignore_eos": True}
            for one in wanted
        ],
    )
    found = [{"tokens": one["output_ids"], **one["meta_info"]} for one in answers]
    result.write_text(json.dumps(found, indent=1, default=str), "utf-8")
    engine.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[2]))
