"""EAGLE3 over all GPUs of a host under the tracer: four engines, one table. ``tp8.sh`` runs it.

    python tp8.py plan RELEASE PLAN.json                          # where specmap is installed
    python tp8.py show RELEASE GPUS                               # what would run
    python tp8.py run RELEASE GPUS PLAN.json AGENT OUT SECONDS    # on the GPU machine
    python tp8.py table RUNS                                      # again, from what was recorded

The model has 61 layers and a hidden size that eight ranks can split. The engines: graphs on,
graphs off, capture limit 2, and plain decoding. In each, one request and four; the tracer sleeps,
then records in windows, armed and disarmed in turn, then times the phases on the GPU. The
engine with the limit makes one rank eager at its end, while the others replay; should they
wait for each other, a time limit ends it. All but ``plan`` need the standard library only.
"""

from __future__ import annotations

import os
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from benchmarks.gpu.matrix import DISARM, run_case, wave  # noqa: E402
from benchmarks.gpu.tp8_table import table  # noqa: E402

LAYERS, HIDDEN = 61, 2048
SIZES = (1, 4)
PLAIN_LIMIT = 4
RUNS, LOGS = Path("/tmp/specmap-runs"), Path("/tmp/specmap-logs")
LONGEST_ENGINE_S, LEAST_ENGINE_S = 240, 60
HANG_S = 30


def arm(folder: Path, **more: Any) -> dict[str, Any]:
    """Return the request that makes the ranks record into a folder."""
    return {"do": "arm", "dir": str(folder), **more}


def traced_waves(name: str, runs: Path, tokens: int, window: int) -> list[dict[str, Any]]:
    """Return the waves of an engine: warm-up, then for each size asleep, in windows, timed."""
    waves = [wave(size, 16, label="warm-up") for size in SIZES]
    for size in SIZES:
        windows = runs / f"{name}.bs{size}.windows"
        spans = runs / f"{name}.bs{size}.spans"
        waves += [
            wave(size, tokens // 4, label="asleep", tell=[DISARM]),
            wave(size, tokens // 2, label="asleep"),
            wave(size, tokens, label="windows", tell=[arm(windows, windows=window)]),
            wave(size, tokens // 2, label="spans", tell=[DISARM, arm(spans, spans=8)]),
        ]
    return [*waves, wave(1, 2, label="end", tell=[DISARM])]


def cases_of(gpus: int, runs: Path) -> list[dict[str, Any]]:
    """Return the four engines, in the order in which they run."""
    common: dict[str, Any] = {
        "tracer": "dormant",
        "limit_s": LONGEST_ENGINE_S,
        # Graphs of the prefill take a minute to capture and are no part of the question.
        "optional": {"disable_piecewise_cuda_graph": True, "disable_prefill_cuda_graph": True},
    }
    flag = runs / "limit-2.flag"
    forced = [
        wave(2, 8, label="healthy", tell=[arm(runs / "limit-2.forced")]),
        wave(2, 64, label="one rank eager", flag=str(flag), limit_s=HANG_S),
    ]
    forcing = {"SPECMAP_FORCED_FLAG": str(flag), "NCCL_GRAPH_REGISTER": "0"}
    plain = [wave(size, 16, label="warm-up") for size in (*SIZES, PLAIN_LIMIT + 1)]
    for size in (*SIZES, PLAIN_LIMIT + 1):
        plain += [wave(size, count, label="asleep") for count in (100, 300)]
    profiled = wave(1, 8, label="profiler", profile=True)
    cases: list[tuple[str, str, dict[str, Any], list[dict[str, Any]], dict[str, Any]]] = [
        ("graphs", "EAGLE3", {}, traced_waves("graphs", runs, 400, 10), {}),
        ("plain", "", {"cuda_graph_max_bs": PLAIN_LIMIT}, plain, {"tracer": "off"}),
        ("eager", "EAGLE3", {"disable_cuda_graph": True},
         [*traced_waves("eager", runs, 160, 6), profiled], {}),
        ("limit-2", "EAGLE3", {"cuda_graph_max_bs": 2, "disable_custom_all_reduce": True},
         [*traced_waves("limit-2", runs, 160, 6), *forced],
         {"path": str(HERE / "forced"), "environment": forcing}),
    ]  # fmt: skip
    return [
        common | {"name": name, "algorithm": algorithm, "waves": waves}
        | {"extra": {"tp_size": gpus} | extra, "port": 31000 + 50 * number} | more
        for number, (name, algorithm, extra, waves, more) in enumerate(cases)
    ]  # fmt: skip


def show(release: str, gpus: int) -> None:
    """Print what would run."""
    print(f"SGLang {release}, TP={gpus}, {LAYERS} layers, hidden size {HIDDEN}")
    for case in cases_of(gpus, RUNS):
        print(f"\n{case['name']}: {case['algorithm'] or 'no speculation'}, {case['extra']}, "
              f"at most {case['limit_s']} s")  # fmt: skip
        for each in case["waves"]:
            more = {k: v for k, v in each.items() if k not in ("requests", "tokens", "label")}
            print(f"  {each['label']:15} {each['requests']} x {each['tokens']:<4}"
                  f"{more if more else ''}")  # fmt: skip


def run(release: str, gpus: int, plan: Path, agent: Path, out: Path, seconds: float) -> None:
    """Run the engines while there is time, print the table, and pack what they left."""
    until = time.monotonic() + seconds
    os.environ |= {"LAYERS": str(LAYERS), "HIDDEN": str(HIDDEN), "MODELS": "/tmp/specmap-tp8"}
    for folder in (RUNS, LOGS, out):
        folder.mkdir(parents=True, exist_ok=True)
    for case in cases_of(gpus, RUNS):
        left = until - time.monotonic()
        if left < LEAST_ENGINE_S:
            print(f"{case['name']}: not run, only {left:.0f} s are left", flush=True)
            continue
        case["limit_s"] = min(case["limit_s"], left)
        print(run_case(case, RUNS, plan, agent, LOGS), flush=True)
    if not any(RUNS.glob("*/result.json")):
        sys.exit(f"no engine came to its end; their logs are in {LOGS}")
    text = table(RUNS)
    print(text)
    (out / f"tp{gpus}-{release}.txt").write_text(text, "utf-8")
    with tarfile.open(out / f"tp{gpus}-{release}.tar.xz", "w:xz", preset=1) as tar:
        tar.add(RUNS, arcname="runs")
        tar.add(LOGS, arcname="logs")


def plan(release: str, place: Path) -> None:
    """Write the wrap plan of a release."""
    from specmap.trace.plan import to_json
    from specmap.traced import plan_for

    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(to_json(plan_for(f"sglang=={release}")[1]), "utf-8")
    print(f"wrote {place}")


def main(verb: str, *words: str) -> None:
    """Do what the first word says."""
    if verb == "plan":
        plan(words[0], Path(words[1]))
    elif verb == "show":
        show(words[0], int(words[1]))
    elif verb == "table":
        if not Path(words[0]).is_dir():
            sys.exit(f"{words[0]}: no such folder; unpack the runs first")
        print(table(Path(words[0])))
    else:
        release, gpus, place, agent, out, seconds = words
        run(release, int(gpus), Path(place), Path(agent), Path(out), float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
