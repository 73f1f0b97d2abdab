"""Phases that a change takes out of their graph, and the changed lines that did it.

Two maps say that a phase lost its graph; which of the changed lines took it away is read from
what the decision about that phase depends on. Where the map lost track on the way, it is not
known whether the graph is lost, and that is what is said. What other rules say about the same
loss at lines that nobody touched only repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from specmap.codemap.condition import evaluate
from specmap.codemap.finding import Finding, FindingStatus, LintReport, Match, Step, fingerprint
from specmap.codemap.graph import CallEdge, CodeMap, EdgeStatus, Phase, Worker
from specmap.codemap.rule import Confidence, Rule
from specmap.codemap.source import Span, qualname_of
from specmap.codemap.verdict import PhaseName, SinkKind
from specmap.compare.asked import ReadText
from specmap.compare.matching import renamed
from specmap.compare.renames import Renames
from specmap.compare.untold import Untold, told, untold
from specmap.lint.detectors.selecting import DECODE_PHASES, clip, names, place
from specmap.lint.engine import order
from specmap.lint.hunks import Hunk, hunks
from specmap.lint.rulebook import GRAPH_LOST, GRAPH_UNTOLD
from specmap.scan.vocabulary import load_vocabulary

# A call this many steps away from a decision is no part of it.
_STEPS = 3
_DECIDES, _IN_DECIDER, _ASKED, _MAKES, _ON_THE_WAY, _ELSEWHERE = range(6)
_LISTED = 8
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Loss:
    """A phase of one worker that lost its graph; ``now`` says how it ends instead.

    ``broken`` is a call on its way that calls nothing any more; ``untold`` says behind what the
    graph may still be.
    """

    phase: PhaseName
    was: Phase
    worker: Worker
    is_: Phase
    broken: CallEdge | None = None
    untold: tuple[Untold, ...] = ()

    @property
    def now(self) -> str:
        """The ways that are left, in words."""
        if self.broken is not None:
            return f"nothing: {self.broken.text} is not defined"
        kinds = {arm.kind for arm in self.is_.arms} - {SinkKind.GRAPH}
        return " or ".join(kind.value for kind in SinkKind if kind in kinds)


def lost(old: CodeMap, new: CodeMap, renames: Renames) -> list[Loss]:
    """Return the decode phases that could replay a graph in ``old`` and cannot in ``new``.

    A graph that only a runner has which a setting swaps in is none that both could replay.
    """
    off = dict.fromkeys(load_vocabulary().swaps.values(), False)
    before = {renames.qualname(worker.name): worker for worker in old.workers}
    found = []
    for worker in new.workers:
        was = {p.name: p for p in before[worker.name].phases} if worker.name in before else {}
        for phase in worker.phases:
            if phase.name not in was or phase.name not in DECODE_PHASES:
                continue
            if _replays(was[phase.name], off) and not _replays(phase, off):
                first = was[phase.name]
                broken = None if phase.arms else _broken(first, old, new, renames)
                hidden = () if broken else untold(first, phase, (old, new), renames)
                # A phase that is not run any more has lost nothing, unless it was meant to run.
                if phase.arms or broken or hidden:
                    found.append(Loss(phase.name, first, worker, phase, broken, hidden))
    return found


def _broken(was: Phase, old: CodeMap, new: CodeMap, renames: Renames) -> CallEdge | None:
    """Return a call on the way to a phase's graph that calls nothing any more."""
    graphs = [arm.chain for arm in was.arms if arm.kind is SinkKind.GRAPH]
    sites = {site for chain in graphs for site in chain}
    called = {
        (renames.qualname(qualname_of(edge.caller)), renamed(edge.text, renames.everything))
        for edge in old.edges
        if edge.callees and (edge.caller, edge.span.line) in sites
    }
    gone = (edge for edge in new.edges if edge.status is EdgeStatus.UNRESOLVED)
    return next((e for e in gone if (qualname_of(e.caller), e.text) in called), None)


def _replays(phase: Phase, off: Mapping[str, bool]) -> bool:
    graphs = (arm.condition for arm in told(phase).arms if arm.kind is SinkKind.GRAPH)
    return any(evaluate(condition, off) is not False for condition in graphs)


def with_losses(
    report: LintReport,
    maps: tuple[CodeMap, CodeMap],
    sources: tuple[ReadText, ReadText],
    renames: Renames,
    rules: Mapping[str, Rule],
) -> LintReport:
    """Add the phases that lost their graph to a report that knows what the base has.

    ``maps`` and ``sources`` are those of the base and of the change; ``rules`` are those that are
    to speak, by id.
    """
    told_by = {True: GRAPH_UNTOLD in rules, False: GRAPH_LOST in rules}
    losses = [loss for loss in lost(*maps, renames) if told_by[bool(loss.untold)]]
    if not losses:
        return report
    files = {file.file for codemap in maps for file in codemap.files}
    return explain(report, losses, hunks(files, *sources), maps, renames, rules)


def explain(
    report: LintReport,
    losses: Sequence[Loss],
    changes: Sequence[Hunk],
    maps: tuple[CodeMap, CodeMap],
    renames: Renames,
    rules: Mapping[str, Rule],
) -> LintReport:
    """Add one finding for each cause of a loss, and fold what other rules say about it.

    ``maps`` are those of the base and of the change. A loss that a new finding at a changed
    line already names is left to that finding.
    """
    topics = {rules[name].topic for name in (GRAPH_LOST, GRAPH_UNTOLD) if name in rules}
    # A finding about a whole function stands at no line of the change.
    whole = {function.span for function in maps[1].functions}
    same = [f for f in report.new if f.rule.topic in topics and f.match.phases]
    told = [
        f
        for f in same
        if f.match.span not in whole
        if any(hunk.overlaps(f.match.span) for hunk in changes)
    ]
    open_ = [loss for loss in losses if not any(_names(f.match, loss) for f in told)]
    causes: dict[tuple[int, tuple[Hunk, ...]], list[Loss]] = {}
    hidden: dict[tuple[Untold, ...], list[Loss]] = {}
    for loss in open_:
        if loss.untold:
            hidden.setdefault(loss.untold, []).append(loss)
        else:
            causes.setdefault(_cause(loss, changes, maps, renames), []).append(loss)
    made = [
        *(_finding(rules[GRAPH_LOST], *cause, those) for cause, those in causes.items()),
        *(_hidden(rules[GRAPH_UNTOLD], maps[1], those) for those in hidden.values()),
    ]
    places = {id(f): _told_at(f, losses, [*told, *made]) for f in same if f not in told}
    kept = [
        replace(f, status=FindingStatus.BASELINED, reason=f"follows from {places[id(f)]}")
        if places.get(id(f))
        else f
        for f in report.findings
    ]
    return replace(report, findings=tuple(sorted([*kept, *made], key=order)))


def _names(match: Match, loss: Loss) -> bool:
    return loss.phase in match.phases and loss.worker.id in (match.workers or (loss.worker.id,))


def _told_at(finding: Finding, losses: Sequence[Loss], causes: Sequence[Finding]) -> str:
    """Return where the loss is told that a finding repeats, "" where it is about something else."""
    own = [loss for loss in losses if _names(finding.match, loss)]
    cause = next((c for c in causes if any(_names(c.match, loss) for loss in own)), None)
    return f"{cause.rule.id} at {place(cause.match.span)}" if cause is not None else ""


def _cause(
    loss: Loss, changes: Sequence[Hunk], maps: tuple[CodeMap, CodeMap], renames: Renames
) -> tuple[int, tuple[Hunk, ...]]:
    """Return the changed lines that the decision depends on most directly, and how directly."""
    if loss.broken is not None:
        edge = loss.broken
        return _DECIDES, (Hunk(edge.span, qualname_of(edge.caller), edge.text),)
    if not changes:
        return _ELSEWHERE, ()
    decider = _Decider(loss, maps, renames)
    ranks = [decider.rank(hunk) for hunk in changes]
    best = min(ranks)
    if best > _MAKES and len(changes) > 1:
        return _ELSEWHERE, tuple(changes)
    return best, tuple(h for h, rank in zip(changes, ranks, strict=True) if rank == best)


class _Decider:
    """What decides about one phase: places, functions, and what they ask."""

    def __init__(self, loss: Loss, maps: tuple[CodeMap, CodeMap], renames: Renames) -> None:
        _, new = maps
        graphs = [arm.chain for arm in loss.was.arms if arm.kind is SinkKind.GRAPH]
        before = {qualname_of(holder) for chain in graphs for holder, _ in chain}
        lost_way = before | {renames.qualname(name) for name in before}
        self.deciders = {n for codemap in maps for n in _deciders(codemap, loss.phase, lost_way)}
        self.spans = list(_spans(loss, new, self.deciders | lost_way))
        self.asked = _asked(maps, self.deciders)
        runners = {name.rpartition(".")[0] for name in self.deciders}
        self.makers = {f"{runner}.__init__" for runner in runners if runner}
        for codemap in maps:
            for attribute in codemap.attributes:
                kinds = {qualname_of(k) for a in attribute.assignments for k in a.types if k}
                if kinds & runners:
                    self.makers |= {qualname_of(a.holder) for a in attribute.assignments}
        chains = [arm.chain for p in (loss.was, loss.is_) for arm in p.arms]
        self.way = {qualname_of(holder) for chain in chains for holder, _ in chain}

    def rank(self, hunk: Hunk) -> int:
        """Return how directly the decision depends on a change; smaller is more."""
        if any(hunk.overlaps(span) for span in self.spans):
            return _DECIDES
        tiers = (self.deciders, self.asked, self.makers, self.way)
        return next((i for i, tier in enumerate(tiers, 1) if hunk.qualname in tier), _ELSEWHERE)


def _spans(loss: Loss, new: CodeMap, own: set[str]) -> Iterator[Span]:
    """Yield the places of the new map that choose how the phase ends, in functions of its graph."""
    for decision in new.decisions:
        if loss.phase in decision.phases and qualname_of(decision.holder) in own:
            yield decision.span
            yield from (term.span for term in decision.terms)
    known = {(qualname_of(holder), line) for arm in loss.was.arms for holder, line in arm.chain}
    sites = {site for arm in loss.is_.arms for site in arm.chain if qualname_of(site[0]) in own}
    for edge in new.edges:
        if (edge.caller, edge.span.line) in sites:
            # A call that the base makes at the same line of the same file is on the way, no more.
            if (qualname_of(edge.caller), edge.span.line) not in known:
                yield edge.span
            yield from (guard.span for guard in edge.guards)


def _deciders(codemap: CodeMap, name: PhaseName, way: set[str]) -> set[str]:
    """Return the functions that decide about a phase's graph, on the way to its replay."""
    owners = {holder.rpartition(".")[0] for holder in way}
    found = {
        qualname_of(d.holder)
        for d in codemap.decisions
        if name in d.phases
        if qualname_of(d.holder) in way
        or (d.kind == "can_run" and qualname_of(d.holder).rpartition(".")[0] in owners)
    }
    flags = {qualname_of(f.holder) for f in codemap.flags if f.decides}
    return found | (flags & way)


def _asked(maps: Sequence[CodeMap], deciders: set[str]) -> set[str]:
    """Return what the deciding functions call, a few steps deep."""
    calls: dict[str, set[str]] = {}
    for codemap in maps:
        for edge in codemap.edges:
            called = calls.setdefault(qualname_of(edge.caller), set())
            called.update(map(qualname_of, edge.callees))
    found: set[str] = set()
    edge_of = deciders
    for _ in range(_STEPS):
        edge_of = {c for name in edge_of for c in calls.get(name, ())} - found - deciders
        found |= edge_of
    return found


def _few(found: Sequence[str]) -> str:
    shown = found if len(found) <= _SHOWN else [*found[: _SHOWN - 1]]
    more = len(found) - len(shown)
    return f"{', '.join(shown)} and {more} more workers" if more else ", ".join(shown)


def _whose(losses: Sequence[Loss]) -> str:
    """Return the phases that are lost, each list with the workers that lost just these."""
    workers: dict[str, list[str]] = {}
    for worker in sorted({loss.worker.id for loss in losses}):
        gone = {loss.phase for loss in losses if loss.worker.id == worker}
        phases = ", ".join(phase for phase in PhaseName if phase in gone)
        workers.setdefault(phases, []).append(worker)
    return " and ".join(f"{p} of {_few(names(ids).split(', '))}" for p, ids in workers.items())


def _hidden(rule: Rule, codemap: CodeMap, losses: Sequence[Loss]) -> Finding:
    first, *others = losses[0].untold
    inside = [
        f
        for f in codemap.functions
        if f.span.file == first.span.file and f.span.line <= first.span.line <= f.span.end_line
    ]
    match = Match(
        span=first.span,
        holder=max(inside, key=lambda f: f.span.line).id
        if inside
        else f"{first.span.file}::<module>",
        anchor=f"graph untold: {first.text}",
        message=f"{_whose(losses)} could replay a graph in the base; whether it still can is not "
        f"known, because the map cannot see behind {clip(first.text)}",
        phases=tuple(p for p in PhaseName if p in {loss.phase for loss in losses}),
        workers=tuple(sorted({loss.worker.id for loss in losses})),
        related=tuple(Step(u.span, f"nor behind {clip(u.text)}") for u in others[:_LISTED]),
    )
    return Finding(rule, match, fingerprint(rule.id, match))


def _finding(rule: Rule, rank: int, changes: tuple[Hunk, ...], losses: Sequence[Loss]) -> Finding:
    first = losses[0]
    phases = tuple(p for p in PhaseName if p in {loss.phase for loss in losses})
    workers = tuple(sorted({loss.worker.id for loss in losses}))
    ends = " or ".join(dict.fromkeys(loss.now for loss in losses))
    message = f"{_whose(losses)} could replay a graph in the base and cannot any more (now {ends})"
    sure = rank < _ELSEWHERE or len(changes) == 1
    at = changes[0] if changes and sure else None
    others = changes[1:] if at else changes
    if at is None:
        message += "; which of the changes did it cannot be told"
    elif others:
        message += "; this change, or another one of those listed, decides"
    match = Match(
        span=at.span if at else first.is_.span,
        holder=f"{at.span.file}::{at.qualname or '<module>'}" if at else first.is_.holder,
        anchor=f"graph lost: {' '.join(phases)}: {clip(at.text) if at else ''}".strip(),
        message=message,
        phases=phases,
        workers=workers,
        related=tuple(Step(h.span, f"also changed: {clip(h.text)}") for h in others[:_LISTED]),
        confidence=Confidence.HIGH if at and not others else Confidence.MEDIUM,
    )
    return Finding(rule, match, fingerprint(rule.id, match))
