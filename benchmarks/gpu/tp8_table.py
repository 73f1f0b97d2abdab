"""The table of ``tp8.py``: what every engine's phases did and cost, from the recorded runs."""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from specmap.codemap.event import PhaseStats, RankRun, Run, RunProblem
from specmap.trace.names import TraceNames, names_of
from specmap.trace.read import load_plan, read_run
from specmap.trace.spool import Kind, Tail, ranks_in

RULES = Path(__file__).resolve().parents[2] / "rules" / "vocabulary.toml"
PHASES = ("draft", "verify", "draft_extend")
ENGINES = ("graphs", "eager", "limit-2")
PROFILES = Path("/tmp/profiles")
ALL_REDUCE = re.compile(r"all_?reduce|cross_device_reduce", re.IGNORECASE)
NOT_OF_THE_NAME = re.compile(r"^void |\(anonymous namespace\)::")


@dataclass(frozen=True, slots=True)
class Part:
    """One engine at one size: the run in windows and the run with GPU times, if they are there."""

    engine: str
    size: int
    windows: Run | None
    spans: Run | None


def names() -> TraceNames:
    """Return the tracer's names from the rules beside this file."""
    return names_of(tomllib.loads(RULES.read_text("utf-8")))


def run_in(folder: Path, known: TraceNames) -> Run | None:
    """Return the run of a folder, None where no rank recorded."""
    if not (folder / "plan.json").exists() or not ranks_in(folder):
        return None
    return read_run(folder, known)


def parts_of(runs: Path, known: TraceNames) -> list[Part]:
    """Return what was recorded of each engine at each size."""
    sizes = sorted(
        {int(m[1]) for p in runs.iterdir() if (m := re.search(r"\.bs(\d+)\.windows$", p.name))}
    )
    return [
        Part(engine, size, *(
            run_in(runs / f"{engine}.bs{size}.{kind}", known) for kind in ("windows", "spans")
        ))
        for engine in ENGINES for size in sizes
    ]  # fmt: skip


def step_ms(result: Path, size: int, label: str = "asleep") -> float | None:
    """Return the time of a decode step from two waves of different length.

    What both have in common, the prefill, cancels. A request of a random draft yields one token
    a cycle, and SGLang's own count of verify steps says how many cycles there were.
    """
    if not result.exists():
        return None
    waves = json.loads(result.read_bytes())["waves"]
    found = [
        w for w in waves if w.get("label") == label and w["requests"] == size and "end_ns" in w
    ]
    if len(found) < 2:
        return None
    first, second = found[0], found[-1]
    steps = [_steps(w) for w in (first, second)]
    times = [w["end_ns"] - w["start_ns"] for w in (first, second)]
    return (times[1] - times[0]) / (steps[1] - steps[0]) / 1e6 if steps[1] > steps[0] else None


def _steps(done: dict[str, Any]) -> int:
    counted = [int(n) for n in done["spec_verify_ct"] if n]
    return max(counted) if counted else int(done["tokens"]) // int(done["requests"])


def phase_of(rank: RankRun, name: str) -> PhaseStats | None:
    """Return a phase of the decode cycle."""
    return next((p for p in rank.phases if p.phase == name), None)


def states(run: Run) -> str:
    """Say how the phases of the cycle ran, all ranks together."""
    words = []
    for name in PHASES:
        found: Counter[str] = Counter()
        for phase in (phase_of(rank, name) for rank in run.ranks):
            if phase is not None:
                found.update({state.value: count for state, count in phase.counts.items()})
        words.append(" and ".join(found) or "NOT_RUN")
    return words[0] if len(set(words)) == 1 else " / ".join(words)


def gpu_ms(run: Run | None, name: str) -> float | None:
    """Return the mean GPU time of a phase on the rank where it is longest."""
    phases = [phase_of(rank, name) for rank in (run.ranks if run is not None else ())]
    times = [p.gpu_ns / p.gpu_passes / 1e6 for p in phases if p is not None and p.gpu_passes]
    return max(times, default=None)


def shares(run: Run | None) -> str:
    """Return the parts of draft, verify and draft-extend in their sum of GPU time."""
    times = [gpu_ms(run, name) or 0.0 for name in PHASES]
    whole = sum(times)
    return " / ".join(f"{time / whole:.0%}" for time in times) if whole else "-"


def cost(run: Run | None) -> str:
    """Return the tracer's cost on the rank where it is highest, with its null."""
    found = [rank.overhead for rank in (run.ranks if run is not None else ()) if rank.overhead]
    if not found:
        return "-"
    most = max(found, key=lambda each: each.cost)
    return f"{most.cost:+.1%} ± {most.cost_error:.1%} (null {most.null:+.1%}, {most.windows})"


def ms(time: float | None) -> str:
    """Write milliseconds."""
    return "-" if time is None else f"{time:.2f}"


def ratio(one: float | None, other: float | None) -> str:
    """Write how many times as long."""
    return "-" if one is None or not other else f"{one / other:.2f}x"


def rows(runs: Path, parts: Sequence[Part]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each engine and size."""
    plain = runs / "plain" / "result.json"
    for part in parts:
        shown = part.windows or part.spans
        if shown is None:
            yield (part.engine, str(part.size), "no log", *["-"] * 8)
            continue
        cycles = [r.decode.median_ns / 1e6 for r in shown.ranks if r.decode.median_ns]
        verify = gpu_ms(part.spans, "verify")
        yield (
            part.engine, str(part.size), states(shown),
            ms(median(cycles) if cycles else None),
            ms(step_ms(runs / part.engine / "result.json", part.size)),
            ms(verify),
            ratio(verify, step_ms(plain, part.size)),
            ratio(verify, eager_step(plain)),
            shares(part.spans), cost(part.windows), differences(part),
        )  # fmt: skip


def eager_step(plain: Path) -> float | None:
    """Return the step of plain decoding that is above the largest captured graph."""
    if not plain.exists():
        return None
    sizes = {w["requests"] for w in json.loads(plain.read_bytes())["waves"]}
    return step_ms(plain, max(sizes))


def differences(part: Part) -> str:
    """Say in what the ranks differ, in both runs."""
    problems = (RunProblem.RANK_EAGER, RunProblem.GRAPH_SIZE, RunProblem.RANK_MISSING)
    found = [
        f.message for run in (part.windows, part.spans) if run is not None
        for f in run.findings if f.problem in problems
    ]  # fmt: skip
    return found[0] if found else "nothing"


HEADINGS = (
    "engine", "bs", "draft, verify, draft_extend", "cycle ms", "untraced ms", "verify GPU ms",
    "/ plain, graph", "/ plain, eager", "GPU shares", "tracer (null, windows)", "ranks differ in",
)  # fmt: skip


def lined_up(lines: Sequence[tuple[str, ...]]) -> str:
    """Return lines of cells in columns."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def machine(parts: Sequence[Part]) -> str:
    """Name the machine and the versions, as the ranks saw them."""
    ranks = [r for part in parts for run in (part.windows, part.spans) if run for r in run.ranks]
    if not ranks:
        return "no rank recorded anything"
    number = max(len(run.ranks) for part in parts for run in (part.windows, part.spans) if run)
    versions = " · ".join(f"{name} {text}" for name, text in sorted(ranks[0].versions.items()))
    rings = ", ".join(sorted({rank.ring for rank in ranks}))
    return f"{number} x {ranks[0].gpu or 'unknown GPU'} · {versions} · {rings} ring"


def forced(runs: Path, known: TraceNames) -> Iterator[str]:
    """Yield what the logs say of the run in which one rank was made eager."""
    folder = runs / "limit-2.forced"
    run = run_in(folder, known)
    if run is None:
        yield "one rank made eager: no log"
        return
    first = run.findings[0].message if run.findings else "nothing stands out"
    yield f"one rank made eager: {first}"
    result = runs / "limit-2" / "result.json"
    waves = json.loads(result.read_bytes())["waves"] if result.exists() else [{}]
    if waves[-1].get("unfinished") or not result.exists():
        yield "  it did not end: the engine was killed at its time limit"
    symbols = {t.id: t.symbol for t in load_plan(folder).targets}
    for rank, name in zip(run.ranks, ranks_in(folder), strict=False):
        opened = still_open(folder, name)
        where = symbols.get(opened, "between cycles") if opened is not None else "between cycles"
        counts = "; ".join(
            f"{p.phase} " + ", ".join(f"{n} {s.value}" for s, n in p.counts.items())
            for p in rank.phases if p.phase in PHASES
        )  # fmt: skip
        yield f"  rank {rank.tp_rank}: {rank.cycles} cycles, {counts}; its log ends in {where}"


def still_open(folder: Path, name: str) -> int | None:
    """Return the innermost call that a rank's log does not end."""
    tail, stack = Tail(folder, name), list[int]()
    while records := tail.poll():
        for _, target, kind, *_ in records:
            if kind == Kind.ENTER:
                stack.append(target)
            elif kind in (Kind.EXIT, Kind.RAISE) and target in stack:
                del stack[len(stack) - 1 - stack[::-1].index(target) :]
            elif kind in (Kind.ARM, Kind.DISARM):
                stack.clear()
    return stack[-1] if stack else None


def all_reduces(profiles: Path, result: Path) -> str:
    """Say how many all-reduce kernels an eager cycle launched, from SGLang's own profiler."""
    traces = sorted(profiles.rglob("*TP-0*.json.gz"))
    if not traces or not result.exists():
        return "all-reduces of an eager cycle: not measured (SGLang's profiler left no trace)"
    with gzip.open(traces[-1]) as file:
        events = json.load(file)["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel" and ALL_REDUCE.search(e["name"])]
    profiled = [w for w in json.loads(result.read_bytes())["waves"] if w.get("profile")]
    steps = sum(_steps(w) for w in profiled if "end_ns" in w)
    if not steps:
        return "all-reduces of an eager cycle: not measured (the profiled wave did not end)"
    plain = (NOT_OF_THE_NAME.sub("", e["name"]) for e in kernels)
    by_name = Counter(re.split(r"[<(]", name)[0] for name in plain)
    most = ", ".join(f"{name} {count}" for name, count in by_name.most_common(3))
    return (
        f"all-reduce kernels on TP 0, eager, one request: {len(kernels)} in {steps} cycles and "
        f"their prefill, {len(kernels) / steps:.0f} a cycle ({most})"
    )


def table(runs: Path) -> str:
    """Return the whole report."""
    known = names()
    parts = parts_of(runs, known)
    plain = runs / "plain" / "result.json"
    result = json.loads(plain.read_bytes()) if plain.exists() else {"waves": []}
    sizes = sorted({w["requests"] for w in result["waves"]})
    steps = ", ".join(f"bs {size} {ms(step_ms(plain, size))}" for size in sizes)
    largest = f"; bs {sizes[-1]} is above the largest graph" if sizes else ""
    return "\n".join([
        machine(parts), "",
        lined_up([HEADINGS, *rows(runs, parts)]), "",
        f"plain decoding, ms a step: {steps or 'not run'}{largest}",
        all_reduces(PROFILES / "eager", runs / "eager" / "result.json"),
        *forced(runs, known),
    ])  # fmt: skip
