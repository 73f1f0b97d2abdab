"""What recorded runs measured, as points that cells of a sweep are compared with."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specmap.budget import fullest
from specmap.codemap.event import PhaseStats, RankRun, Run, State
from specmap.codemap.launch import Plain
from specmap.codemap.outcome import CYCLE
from specmap.codemap.sweep import Cell, RunUsed
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.errors import RulesError, SpecmapError
from specmap.scan.vocabulary import rules_folder

Work = tuple[Plain, Plain, Plain]
"""Draft steps, branches a step, tokens a verify step: how much work a cycle is."""

STATES = {
    Verdict.GRAPH: State.GRAPH,
    Verdict.PIECEWISE: State.PIECEWISE,
    Verdict.EAGER: State.EAGER,
}
"""How a phase of a verdict runs; one that does not run has no state."""


@dataclass(frozen=True, slots=True)
class SweepWords:
    """The table ``[sweep]`` of the vocabulary: settings by what they do to a cycle."""

    work: tuple[str, str, str]
    capture: frozenset[str]
    lossless: frozenset[str]


def load_sweep_words(path: Path | None = None) -> SweepWords:
    """Read the table.

    Raises:
        RulesError: the file is missing, is no TOML, or the table lacks a key.
    """
    path = path or rules_folder() / "vocabulary.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))["sweep"]
        steps, topk, tokens = (table[name][0] for name in ("steps", "topk", "tokens"))
        return SweepWords(
            (steps, topk, tokens), frozenset(table["capture"]), frozenset(table["lossless"])
        )
    except (OSError, UnicodeDecodeError, ValueError, LookupError, TypeError) as error:
        raise RulesError(f"{path.name}: table [sweep]: {error}") from error


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: what its fullest rank did at the batch size of most of its cycles.

    ``share`` is the part of the verify passes that had this size. ``states`` lacks phases that
    did not run. ``bound``: the cycle was worked out, not measured.
    """

    name: str
    run: Run
    rank: RankRun
    worker: str
    work: Work
    size: int
    share: float
    states: Mapping[PhaseName, State]
    graph_size: int | None
    cycle_ns: int
    accept_length: float | None
    bound: bool = False

    def phase(self, name: PhaseName) -> PhaseStats | None:
        """Return a phase of the worker, None where it did not run."""
        return _phase(self.rank, name)


def sample_of(name: str, run: Run, words: SweepWords) -> Sample | str:
    """Return what a run measured, or why nothing can be compared with it."""
    rank = fullest(run)
    verify = None if rank is None else _phase(rank, PhaseName.VERIFY)
    if rank is None or verify is None:
        return "it has no decode cycle"
    if rank.decode.median_ns is None:
        return "no two of its decode cycles follow each other"
    passes = _by_size(verify)
    size, count = max(passes.items(), key=lambda item: item[1], default=(-1, 0))
    if size < 1 or 2 * count <= verify.passes:
        return "no batch size has more than half of its verify passes"
    states = {}
    for phase in CYCLE:
        stats = _phase(rank, phase)
        state = None if stats is None else _state(stats, size)
        if stats is not None and state is None:
            return f"{phase.value} did not run in one state at bs {size}"
        if state is not None:
            states[phase] = state
    padded = [s for s in verify.graph_sizes if s >= size]
    return Sample(
        name=name,
        run=run,
        rank=rank,
        worker=verify.worker,
        work=work_of(rank.arguments, words),
        size=size,
        share=count / verify.passes,
        states=states,
        graph_size=min(padded) if padded and states[PhaseName.VERIFY] is State.GRAPH else None,
        cycle_ns=rank.decode.median_ns,
        accept_length=rank.accept.length,
    )


def work_of(settings: Mapping[str, Plain], words: SweepWords) -> Work:
    """Return how much work a cycle is under these settings."""
    steps, topk, tokens = (settings.get(name) for name in words.work)
    return steps, topk, tokens


def used(name: str, sample: Sample | str, words: SweepWords) -> RunUsed:
    """Return what is said about a run."""
    if isinstance(sample, str):
        return RunUsed(name, {}, "", None, None, None, sample)
    settings = dict(zip(words.work, sample.work, strict=True))
    return RunUsed(
        name, settings, sample.worker, sample.size, sample.cycle_ns, sample.accept_length
    )


def _phase(rank: RankRun, name: PhaseName) -> PhaseStats | None:
    found = [p for p in rank.phases if p.phase == name and p.passes]
    return max(found, key=lambda p: p.passes, default=None)


def _by_size(phase: PhaseStats) -> Counter[int]:
    found: Counter[int] = Counter()
    for part in phase.sizes:
        if part.state is not State.CAPTURE:
            found[part.size] += part.passes
    return found


def _state(phase: PhaseStats, size: int) -> State | None:
    """Return the state of nine in ten passes at a batch size, None where there is none."""
    at = {part.state: part.passes for part in phase.sizes if part.size == size}
    at.pop(State.CAPTURE, None)
    state, count = max(at.items(), key=lambda item: item[1], default=(None, 0))
    return state if 10 * count >= 9 * sum(at.values()) else None


@dataclass(frozen=True, slots=True)
class AcceptLength:
    """An accept length that the caller states, for draft steps or for all of the work."""

    steps: int
    rest: tuple[int, int] | None
    value: float


def read_accept_lengths(texts: Sequence[str]) -> tuple[AcceptLength, ...]:
    """Read ``3=2.4`` and ``3/1/4=2.4`` (steps, topk, verify tokens).

    Raises:
        SpecmapError: something else, no possible length, or two for the same.
    """
    found: dict[tuple[int, tuple[int, int] | None], AcceptLength] = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            numbers = [int(part) for part in key.split("/")]
            length = float(value)
        except ValueError:
            numbers, length = [], 0.0
        if len(numbers) not in (1, 3) or min(numbers) < 1:
            raise SpecmapError(
                f"--accept-length {text}: expected STEPS=VALUE or STEPS/TOPK/TOKENS=VALUE"
            )
        if not 1 <= length < float("inf"):
            raise SpecmapError(
                f"--accept-length {text}: a step accepts one token at least; expected 1 or more"
            )
        rest = (numbers[1], numbers[2]) if len(numbers) == 3 else None
        if rest is not None and length > rest[1]:
            raise SpecmapError(f"--accept-length {text}: a step verifies {rest[1]} tokens at most")
        if (numbers[0], rest) in found:
            raise SpecmapError(f"--accept-length {text}: {key} is given twice")
        found[numbers[0], rest] = AcceptLength(numbers[0], rest, length)
    return tuple(found.values())


def states_of(cell: Cell) -> Mapping[PhaseName, State] | None:
    """Return how each phase of a cell runs, None where a verdict is open."""
    found = {}
    for phase in cell.phases:
        if phase.name not in CYCLE or phase.verdict is Verdict.NOT_RUN:
            continue
        if phase.verdict not in STATES:
            return None
        found[phase.name] = STATES[phase.verdict]
    return found


def said(work: Work) -> str:
    """Write steps, topk and tokens as ``3/1/4``."""
    return "/".join("-" if part is None else str(part) for part in work)
