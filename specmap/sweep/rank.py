"""Ranks the cells of a sweep by recorded runs: measured cycles, and stated rules between them.

What was not measured and follows by no rule has no figure: the cell is unranked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from specmap.budget import budgeted
from specmap.codemap.event import State
from specmap.codemap.launch import Plain
from specmap.codemap.outcome import CYCLE
from specmap.codemap.sweep import Cell, CellState, Prediction, Sweep
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.sweep.grounds import OWN, assumes, elsewhere
from specmap.sweep.samples import (
    AcceptLength,
    Sample,
    SweepWords,
    Work,
    said,
    states_of,
    used,
    work_of,
)

_SECOND_NS = 1e9
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and where it comes from; ``measured``: at just these settings."""

    value: float
    rule: str
    measured: bool


class Ranking:
    """Predicts cells of one sweep from the samples; ``given`` accept lengths come first."""

    def __init__(
        self,
        sweep: Sweep,
        samples: Sequence[Sample],
        given: Sequence[AcceptLength],
        words: SweepWords,
    ) -> None:
        self._sweep = sweep
        self._samples = samples
        self._given = given
        self._words = words
        self._fields = [name for axis in sweep.axes for name in axis.fields]
        self._variables = {
            axis.name: index
            for index, axis in enumerate(sweep.axes)
            if not axis.fields and index < len(sweep.axes) - 1
        }

    def cell(self, cell: Cell) -> Cell:
        """Return a cell with its prediction, or with why there is none."""
        bar = _bar(cell)
        if bar:
            return replace(cell, unranked=bar)
        length, cycle = self._length(cell), self._cycle(cell)
        if isinstance(length, str) or isinstance(cycle, str):
            reasons = [text for text in (length, cycle) if isinstance(text, str)]
            return replace(cell, unranked="; ".join(reasons))
        speed = cell.batch_size * length.value / cycle.value * _SECOND_NS
        made = Prediction(
            tokens_per_second=speed,
            cycle_ns=cycle.value,
            accept_length=length.value,
            rules=(cycle.rule, length.rule),
            measured=length.measured and cycle.measured,
        )
        return replace(cell, prediction=made)

    # Accept lengths

    def _length(self, cell: Cell) -> Figure | str:
        found, most = self._known_length(cell), cell.tokens_per_request
        if isinstance(found, str) or most is None or 1 <= found.value <= most:
            return found
        return f"{found.rule} is {found.value:g}: a request has 1 to {most} tokens a cycle here"

    def _known_length(self, cell: Cell) -> Figure | str:
        work = work_of(cell.settings, self._words)
        for stated in self._given:
            if stated.rest is not None and (stated.steps, *stated.rest) == work:
                return Figure(stated.value, f"accept length of {said(work)} as given", False)
        for stated in self._given:
            if stated.rest is None and stated.steps == work[0]:
                return Figure(
                    stated.value, f"accept length of {stated.steps} steps as given", False
                )
        loose = self._words.capture | self._words.lossless
        for sample in self._samples:
            known = sample.accept_length is not None and sample.work == work
            if known and not self._differs(cell, sample, loose):
                assert sample.accept_length is not None
                return Figure(sample.accept_length, f"accept length of {sample.name}", True)
        steps = "" if work[0] is None else f"--accept-length {work[0]}=VALUE or "
        return f"no accept length for {said(work)}: {steps}a run with these steps"

    # Cycles

    def _cycle(self, cell: Cell) -> Figure | str:
        states = states_of(cell)
        assert states is not None
        near = self._near(cell, states)
        if isinstance(near, str):
            return near
        work = work_of(cell.settings, self._words)
        for rule in (_measured, _between, _scaled):
            found = rule(work, near, self._words)
            if found is not None:
                return found
        have = ", ".join(dict.fromkeys(said(s.work) for s in near))
        return (
            f"no rule leads to a cycle of {said(work)} from {have}: record a run with it, or runs "
            "with fewer and more steps, or two with --spans"
        )

    def _near(self, cell: Cell, states: Mapping[PhaseName, State]) -> list[Sample] | str:
        """Return the samples that differ from a cell in the work alone, or what there is none of.

        Those of the very settings come first, then those whose batch was steadiest.

        A run of the same work whose eager phases were also seen replaying stands for one that
        replays (see :func:`replayed`).
        """
        kept = [s for s in self._samples if s.worker == cell.workers[0]]
        if not kept:
            return f"no run of {cell.workers[0]}"
        differing = [self._differs(cell, s, self._words.capture) for s in kept]
        if all(differing):
            return f"no run with {differing[0]}"
        kept = [s for s, differs in zip(kept, differing, strict=True) if not differs]
        kept = [s for s in kept if s.size == cell.batch_size]
        if not kept:
            return f"no run at bs {cell.batch_size}"
        alike = [s for s in kept if s.states == states]
        alike += [made for s in kept if s not in alike and (made := replayed(s, states))]
        if not alike:
            wanted = ", ".join(f"{name} {state}" for name, state in states.items())
            return f"no run at bs {cell.batch_size} with {wanted}"
        padded = [s for s in alike if None in (s.graph_size, cell.graph_size)
                  or s.graph_size == cell.graph_size]  # fmt: skip
        if not padded:
            return f"no run that pads bs {cell.batch_size} to {cell.graph_size}"
        strict: frozenset[str] = frozenset()
        return sorted(padded, key=lambda s: (bool(self._differs(cell, s, strict)), -s.share))

    def _differs(self, cell: Cell, sample: Sample, loose: frozenset[str]) -> str:
        """Say in which varied setting a run and a cell differ, "" for none."""
        for name in self._fields:
            if name in loose or name in self._words.work:
                continue
            value = cell.settings.get(name, _MISSING)
            if value is _MISSING:
                return f"{name}, which is not known here"
            if name not in sample.rank.arguments or sample.rank.arguments[name] != value:
                return f"{name} {value}"
        for name, index in self._variables.items():
            text = cell.values[index]
            wanted = None if text == "unset" else text
            if sample.rank.environment.get(name) != wanted:
                return f"{name} {text}"
        return ""


def _bar(cell: Cell) -> str:
    """Say why a cell has no speed at all, "" where it may have."""
    if cell.state is CellState.REFUSED:
        return "refused at start"
    if cell.state is CellState.PLAIN:
        return "it does not speculate: no cycle to predict"
    if not cell.phases:
        return "the worker is not known"
    if cell.too_large:
        return cell.too_large
    unknown = [
        p.name.value for p in cell.phases if p.name in CYCLE and p.verdict is Verdict.UNKNOWN
    ]
    return f"{', '.join(unknown)} not settled" if unknown else ""


def replayed(sample: Sample, states: Mapping[PhaseName, State]) -> Sample | None:
    """Return a run as it would be if its eager phases took the time of their own replays.

    None where the budget does not say so for just these states.
    """
    budget = sample.run.budget
    as_graph = {
        name: State.GRAPH if state is State.EAGER else state
        for name, state in sample.states.items()
    }
    if as_graph != states or budget is None:
        return None
    if budget.replayed_tps is None or not budget.replayed_sure or not budget.tokens_per_cycle:
        return None
    cycle = budget.tokens_per_cycle / budget.replayed_tps * _SECOND_NS
    name = f"{sample.name} with its eager phases {OWN}"
    return replace(
        sample, name=name, states=states, cycle_ns=round(cycle), graph_size=None, bound=True
    )


Rule = Callable[[Work, Sequence[Sample], SweepWords], Figure | None]


def _measured(work: Work, near: Sequence[Sample], words: SweepWords) -> Figure | None:
    for sample in near:
        if sample.work == work:
            return Figure(sample.cycle_ns, f"cycle of {sample.name}", not sample.bound)
    return None


def _between(work: Work, near: Sequence[Sample], words: SweepWords) -> Figure | None:
    """Take the line between the nearest runs with less and with more work.

    The work is one number where all else is equal: the steps, with one branch and as many
    verify tokens as steps and the bonus, or with as many verify tokens; or these tokens.
    """
    for number in (_chain, _steps, _tokens):
        at = number(work)
        points = [(number(s.work), s) for s in near]
        if at is None:
            continue
        same = [(x[1], s) for x, s in points if x is not None and x[0] == at[0]]
        below = max((p for p in same if p[0] < at[1]), key=lambda p: p[0], default=None)
        above = min((p for p in same if p[0] > at[1]), key=lambda p: p[0], default=None)
        if below is None or above is None:
            continue
        part = (at[1] - below[0]) / (above[0] - below[0])
        first, last = below[1], above[1]
        cycle = first.cycle_ns + part * (last.cycle_ns - first.cycle_ns)
        ends = " and ".join(f"{s.name} ({said(s.work)})" for s in (first, last))
        rule = f"cycle on the line between {ends}"
        return Figure(cycle, rule, False)
    return None


_Place = tuple[tuple[Plain, ...], int]


def _chain(work: Work) -> _Place | None:
    steps, topk, tokens = work
    chain = topk == 1 and isinstance(steps, int) and tokens == steps + 1
    return ((), steps) if chain and isinstance(steps, int) else None


def _steps(work: Work) -> _Place | None:
    steps, topk, tokens = work
    return ((topk, tokens), steps) if isinstance(steps, int) else None


def _tokens(work: Work) -> _Place | None:
    steps, topk, tokens = work
    return ((steps, topk), tokens) if isinstance(tokens, int) else None


def _scaled(work: Work, near: Sequence[Sample], words: SweepWords) -> Figure | None:
    """Scale the phases of one run: the draft by its forwards, verify by two runs' parts.

    The draft runs a forward for each step but the last. Only GPU times, and CPU times of eager
    phases, are times of the work; a replay's CPU time is that of launching it.
    """
    for sample in near:
        if sample.work[1] != work[1] or sample.bound:
            continue
        changes = [_draft(work, sample), *_verify(work, sample, near, words)]
        found = [change for change in changes if change is not None]
        if len(found) < len(changes):
            continue
        cycle = sample.cycle_ns + sum(change.value for change in found)
        if cycle > 0 and any(change.rule for change in found):
            rules = ", ".join(change.rule for change in found if change.rule)
            return Figure(cycle, f"cycle of {sample.name} ({said(sample.work)}), {rules}", False)
    return None


def _draft(work: Work, sample: Sample) -> Figure | None:
    """Return what the draft of other steps adds to a cycle, in ns."""
    before, after = sample.work[0], work[0]
    if before == after:
        return Figure(0.0, "", True)
    time = _work_ns(sample, PhaseName.DRAFT)
    if not isinstance(before, int) or not isinstance(after, int) or time is None:
        return None
    if before < 2 or after < 2:
        return None
    factor = (after - 1) / (before - 1)
    return Figure(time * (factor - 1), f"its draft times {after - 1}/{before - 1}", False)


def _verify(
    work: Work, sample: Sample, near: Sequence[Sample], words: SweepWords
) -> Iterator[Figure | None]:
    """Yield what a verify step of another width adds to a cycle, in ns."""
    before, after = sample.work[2], work[2]
    if before == after:
        return
    token_ns, other = _token_ns(sample, near, words)
    if token_ns is None or not isinstance(before, int) or not isinstance(after, int):
        yield None
        return
    # The budget's slope is that of one more token of every request.
    rule = f"its verify with {after} tokens by the slope to {other}, its draft_extend as it was"
    yield Figure((after - before) * token_ns, rule, False)


def _token_ns(
    sample: Sample, near: Sequence[Sample], words: SweepWords
) -> tuple[float | None, str]:
    if _work_ns(sample, PhaseName.VERIFY) is None:
        return None, ""
    for other in near:
        if other.work[2] == sample.work[2] or _work_ns(other, PhaseName.VERIFY) is None:
            continue
        budget = budgeted(sample.run, (words.work[2],), other=other.run).budget
        if budget is not None and budget.verify_token_ns is not None:
            return budget.verify_token_ns, other.name
    return None, ""


def _work_ns(sample: Sample, name: PhaseName) -> float | None:
    """Return the time of a phase's work, None where only its launch was timed."""
    phase = sample.phase(name)
    if phase is None:
        return None
    if phase.gpu_passes:
        return phase.gpu_ns / phase.gpu_passes
    return float(phase.median_cpu_ns) if sample.states.get(name) is State.EAGER else None


def ranked(
    sweep: Sweep,
    samples: Mapping[str, Sample | str],
    given: Sequence[AcceptLength],
    launch: Mapping[str, object],
    words: SweepWords,
    sm: int | None = None,
) -> Sweep:
    """Return a sweep with predictions.

    ``launch`` are the settings that the launch gives, ``sm`` the compute capability. A run of
    another release or GPU measured another program and is not used.
    """
    samples = {
        name: elsewhere(one, sweep.release, sm) or one if isinstance(one, Sample) else one
        for name, one in samples.items()
    }
    usable = [sample for sample in samples.values() if isinstance(sample, Sample)]
    ranking = Ranking(sweep, usable, given, words)
    found = replace(
        sweep,
        cells=tuple(ranking.cell(cell) for cell in sweep.cells),
        runs=tuple(used(name, sample, words) for name, sample in samples.items()),
    )
    varied = {name for axis in sweep.axes for name in axis.fields} | set(words.work)
    return replace(
        found, ranking_assumes=tuple(assumes(found, usable, launch, varied | words.capture))
    )
