"""Run engine cases on a GPU machine, traced and untraced, and pack what they left.

    python matrix.py RELEASE PLAN.json AGENT_FOLDER OUT [GROUP ...]

Groups: ``verdicts`` (what every phase does under each launch; four engines at a time),
``launches`` (counted by the tracer, then by SGLang's profiler), ``tp2`` (two GPUs: both ranks,
launches with the collectives among them, and one rank made eager while the other replays; the
engines start together and work in turns). ``verdicts/standalone`` takes the engines of a group
with that in their name. CASE_LIMIT_S: seconds after which an engine is killed. Standard library
only: the machine has SGLang's runtime and no specmap. OUT gets ``RELEASE-GROUP.tar.xz``: a folder
per case with the tracer's files and ``result.json``, and the engines' logs.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CASE_LIMIT_S = int(os.environ.get("CASE_LIMIT_S", "280"))
DISARM = {"do": "disarm"}


def wave(requests: int, tokens: int | list[int], **more: Any) -> dict[str, Any]:
    """Return one call of ``generate``."""
    return {"requests": requests, "tokens": tokens} | more


def verdict_cases(v1: bool) -> list[dict[str, Any]]:
    """Return the launches whose phases are known; ``v1`` where the release has v1 workers."""
    steady = [wave(4, 48), wave(4, 64)]
    shrinking = [wave(4, 16), wave(4, [20, 32, 44, 64])]
    cases: list[dict[str, Any]] = [
        {"name": "v2", "algorithm": "EAGLE3", "waves": steady},
        {"name": "v2-untraced", "algorithm": "EAGLE3", "waves": steady, "tracer": "off"},
        {
            "name": "v2-disabled",
            "algorithm": "EAGLE3",
            "waves": [wave(4, 24)],
            "extra": {"disable_cuda_graph": True},
        },
        {
            "name": "v2-max-bs-2",
            "algorithm": "EAGLE3",
            "waves": shrinking,
            "extra": {"cuda_graph_max_bs": 2},
        },
        {"name": "v2-standalone", "algorithm": "STANDALONE", "waves": steady},
        {
            "name": "v2-standalone-max-bs-2",
            "algorithm": "STANDALONE",
            "waves": shrinking,
            "extra": {"cuda_graph_max_bs": 2},
        },
    ]
    if v1:
        cases += [case | {"name": f"v1{case['name'][2:]}", "v1": True} for case in cases]
        cases.append({"name": "ngram", "algorithm": "NGRAM", "waves": steady})
    return cases


def tp2_cases(runs: Path) -> list[dict[str, Any]]:
    """Return engines of two ranks; in ``tp2-forced`` one rank is made eager while it runs.

    What NCCL launches is counted in the first two, SGLang's own all-reduce in ``tp2-own``.
    """

    def armed(name: str, **more: Any) -> list[dict[str, Any]]:
        return [DISARM, {"do": "arm", "dir": str(runs / name), **more}]

    def steady(name: str) -> list[dict[str, Any]]:
        return [wave(4, 48, tell=armed(f"{name}.steady")), wave(4, 64)]

    def counted(name: str) -> list[dict[str, Any]]:
        return [
            wave(4, 24, tell=armed(f"{name}.launches", launches=True)),
            wave(4, 24),
            wave(4, 8, profile=True),
        ]

    flag = str(runs / "tp2-forced.flag")
    forced = [
        wave(4, 16, tell=armed("tp2-forced.ranks")),
        # Rank 0 replays, rank 1 launches: should they wait for each other, it is for ever.
        wave(4, 96, flag=flag, limit_s=30),
    ]
    nccl = {"tp_size": 2, "disable_custom_all_reduce": True}
    switched = {"SPECMAP_FORCED_FLAG": flag, "NCCL_GRAPH_REGISTER": "0"}
    common = {
        "algorithm": "EAGLE3",
        "tracer": "dormant",
        # Graphs of the prefill take a minute to capture.
        "optional": {"disable_piecewise_cuda_graph": True, "disable_prefill_cuda_graph": True},
    }
    cases: list[tuple[str, list[dict[str, Any]], dict[str, Any], dict[str, str], str]] = [
        ("tp2-nccl", [*steady("tp2-nccl"), *counted("tp2-nccl")], nccl, {}, ""),
        ("tp2-disabled", counted("tp2-disabled"), nccl | {"disable_cuda_graph": True}, {}, ""),
        ("tp2-own", [*steady("tp2-own"), *counted("tp2-own")], {"tp_size": 2}, {}, ""),
        ("tp2-forced", forced, nccl, switched, str(HERE / "forced")),
    ]
    return [
        common | {
            "name": name,
            "waves": [wave(4, 8), *waves, wave(1, 2, tell=[DISARM], limit_s=10)],
            "extra": extra,
            "path": path,
            "environment": {"TURNS": str(runs / "turns"), **environment},
        }
        for name, waves, extra, environment, path in cases
    ]  # fmt: skip


def launch_cases(v1: bool) -> list[dict[str, Any]]:
    """Return engines whose launches are counted, and then profiled by SGLang itself."""
    waves = [wave(4, 24), wave(4, 24), wave(4, 8, profile=True)]
    counted = {"algorithm": "EAGLE3", "waves": waves, "environment": {"SPECMAP_LAUNCHES": "1"}}
    cases: list[dict[str, Any]] = [
        counted | {"name": "v2"},
        counted | {"name": "v2-disabled", "extra": {"disable_cuda_graph": True}},
    ]
    return [*cases, *(c | {"name": f"v1{c['name'][2:]}", "v1": True} for c in cases if v1)]


def environment(case: dict[str, Any], folder: Path, plan: Path, agent: Path) -> dict[str, str]:
    """Return what the engine and its ranks inherit."""
    inherited = dict(os.environ)
    inherited["SPECMAP_SOCKETS"] = f"/tmp/specmap-sockets/{case['name']}"
    inherited["SGLANG_TORCH_PROFILER_DIR"] = f"/tmp/profiles/{case['name']}"
    Path(inherited["SGLANG_TORCH_PROFILER_DIR"]).mkdir(parents=True, exist_ok=True)
    inherited["PYTHONPATH"] = f"{case.get('path', '')}:{inherited.get('PYTHONPATH', '')}"
    inherited |= case.get("environment", {})
    tracer = case.get("tracer", "on")
    if tracer == "off":
        return inherited
    inherited["PYTHONPATH"] = f"{agent / 'inject'}:{inherited['PYTHONPATH']}"
    inherited["SPECMAP_TRACE"] = "dormant" if tracer == "dormant" else "1"
    if case.get("ring") == "python":
        inherited.pop("SPECMAP_EXTENSION", None)
    inherited["SPECMAP_DIR"] = str(folder)
    inherited["SPECMAP_PLAN"] = str(plan)
    return inherited


def run_case(case: dict[str, Any], runs: Path, plan: Path, agent: Path, logs: Path) -> str:
    """Run one engine; return one line about it."""
    folder = runs / case["name"]
    armed = [r["dir"] for w in case["waves"] for r in w.get("tell", []) if "dir" in r]
    for each in (folder, *map(Path, armed)):
        each.mkdir(parents=True, exist_ok=True)
        shutil.copy(plan, each / "plan.json")
    (folder / "case.json").write_text(json.dumps(case))
    command = [sys.executable, str(HERE / "engine.py"), str(folder / "case.json")]
    command.append(str(folder / "result.json"))
    start = time.monotonic()
    with (logs / f"{case['name']}.log").open("w") as log:
        engine = subprocess.Popen(
            command,
            env=environment(case, folder, plan, agent),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | str = engine.wait(case.get("limit_s", CASE_LIMIT_S))
        except subprocess.TimeoutExpired:
            code = "timeout"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(engine.pid, signal.SIGKILL)
        engine.wait()
    files = len(list(runs.glob(f"{case['name']}*/*.spool")))
    return f"{case['name']}: exit {code}, {time.monotonic() - start:.0f} s, {files} spools"


def main(release: str, plan: Path, agent: Path, out: Path, groups: list[str]) -> None:
    """Run the groups in turn and pack the result."""
    v1 = tuple(int(part) for part in release.split(".")[:3]) <= (0, 5, 12)
    runs, logs = Path("/tmp/specmap-runs"), Path("/tmp/specmap-logs")
    shutil.rmtree(runs, ignore_errors=True)
    logs.mkdir(parents=True, exist_ok=True)
    runs.mkdir(parents=True)
    chosen = {
        "verdicts": (verdict_cases(v1), 4),
        "tp2": (tp2_cases(runs), 4),
        "launches": (launch_cases(v1), 4),
    }
    for wanted in groups:
        group, _, name = wanted.partition("/")
        cases, workers = chosen[group]
        cases = [case | {"port": 31000 + 50 * i} for i, case in enumerate(cases)
                 if name in case["name"]]  # fmt: skip
        with ThreadPoolExecutor(workers) as pool:
            for line in pool.map(lambda case: run_case(case, runs, plan, agent, logs), cases):
                print(line, flush=True)
        with tarfile.open(out / f"{release}-{group}.tar.xz", "w:xz", preset=1) as tar:
            tar.add(runs, arcname="runs")
            tar.add(logs, arcname="logs")


if __name__ == "__main__":
    RELEASE, PLAN, AGENT, OUT, *GROUPS = sys.argv[1:]
    main(RELEASE, Path(PLAN), Path(AGENT), Path(OUT), GROUPS or ["verdicts"])
