"""The same job as a server: ``launch_server`` with its HTTP front, until it is stopped.

``server.py JOB PORT`` answers requests at that port.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import engine

JOB = json.loads(Path(sys.argv[1]).read_text("utf-8"))


def main(port: int) -> None:
    """Serve over HTTP."""
    from sglang.srt.entrypoints.http_server import launch_server
    from sglang.srt.server_args import ServerArgs

    arguments = {**JOB["arguments"], "port": port, "skip_server_warmup": True}
    launch_server(ServerArgs(**arguments), run_scheduler_process_func=engine.rank)


if __name__ == "__main__":
    main(int(sys.argv[2]))
