"""One engine that works only when it is told to; ``forks.py`` starts it and gives it turns.

    python forks_engine.py CASE.json ANSWERS

CASE.json is a case of ``engine.py``. Each line of standard input is one turn: ``{"waves": [...],
"tell": [...], "tell_after": [...]}``, where ``tell`` goes to the sleeping tracer before the waves
and ``tell_after`` after them. What the last wave gave is written to the descriptor ANSWERS, one
line of JSON a turn, after a first line that says how long the start took. With ``stand_in`` in
the case nothing of SGLang runs: ``{"rate": tokens a second, "differs_at": token, "dies_in": turn,
"hangs_in": turn, "never_starts": true}``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from benchmarks.gpu.engine import served, server_arguments, tell  # noqa: E402

Turn = Callable[[dict[str, Any]], dict[str, Any]]


def real(case: dict[str, Any]) -> Turn:
    """Start SGLang; return what serves one wave."""
    import sglang

    engine = sglang.Engine(**server_arguments(case))
    return lambda wave: served(engine, wave)


def stand_in(how: dict[str, Any]) -> Turn:
    """Return what behaves like an engine, for machines that have none."""
    served: list[None] = []

    def serve(wave: dict[str, Any]) -> dict[str, Any]:
        served.append(None)
        if how.get("dies_in") == len(served):
            raise SystemExit("a stand-in died, as it was told to")
        if how.get("hangs_in") == len(served):
            time.sleep(3600)
        requests, tokens = wave["requests"], wave["tokens"]
        start = time.monotonic_ns()
        time.sleep(requests * tokens / how["rate"])
        differs_at = how.get("differs_at", tokens)
        ids = [[k * 7 + i + (i >= differs_at) for i in range(tokens)] for k in range(requests)]
        return {
            "start_ns": start,
            "end_ns": time.monotonic_ns(),
            "tokens": requests * tokens,
            "output_ids": ids,
            "spec_verify_ct": [tokens] * requests,
        }

    if how.get("never_starts"):
        time.sleep(3600)
    return serve


def main(place: str, answers: str) -> None:
    """Start, then take turns until standard input ends."""
    case = json.loads(Path(place).read_text("utf-8"))
    with os.fdopen(int(answers), "w", buffering=1) as out:
        start = time.monotonic()
        serve = stand_in(case["stand_in"]) if "stand_in" in case else real(case)
        print(json.dumps({"start_s": round(time.monotonic() - start, 1)}), file=out)
        for line in sys.stdin:
            turn = json.loads(line)
            told = [tell(request) for request in turn.get("tell", [])]
            result: dict[str, Any] = {}
            for wave in turn["waves"]:
                result = serve(wave)
            told += [tell(request) for request in turn.get("tell_after", [])]
            print(json.dumps(result | {"told": told}), file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
