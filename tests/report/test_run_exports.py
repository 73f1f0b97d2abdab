from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from specmap.codemap.event import (
    AcceptStats,
    CycleStats,
    Pass,
    PhaseStats,
    RankRun,
    Run,
    RunFinding,
    RunProblem,
    State,
    SyncStats,
)  # fmt: skip
from specmap.report.run_chrome import render_chrome
from specmap.report.run_metrics import render_otlp, render_prometheus
from specmap.report.run_perfetto import render_perfetto
from specmap.report.run_timeline import CycleSlice, RankTimeline, lanes_of

VERIFY = Pass(3, "EAGLEWorker", "verify", State.EAGER, "bs 4 > largest captured 2", 5_000, 2_500,
              4, -1, 0, 1, gpu_ns=2_000, accepted=9)  # fmt: skip
DRAFT = Pass(3, "EAGLEWorker", "draft", State.GRAPH, "", 2_000, 1_000, 4, 8, 1, 1)
CYCLE = CycleSlice(3, 1_000, 7_000, 4, "EAGLEWorker")


def timeline() -> list[RankTimeline]:
    return [
        RankTimeline("rank-0-0-0-71", [CYCLE], [DRAFT, VERIFY]),
        RankTimeline("rank-1-0-0-72", [], []),
    ]


def a_run() -> Run:
    phase = PhaseStats(
        "EAGLEWorker", "verify", 12, {State.GRAPH: 10, State.EAGER: 2}, (), (), 3_000_000_000,
        250, 200, 0.5, 1_500_000_000, 6, 40, 48, (8,),
    )  # fmt: skip
    rank = RankRun(
        name="rank-0-0-0-71", tp_rank=0, pp_rank=0, dp_rank=0, pid=71, host="h", ring="c",
        gpu='H200 "x"', finished=True, records=99, cycles=12, first_ns=0, last_ns=9,
        phases=(phase,), decode=CycleStats(12, 10, 9, 4.0), accept=AcceptStats(12, 48, 100),
        syncs=(SyncStats(None, "item", "verify", 3, 2_000_000_000),), lost=5,
    )  # fmt: skip
    finding = RunFinding(RunProblem.PHASE_EAGER, "verify ran eager")
    return Run("0.5.12", ("python",), (rank,), (finding, finding))


def test_chrome_events_are_in_microseconds() -> None:
    """Trace Event Format: "X" is a complete event, "M" metadata, ts and dur in microseconds."""
    text = b"".join(render_chrome(lanes_of(timeline())))
    events = json.loads(text)["traceEvents"]
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    lanes = ["cycles", "passes (CPU time)"]
    assert names == ["rank-0-0-0-71", *lanes, "rank-1-0-0-72", *lanes]
    slices = [event for event in events if event["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"], e["pid"], e["tid"]) for e in slices] == [
        ("EAGLEWorker 3", 1.0, 7.0, 1, 2),
        ("draft GRAPH", 2.0, 1.0, 1, 3),
        ("verify EAGER", 5.0, 2.5, 1, 3),
    ]
    assert slices[2]["args"] == {
        "cycle": 3, "reason": "bs 4 > largest captured 2", "requests": 4, "replays": 0,
        "gpu_ns": 2_000, "accepted": 9,
    }  # fmt: skip


def test_perfetto_bytes_are_those_of_its_own_package() -> None:
    """``run.perfetto.hex`` was serialised by ``perfetto_trace_pb2`` of perfetto 0.59."""
    written = b"".join(render_perfetto(lanes_of(timeline())))
    expected = (Path(__file__).parent / "run.perfetto.hex").read_text("utf-8")
    assert written.hex() == expected.replace("\n", "")


def test_prometheus_text() -> None:
    """As the exposition format has it: HELP, TYPE, then samples; seconds are the base unit."""
    lines = render_prometheus(a_run()).splitlines()
    rank = 'tp_rank="0",pp_rank="0",dp_rank="0"'
    verify = f'{rank},worker="EAGLEWorker",phase="verify"'
    assert lines[:4] == [
        "# HELP specmap_passes_total Passes of a phase, by how they ran.",
        "# TYPE specmap_passes_total counter",
        f'specmap_passes_total{{{verify},state="EAGER"}} 2',
        f'specmap_passes_total{{{verify},state="GRAPH"}} 10',
    ]
    assert f"specmap_pass_cpu_seconds_total{{{verify}}} 3.0" in lines
    assert f"specmap_pass_gpu_seconds_total{{{verify}}} 1.5" in lines
    assert any(line.startswith(f"specmap_gpu_timed_passes_total{{{verify}}} ") for line in lines)
    assert f"specmap_accepted_tokens_total{{{rank}}} 100" in lines
    assert f"specmap_sync_blocked_seconds_total{{{rank}}} 2.0" in lines
    assert lines[-2:] == [
        "# TYPE specmap_findings gauge",
        'specmap_findings{problem="phase-eager"} 2',
    ]


def test_otlp_is_a_request_of_cumulative_sums() -> None:
    """OTLP/JSON: 64-bit integers are texts, AGGREGATION_TEMPORALITY_CUMULATIVE is 2."""
    request = json.loads(render_otlp(a_run(), 1_700_000_000_000_000_000))
    (resource,) = request["resourceMetrics"]
    assert {"key": "sglang.release", "value": {"stringValue": "0.5.12"}} in resource["resource"][
        "attributes"
    ]
    metrics = {metric["name"]: metric for metric in resource["scopeMetrics"][0]["metrics"]}
    cycles = metrics["specmap.cycles"]["sum"]
    assert (cycles["aggregationTemporality"], cycles["isMonotonic"]) == (2, True)
    assert cycles["dataPoints"] == [
        {
            "attributes": [
                {"key": f"{kind}_rank", "value": {"stringValue": "0"}}
                for kind in ("tp", "pp", "dp")
            ],
            "timeUnixNano": "1700000000000000000",
            "asDouble": 12.0,
        }
    ]
    assert metrics["specmap.pass_cpu"]["unit"] == "s"
    assert metrics["specmap.findings"]["gauge"]["dataPoints"][0]["asDouble"] == 2.0


def test_a_series_is_that_of_a_rank_whatever_its_process() -> None:
    """The exposition format: no two samples of one name and label set; a restart is no new one."""
    run = a_run()
    again = replace(run.ranks[0], name="rank-0-0-0-94", pid=94, cycles=5, dp_rank=0)
    other = replace(run.ranks[0], name="rank-1-0--95", pid=95, tp_rank=1, dp_rank=-1)
    lines = render_prometheus(replace(run, ranks=(*run.ranks, again, other))).splitlines()
    samples = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(samples) == len(set(samples))
    assert not [line for line in samples if "71" in line or "94" in line or "95" in line]
    assert 'specmap_cycles_total{tp_rank="0",pp_rank="0",dp_rank="0"} 17' in lines
    assert 'specmap_cycles_total{tp_rank="1",pp_rank="0"} 12' in lines
