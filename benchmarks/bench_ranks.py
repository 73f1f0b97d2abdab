"""How long it takes to read the logs of many ranks, and in how much memory.

Logs are made from a recorded run of two H200 (``made_ranks``): eight ranks on two hosts whose
clocks differ, one that lost records, one that was killed, and one whose verify is eager from the
middle of the run on, which must be reported first. Then more ranks, with fewer cycles. Every
step is a process of its own; CPU time is told beside the wall time, because a busy machine
stretches the latter. The floor is to get the bytes of the records off the disk and into columns,
and, for a short log, to count the passes of the Parquet file with DuckDB.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.made_ranks import Flaws, Maker
from specmap.codemap.event import RunProblem

TARGET = "sglang==0.5.12"
EAGER_RANK, DROPPED_RANK, DEAD_RANK = 5, 2, 6


def flaws_of(cycles: int) -> Flaws:
    """Return what is wrong with a run of this length."""
    return Flaws(
        eager=(EAGER_RANK, cycles // 2 + 7),
        dropped=(DROPPED_RANK, cycles // 4),
        dead=(DEAD_RANK, cycles // 3),
    )


def make(folder: Path, ranks: int, cycles: int) -> dict[str, Any]:
    """Write the logs."""
    maker, flaws = Maker(), flaws_of(cycles)
    maker.write(folder, ranks, cycles, flaws)
    assert flaws.eager is not None
    size = sum(path.stat().st_size for path in folder.glob("*.spool"))
    return {"bytes": size, "eager": maker.decodes(flaws.eager[1], cycles)}


def floor(folder: Path, *_: int) -> dict[str, Any]:
    """Read the records and do nothing with them."""
    from specmap.trace.spool import Tail, ranks_in

    records = 0
    for name in ranks_in(folder):
        tail = Tail(folder, name)
        while some := tail.poll():
            records += len(some)
    return {"records": records}


def read(folder: Path, *_: int) -> dict[str, Any]:
    """Count the passes of all ranks, compare them, put the source beside them, write the text."""
    from specmap.recorded import Question, compared
    from specmap.report.options import RenderOptions
    from specmap.report.run_text import render_run
    from specmap.traced import read_run

    run = read_run(folder)
    read_s = time.process_time()
    whole = compared(folder, run, Question(target=TARGET), None)
    joined_s = time.process_time()
    text = render_run(whole, RenderOptions())
    first = run.findings[0]
    return {
        "first": [first.problem, first.ranks, first.cycle, first.message],
        "findings": [finding.message for finding in run.findings],
        "rows": len(whole.joined),
        "after": f"of it {joined_s - read_s:.1f} s CPU for the source ({len(whole.joined)} rows), "
        f"{time.process_time() - joined_s:.1f} s for the text ({text.count(chr(10))} lines)",
    }


def log(folder: Path, *_: int) -> dict[str, Any]:
    """Write the Parquet files of the first rank."""
    from specmap.trace.eventlog import convert
    from specmap.trace.read import load_plan
    from specmap.trace.spool import ranks_in
    from specmap.traced import trace_names

    convert(folder, ranks_in(folder)[0], load_plan(folder), trace_names())
    return {}


def query(folder: Path, *_: int) -> dict[str, Any]:
    """Count the passes of these files with DuckDB."""
    from specmap.trace.database import open_database

    sql = "select phase, state, count(*) from passes group by all"
    return {"rows": len(open_database([folder]).sql(sql).fetchall())}


STEPS: dict[str, Callable[[Path, int, int], dict[str, Any]]] = {
    step.__name__: step for step in (make, floor, read, log, query)
}


def timed(step: str, folder: Path, ranks: int, cycles: int) -> dict[str, Any]:
    """Run one step in this process; return what it found, its times and the memory it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = STEPS[step](folder, ranks, cycles)
    return found | {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def apart(step: str, folder: Path, ranks: int, cycles: int) -> dict[str, Any]:
    """Run one step in a process of its own and print its line."""
    command = [sys.executable, "-m", "benchmarks.bench_ranks", "--step", step]
    command += ["--folder", str(folder), "--ranks", str(ranks), "--cycles", str(cycles)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    each = found["cpu_s"] / (ranks * cycles) * 1e6
    print(
        f"{step:8}{found['wall_s']:9.1f} s{found['cpu_s']:9.1f} s CPU{each:9.2f} us a cycle and "
        f"rank{found['peak_mb']:8.0f} MB",
        flush=True,
    )
    return found


def run(ranks: int, cycles: int, scratch: Path, steps: tuple[str, ...]) -> None:
    """Make a run, take it through the steps, and check what is reported first."""
    folder = scratch / f"{ranks}-ranks"
    print(f"\n{ranks} ranks, {cycles} cycles each", flush=True)
    found = {step: apart(step, folder, ranks, cycles) for step in ("make", *steps)}
    print(f"{found['make']['bytes'] / 1e9:.2f} GB of records")
    shutil.rmtree(folder)
    if "read" not in found:
        return
    print(found["read"]["after"])
    problem, names, cycle, message = found["read"]["first"]
    for line in found["read"]["findings"]:
        print(f"  {line}")
    eager = flaws_of(cycles).eager
    assert eager is not None
    right = (problem, cycle) == (RunProblem.RANK_EAGER, eager[1])
    right = right and names[0].startswith(f"rank-{eager[0]}-")
    if not (right and f"in {found['make']['eager']} cycles" in message):
        sys.exit(f"the eager rank was not reported first and rightly: {message}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cycles", type=int, default=1_000_000, help="of each of 8 ranks")
    parser.add_argument("--ranks", type=int, default=100, help="ranks of the second run")
    parser.add_argument("--many-cycles", type=int, default=20_000, help="cycles of each of them")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="where the logs are made; a scratch folder")
    asked = parser.parse_args()
    if asked.step:
        print(json.dumps(timed(asked.step, asked.folder, asked.ranks, asked.cycles)))
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as scratch:
        run(8, asked.cycles, Path(scratch), ("floor", "read"))
        run(asked.ranks, asked.many_cycles, Path(scratch), ("floor", "read"))
        run(1, min(asked.cycles, 50_000), Path(scratch), ("floor", "log", "query"))


if __name__ == "__main__":
    main()
