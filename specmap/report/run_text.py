"""A run as text for people: what ran how, why, what it cost, and what stands out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import floor, log10

from rich.console import RenderableType
from rich.text import Text

from specmap.codemap.event import (
    Agreement,
    Budget,
    Joined,
    LaunchCount,
    PhaseStats,
    RankRun,
    Run,
    RunFinding,
    State,
    Stretch,
)
from specmap.codemap.outcome import CYCLE
from specmap.codemap.source import Span
from specmap.report.options import RenderOptions
from specmap.report.outcome_text import place
from specmap.report.rank_names import alike, rank_names
from specmap.report.text_parts import console, heading, indent, spread, word

_SHOWN_REASONS = 3
_SHOWN_SYNCS = 10
_SHOWN_COSTS = 2
_FEW_WINDOWS = 20
_LIVE_NAME, _LIVE_STATE = 34, 10
_COLUMNS = ("phase", "passes", "state", "CPU", "CPU share")
_GPU, _PADDING, _LAUNCHES, _WHY = "GPU", "padding", "launches a pass", "why not graph"


def render_run(run: Run, options: RenderOptions) -> str:
    """Return the report; trailing spaces are removed."""
    out, sink = console(options)
    for block in blocks(run, max(options.width, 80)):
        out.print(block)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()).rstrip() + "\n"


def render_ranks(ranks: tuple[RankRun, ...], options: RenderOptions) -> str:
    """Return the phases alone, one line each: the rank that replays least, and why."""
    out, sink = console(options)
    rows: dict[tuple[str, str], PhaseStats] = {}
    for phase in (phase for rank in ranks for phase in rank.phases):
        key = (phase.worker, phase.phase)
        if key not in rows or _replayed(phase) < _replayed(rows[key]):
            rows[key] = phase
    cycles = max((rank.cycles for rank in ranks), default=0)
    out.print(Text(f"{_number_of(ranks)} · {cycles} cycles", style="dim"))
    for (worker, name), phase in rows.items():
        state = phase.state.value if phase.state is not None else ""
        why = f"  {phase.reasons[0].text}" if phase.reasons and state == State.EAGER else ""
        line = Text.assemble(
            f"{worker}.{name}".ljust(_LIVE_NAME), word(state.ljust(_LIVE_STATE)),
            f"{_replayed(phase):>4.0%} replayed  {duration(phase.median_cpu_ns):>8}{why}",
        )  # fmt: skip
        line.truncate(max(options.width, 80) - 1, overflow="ellipsis")
        out.print(line)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"


def _number_of(ranks: tuple[RankRun, ...]) -> str:
    return f"{len(ranks)} rank{'s' if len(ranks) != 1 else ''}"


def _replayed(phase: PhaseStats) -> float:
    replays = phase.counts.get(State.GRAPH, 0) + phase.counts.get(State.PIECEWISE, 0)
    return replays / phase.passes if phase.passes else 0.0


def blocks(run: Run, width: int) -> Iterator[RenderableType]:
    """Yield the report block by block, for a page of so many characters."""
    facts = [_number_of(run.ranks)]
    if run.release:
        facts.insert(0, f"SGLang {run.release}")
    yield heading("Run", " · ".join(facts))
    if run.command:
        yield indent(Text(" ".join(run.command), style="dim"))
    damage = [Text(line, style="bold red") for line in run.damage]
    yield from _lines("Not whole", damage)
    yield from _lines("Stands out", [_finding(f) for f in run.findings])
    for ranks in alike(run):
        yield from _rank(*ranks, width)
    yield from _joined(run.joined, width)
    if run.budget is not None:
        yield from _budget(run.budget)
    yield from _syncs(run, width)
    yield from _tracer(run)
    yield from _lines("Notes", [Text(note) for note in run.notes])


def _rank(rank: RankRun, others: list[RankRun], width: int) -> Iterator[RenderableType]:
    yield ""
    workers = ", ".join(dict.fromkeys(p.worker for p in rank.phases)) or "no pass"
    shown = f", figures of {rank_names([rank])}" if len(others) > 1 else ""
    least, most = min(r.cycles for r in others), max(r.cycles for r in others)
    cycles = f"{least} to {most}" if least < most else str(most)
    yield heading(f"{workers}, {rank_names(others)}", f"{cycles} cycles{shown}")
    if rank.phases:
        yield from spread(*_phases(rank.phases), _WHY, _LAUNCHES, width=width)
    yield from _cycle_line(rank)


def _gpu_ns(phase: PhaseStats) -> int:
    return phase.gpu_ns // phase.gpu_passes if phase.gpu_passes else 0


def _gpu(phase: PhaseStats, cycle_ns: int) -> str:
    """Write the mean GPU time of a pass, and its part in that of draft, verify and draft_extend."""
    if not phase.gpu_passes:
        return ""
    share = f" ({_gpu_ns(phase) / cycle_ns:.0%})" if phase.phase in CYCLE and cycle_ns else ""
    return duration(_gpu_ns(phase)) + share


def _phases(phases: tuple[PhaseStats, ...]) -> tuple[tuple[str, ...], list[list[str | Text]]]:
    """Return the columns and rows of the phase table; what was not measured has no column."""
    timed = any(phase.gpu_passes for phase in phases)
    counted = any(phase.launches for phase in phases)
    more = [(timed, _GPU), (True, _PADDING), (counted, _LAUNCHES)]
    each = [_gpu_ns(phase) for phase in phases if phase.phase in CYCLE]
    cycle_ns = sum(each) if all(each) else 0
    rows: list[list[str | Text]] = [
        [
            phase.phase,
            str(phase.passes),
            _states(phase),
            duration(phase.median_cpu_ns),
            f"{phase.share:.0%}",
            *([_gpu(phase, cycle_ns)] if timed else []),
            f"{1 - phase.real / phase.padded:.0%}" if phase.padded else "",
            *([_launches(phase)] if counted else []),
            _why(phase),
        ]
        for phase in phases
    ]
    return (*_COLUMNS, *(name for there, name in more if there), _WHY), rows


def _launches(phase: PhaseStats) -> str:
    told = len(phase.counts) > 1
    lines = (f"{c.state.value}: " * told + launch_words(c) for c in phase.launches)
    return "\n".join(lines)


def launch_words(count: LaunchCount) -> str:
    """Write a usual pass of a state: graphs, kernels one by one, collectives among them."""
    each, parts = count.usual, []
    if each.graphs:
        parts.append(f"{each.graphs} graph{'s' if each.graphs > 1 else ''}")
    parts.append(f"{each.kernels} kernel{'s' if each.kernels != 1 else ''}")
    if each.collectives:
        parts[-1] += f" ({each.collectives} collective{'s' if each.collectives > 1 else ''})"
    often = f", {count.usual_passes} of {count.passes}" if count.usual_passes < count.passes else ""
    return " + ".join(parts) + often


def _states(phase: PhaseStats) -> Text:
    if len(phase.counts) == 1:
        return word(next(iter(phase.counts)).value)
    lines = [Text.assemble(word(s.value), f" {count}") for s, count in phase.counts.items()]
    return Text("\n").join(lines)


def _why(phase: PhaseStats) -> Text:
    lines = []
    for reason in phase.reasons[:_SHOWN_REASONS]:
        where = f" ({brief(reason.span)})" if reason.span is not None else ""
        often = "" if reason.count == phase.passes else f"{reason.count}x "
        lines.append(f"{often}{reason.text}{where}")
    if len(phase.reasons) > _SHOWN_REASONS:
        lines.append(f"and {len(phase.reasons) - _SHOWN_REASONS} more reasons")
    lines += _switches(phase.stretches)
    return Text("\n".join(lines))


def brief(span: Span) -> str:
    """Return the file's name alone and the line: the reason's own row must stay short."""
    return f"{span.file.rpartition('/')[2]}:{span.line}"


def _switches(stretches: tuple[Stretch, ...]) -> list[str]:
    """Say in which cycles a phase changed how it ran."""
    if len(stretches) < 2:
        return []
    parts = [f"{s.state.value} from cycle {s.first}" for s in stretches[-3:]]
    return [", ".join(parts)]


def duration(time_ns: float) -> str:
    """Write a time with the unit that suits it."""
    if time_ns < 1e3:
        return f"{time_ns:.0f} ns"
    if time_ns < 1e6:
        return f"{time_ns / 1e3:.0f} us"
    return f"{time_ns / 1e6:.2f} ms" if time_ns < 1e9 else f"{time_ns / 1e9:.2f} s"


def _cycle_line(rank: RankRun) -> Iterator[RenderableType]:
    facts = []
    if rank.decode.count:
        facts.append(f"{rank.decode.count} decode cycles")
    if rank.decode.median_ns is not None:
        facts.append(f"median {duration(rank.decode.median_ns)}")
    if rank.decode.requests:
        facts.append(f"{rank.decode.requests:.1f} requests")
    if rank.accept.length is not None:
        facts.append(f"accept length {rank.accept.length:.2f}")
    if rank.captures:
        facts.append(f"{rank.captures} graph captures seen")
    if facts:
        yield indent(Text(" · ".join(facts)))


def _finding(finding: RunFinding) -> Text:
    return Text(finding.message, style="bold red" if finding.failing else "")


def _lines(title: str, lines: list[Text]) -> list[RenderableType]:
    return ["", heading(title), *(indent(line) for line in lines)] if lines else []


_AGREEMENT = {
    Agreement.AGREE: "green",
    Agreement.CONTRADICT: "bold red",
    Agreement.NOT_EXERCISED: "dim",
    Agreement.OPEN: "magenta",
}


def _joined(rows: tuple[Joined, ...], width: int) -> Iterator[RenderableType]:
    if not rows:
        return
    yield ""
    yield heading("Source and run", "what the launch makes of the source, and what was observed")
    ordered = sorted(rows, key=lambda row: row.agreement is not Agreement.CONTRADICT)
    yield from spread(
        ("phase", "source", "run", "", "note"),
        [
            [
                f"{row.worker}.{row.phase}",
                word(row.expected.value),
                counts(row.observed),
                Text(row.agreement.value, style=_AGREEMENT[row.agreement]),
                row.note,
            ]
            for row in ordered
        ],
        "note",
        width=width,
    )


def counts(observed: Mapping[State, int]) -> str:
    """Write how many passes ran in which state."""
    return ", ".join(f"{count} {state.value}" for state, count in observed.items()) or "-"


def _rate(tps: float) -> str:
    """Write tokens per second, three digits at least."""
    return f"{tps:.{max(0, 2 - floor(log10(tps))) if tps > 0 else 0}f}"


def _budget(budget: Budget) -> Iterator[RenderableType]:
    lines = [f"a cycle takes {duration(budget.cycle_ns)} with {budget.requests:.1f} requests"]
    if budget.tokens_per_cycle:
        lines[0] += (
            f" and yields {budget.tokens_per_cycle:.2f} tokens: at most "
            f"{_rate(budget.bound_tps)} tokens/s"
        )
    if budget.replayed_tps:
        sure = "if the eager phases replayed" if budget.replayed_sure else (
            "at most, if the eager phases cost nothing (none was seen replaying)"
        )  # fmt: skip
        lines.append(f"{_rate(budget.replayed_tps)} tokens/s {sure}")
    if budget.break_even is not None and budget.baseline_tps is not None:
        lines.append(
            f"plain decoding at {_rate(budget.baseline_tps)} tokens/s is as fast at an accept "
            f"length of {budget.break_even:.2f}"
        )
    if budget.verify_fixed_ns is not None and budget.verify_token_ns is not None:
        lines.append(
            f"a verify pass costs {duration(budget.verify_fixed_ns)} and "
            f"{duration(budget.verify_token_ns)} for each draft token of a request"
        )
    if budget.note:
        lines.append(budget.note)
    yield from _lines("Budget of a cycle", [Text(line) for line in lines])


def _syncs(run: Run, width: int) -> Iterator[RenderableType]:
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for sync in (sync for rank in run.ranks for sync in rank.syncs):
        key = (place(sync.span), sync.phase or "the cycle", sync.label)
        count, blocked = found.get(key, (0, 0))
        found[key] = (count + sync.count, blocked + sync.blocked_ns)
    if not found:
        return
    ordered = sorted(found.items(), key=lambda item: (-item[1][1], item[0]))
    yield ""
    yield heading("Host waits for the device", "all ranks; time blocked, not what the call costs")
    yield from spread(
        ("place", "in", "what", "count", "blocked", "each"),
        [
            [*key, str(count), duration(blocked), duration(blocked // max(count, 1))]
            for key, (count, blocked) in ordered[:_SHOWN_SYNCS]
        ],
        "what",
        width=width,
    )
    if len(ordered) > _SHOWN_SYNCS:
        yield indent(Text(f"and {len(ordered) - _SHOWN_SYNCS} more places that JSON lists"))


def _measured(part: float, error: float) -> str:
    return f"{part:+.2%} \u00b1 {error:.2%}"


def _tracer(run: Run) -> Iterator[RenderableType]:
    """Say how the tracer itself ran, and what it cost."""
    if not run.ranks:
        return
    rings = dict.fromkeys(rank.ring for rank in run.ranks if rank.ring)
    records = sum(rank.records for rank in run.ranks)
    facts = [f"{records} records", *(f"{ring} ring" for ring in rings)]
    if lost := sum(rank.lost for rank in run.ranks):
        facts.append(f"{lost} lost")
    lines = [Text(" · ".join(facts))]
    measured = [(rank, rank.overhead) for rank in run.ranks if rank.overhead is not None]
    for rank, cost in sorted(measured, key=lambda item: -item[1].cost)[:_SHOWN_COSTS]:
        few = "; too few windows to tell" if cost.windows < _FEW_WINDOWS else ""
        said = f"cost {_measured(cost.cost, cost.cost_error)} of a cycle, A/A null "
        said += f"{_measured(cost.null, cost.null_error)} ({cost.windows} windows{few})"
        lines.append(Text(f"{rank_names([rank])}: {said}"))
    lines += [Text(line) for line in _killed(run.ranks)]
    yield from _lines("Tracer", lines)


_SAVED = "killed, and every record was saved from its memory"
_CUT = "ended without a last flush, and its memory is gone: up to 0.2 s of records are missing"


def _killed(ranks: tuple[RankRun, ...]) -> Iterator[str]:
    """Say of ranks that did not close their logs what is there of them."""
    for said, salvaged in ((_SAVED, True), (_CUT, False)):
        named = [
            rank for rank in ranks
            if not rank.finished and not rank.cut_short and rank.salvaged is salvaged
        ]  # fmt: skip
        ended: dict[int, list[RankRun]] = {}
        for rank in named:
            ended.setdefault(rank.cycles, []).append(rank)
        if ended:
            after = ", ".join(f"{rank_names(each)} after {n}" for n, each in ended.items())
            yield f"{said} ({after} cycles)"
