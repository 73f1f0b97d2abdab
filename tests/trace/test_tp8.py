"""The benchmark of eight GPUs, as far as a CPU can tell: what it would run, and its table."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu.tp8_table import all_reduces, table
from benchmarks.made_ranks import Flaws, Maker

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu" / "tp8.sh"
MAKER = Maker()
RANKS = 8


def tp8(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = {"PATH": "/usr/bin:/bin", "PYTHON": shutil.which("python3") or "python3"}
    return subprocess.run(
        ["bash", str(SCRIPT), *words], env=path | environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def waves(*done: tuple[str, int, int, int]) -> str:
    """Return a result of waves: label, requests, cycles, milliseconds."""
    made = [
        {"label": label, "requests": requests, "tokens": requests * steps, "start_ns": 0,
         "end_ns": time_ms * 10**6, "spec_verify_ct": [steps] * requests}
        for label, requests, steps, time_ms in done
    ]  # fmt: skip
    return json.dumps({"waves": made})


def put(runs: Path, name: str, text: str) -> None:
    (runs / name).mkdir(parents=True, exist_ok=True)
    (runs / name / "result.json").write_text(text, "utf-8")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what the four engines would leave; of the eager one, only its result."""
    folder = tmp_path_factory.mktemp("tp8")
    MAKER.write(folder / "graphs.bs4.windows", RANKS, 300, Flaws())
    MAKER.write(folder / "graphs.bs4.spans", RANKS, 150, Flaws())
    MAKER.write(folder / "limit-2.forced", RANKS, 120, Flaws(eager=(1, 90)))
    put(folder, "graphs", waves(("asleep", 4, 100, 700), ("asleep", 4, 200, 1300)))
    put(folder, "plain", waves(
        ("asleep", 4, 100, 500), ("asleep", 4, 300, 1000),
        ("asleep", 5, 100, 2000), ("asleep", 5, 300, 6000),
    ))  # fmt: skip
    unfinished: dict[str, Any] = {"label": "one rank eager", "requests": 2, "unfinished": True}
    put(folder, "limit-2", json.dumps({"waves": [unfinished]}))
    return folder


def test_the_script_is_bash() -> None:
    assert subprocess.run(["bash", "-n", str(SCRIPT)], check=False).returncode == 0


def test_a_dry_run_says_what_would_run() -> None:
    done = tp8("--dry-run", "0.5.12", GPUS="2")
    assert (done.returncode, done.stderr) == (0, "")
    first, *lines = done.stdout.splitlines()
    assert first == "SGLang 0.5.12, TP=2, 61 layers, hidden size 2048"
    engines = [line.split(":")[0] for line in lines if "at most" in line]
    assert engines == ["graphs", "plain", "eager", "limit-2"]
    assert sum("windows   " in line for line in lines) == 3 * 2
    assert "disable_cuda_graph" in done.stdout
    assert "'cuda_graph_max_bs': 2" in done.stdout
    # What is not traced is told to sleep first.
    assert all("disarm" in line for line in lines if line.split()[:1] == ["asleep"]
               and "x 100 " in line and "{" in line)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        ((), {}, "tp8.sh RELEASE [PACKED]"),
        (("--what", "0.5.12"), {}, "tp8.sh RELEASE [PACKED]"),
        (("0.5.12",), {"GPUS": "1"}, "tensor parallelism needs two GPUs, there is 1"),
        (("0.5.12", "nowhere"), {"GPUS": "2"}, "no nowhere/plan-0.5.12.json; tp8.sh --pack"),
    ],
)
def test_what_it_cannot_do_is_one_line(
    tmp_path: Path, words: tuple[str, ...], environment: dict[str, str], said: str
) -> None:
    done = tp8(*words, OUT=str(tmp_path / "out"), **environment)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_the_table_has_the_ratio_and_what_is_missing(runs: Path) -> None:
    lines = table(runs).splitlines()
    assert lines[0].startswith("8 x NVIDIA H200 · ")
    assert "sglang 0.5.12" in lines[0]
    graphs = next(line for line in lines if line.startswith("graphs"))
    assert "GRAPH" in graphs
    assert "EAGER" not in graphs
    assert " 6.00 " in graphs  # (1300 - 700) ms in 100 cycles
    assert graphs.endswith("nothing")
    eager = next(line for line in lines if line.startswith("eager"))
    assert "no log" in eager
    assert "plain decoding, ms a step: bs 4 2.50, bs 5 20.00; bs 5 is above the largest graph" in (
        lines
    )
    assert any("all-reduces of an eager cycle: not measured" in line for line in lines)


def test_the_forced_rank_is_named_and_every_log_speaks(runs: Path) -> None:
    text = table(runs)
    after = text[text.index("one rank made eager: ") :].splitlines()
    assert after[0].startswith("one rank made eager: rank tp 1 ran verify eager while others")
    assert "first in cycle 90" in after[0]
    assert after[1] == "  it did not end: the engine was killed at its time limit"
    assert [line.split(":")[0] for line in after[2:]] == [f"  rank {n}" for n in range(RANKS)]
    assert all("120 cycles" in line for line in after[2:])


def test_all_reduces_are_counted_by_kernel(tmp_path: Path) -> None:
    kernels = ["ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"] * 12
    kernels += ["void sglang::cross_device_reduce_1stage<__nv_bfloat16, 2>(RankData*)"] * 30
    # As on two H200, where the name was cut off at its first bracket.
    kernels += ["void (anonymous namespace)::all_reduce_one_shot<__nv_bfloat16>(Params)"] * 6
    events = [{"cat": "kernel", "name": name} for name in (*kernels, "gemm")]
    events += [{"cat": "cpu_op", "name": "c10d::allreduce_"}]
    with gzip.open(tmp_path / "1-TP-0.trace.json.gz", "wt") as file:
        json.dump({"traceEvents": events}, file)
    done = [{"profile": True, "requests": 1, "tokens": 8, "spec_verify_ct": [8], "end_ns": 1}]
    (tmp_path / "result.json").write_text(json.dumps({"waves": done}), "utf-8")
    said = all_reduces(tmp_path, tmp_path / "result.json")
    assert "48 in 8 cycles and their prefill, 6 a cycle" in said
    assert "sglang::cross_device_reduce_1stage 30" in said
    assert "(void" not in said and "all_reduce_one_shot 6" in said
