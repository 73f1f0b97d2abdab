"""Graph coverage: flags that decide or lie, decisions taken twice, passes without a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from specmap.codemap.finding import Match, Step
from specmap.codemap.graph import (
    Arm,
    Assignment,
    CodeMap,
    Decision,
    DoubleDecision,
    Flag,
    FlagStatus,
    Guard,
    Phase,
    Worker,
)
from specmap.codemap.rule import Confidence, takes
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict
from specmap.lint.detectors.selecting import (
    DECODE_PHASES,
    clip,
    own_guards,
    phases_of,
    place,
    routes,
    strings,
)

# Two decisions that differ in more terms than this may be about two different runners.
_ALIKE = 2
_Site = tuple[str, int]  # a function and a line of it
_Pair = tuple[Decision, tuple[str, ...], Decision, tuple[str, ...]]


@takes(votes=list)
def constant_flag(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A flag that chooses the path of a decode phase is one constant for every batch."""
    deciding = {(d.holder, phase) for d in routes(codemap) for phase in d.phases}
    fallbacks = _fallbacks(codemap)
    for _, phase in phases_of(codemap):
        deciding |= {(holder, phase.name) for arm in phase.arms for holder, _ in arm.chain}
    callers: dict[str, set[str]] = {}
    for edge in codemap.edges:
        for callee in edge.callees:
            callers.setdefault(callee, set()).add(edge.caller)
    votes = strings(parameters, "votes")
    for flag in codemap.flags:
        if flag.status is not FlagStatus.CONSTANT or not flag.decides:
            continue
        # A vote is stored on the batch, whoever reads it; a local flag of a decode phase is
        # tested here or handed back to the pass that called.
        local = flag.name not in votes and flag.phase in DECODE_PHASES
        near = {flag.holder} | (callers.get(flag.holder, set()) if local else set())
        here = tuple(
            p
            for p in DECODE_PHASES
            if (flag.holder, p) in deciding or (p == flag.phase and near & _at(deciding, p))
        )
        phases = tuple(phase for phase in here if phase == flag.phase) or here
        phases = tuple(p for p in phases if (flag.holder, p) not in fallbacks)
        if not phases or own_guards(flag.guards, flag.holder):
            continue
        path = "graph" if flag.value else "eager"
        yield Match(
            span=flag.span,
            holder=flag.holder,
            anchor=f"{flag.name} = {flag.text}",
            message=f"{flag.name} is {flag.text} for every batch, so "
            f"{', '.join(phases)} always takes the {path} path",
            phases=phases,
            workers=flag.workers,
        )


def _fallbacks(codemap: CodeMap) -> set[tuple[str, PhaseName]]:
    """Return functions that a phase gets to only after another function decided about it.

    What they choose from there on is not what takes the phase out of its graph.
    """
    asking = {(d.holder, phase) for d in routes(codemap) for phase in d.phases}
    asking |= {(f.holder, PhaseName(f.phase)) for f in codemap.flags if _was_asked(f)}
    first: set[tuple[str, PhaseName]] = set()
    later: set[tuple[str, PhaseName]] = set()
    for _, phase in phases_of(codemap):
        for arm in phase.arms:
            asked = False
            for holder, _ in arm.chain:
                (later if asked else first).add((holder, phase.name))
                asked = asked or (holder, phase.name) in asking
    return later - first


def _was_asked(flag: Flag) -> bool:
    """Tell whether a function chooses a decode phase's path by what another one has asked."""
    given = flag.status in (FlagStatus.COMPUTED, FlagStatus.PROPAGATED)
    return flag.decides and given and flag.phase in DECODE_PHASES


def _at(deciding: set[tuple[str, PhaseName]], phase: PhaseName) -> set[str]:
    return {holder for holder, where in deciding if where is phase}


def constant_report(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """The reported flag is a constant although the pass that it speaks of can go both ways."""
    phases = {(w.id, p.name): p for w in codemap.workers for p in w.phases}
    branches = {(e.caller, e.span.line): _branch(e.caller, e.guards) for e in codemap.edges}
    for flag in codemap.flags:
        if (
            flag.status is not FlagStatus.CONSTANT
            or flag.decides
            or flag.phase not in set(PhaseName)
        ):
            continue
        name = PhaseName(flag.phase)
        known = [phases[w, name] for w in flag.workers if (w, name) in phases]
        if any(_belies(flag, phase, branches) for phase in known):
            yield Match(
                span=flag.span,
                holder=flag.holder,
                anchor=f"{flag.name}={flag.text}",
                message=f"{flag.name} is reported as {flag.text} whatever {name} did",
                phases=(name,),
                workers=flag.workers,
            )


_Branch = frozenset[tuple[int, bool]]


def _branch(holder: str, guards: tuple[Guard, ...]) -> _Branch:
    """Return the tests of a function that a place stands under."""
    return frozenset((guard.span.line, guard.branch) for guard in own_guards(guards, holder))


def _belies(flag: Flag, phase: Phase, branches: Mapping[tuple[str, int], _Branch]) -> bool:
    """Whether the phase can end in another way than the constant says.

    A flag speaks of the passes that are run in its own branch, where there are such.
    """
    own = _branch(flag.holder, flag.guards)
    beside = [
        arm
        for arm in phase.arms
        if any(
            name == flag.holder and branches.get((name, line)) == own for name, line in arm.chain
        )
    ]
    graph = any(arm.kind is not SinkKind.EAGER for arm in beside or phase.arms)
    eager = any(arm.kind is SinkKind.EAGER for arm in beside or phase.arms)
    return (graph and phase.verdict is not Verdict.EAGER) if not flag.value else eager


def dropped_flag(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """What a target pass says about itself is dropped; the caller is told something else."""
    target = {p.name for w in codemap.workers for p in w.phases if p.role == "target"}
    passes = {
        (edge.caller, edge.span.line, phase)
        for edge in codemap.edges
        for phase in edge.phases
        if phase in target
    }
    for flag in codemap.flags:
        if flag.status is not FlagStatus.DROPPED or flag.source_line is None:
            continue
        if (flag.holder, flag.source_line, flag.phase) not in passes:
            continue
        told = flag.result_source_line or flag.result_line
        instead = f"; the caller is told the one of line {told}" if told else ""
        yield Match(
            span=flag.span,
            holder=flag.holder,
            anchor=flag.text,
            message=f"the {flag.phase} pass says whether it replayed ({flag.name}) and that is "
            f"dropped{instead}",
            phases=(PhaseName(flag.phase),),
            workers=flag.workers,
        )


def decided_twice(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """One pass, two decisions, and one of them tests what the other does not."""
    known = {(d.span.file, d.span.line): d for d in routes(codemap)}
    pairs: dict[_Pair, list[DoubleDecision]] = {}
    for double in codemap.doubles:
        ends = [known.get((s.file, s.line)) for s in (double.first, double.second)]
        if any(end is None or double.phase not in end.phases for end in ends):
            continue
        first, second = (end for end in ends if end is not None)
        only = [
            (first, _telling(double.only_first, first)),
            (second, _telling(double.only_second, second)),
        ]
        if any(terms for _, terms in only):
            # The decision of fewer phases is the worker's own.
            (here, extra), (there, missing) = sorted(
                only, key=lambda o: (len(o[0].phases), o[0].id)
            )
            pairs.setdefault((here, extra, there, missing), []).append(double)
    for pair in sorted(pairs, key=lambda pair: (pair[0].id, pair[2].id)):
        yield _twice(*pair, pairs[pair])


def _telling(terms: tuple[str, ...], decision: Decision) -> tuple[str, ...]:
    """The terms that test more than whether the runner that is asked exists."""
    asked = [term.text for term in decision.terms]
    bare = [(term, term.removesuffix(" is not None")) for term in terms]
    return tuple(t for t, name in bare if not any(text.startswith(f"{name}.") for text in asked))


def _twice(
    decision: Decision,
    extra: tuple[str, ...],
    other: Decision,
    missing: tuple[str, ...],
    doubles: list[DoubleDecision],
) -> Match:
    """One finding for a pair of places, at the worker's own decision."""
    here, there = decision.span, other.span
    phases = tuple(phase for phase in PhaseName if phase in {d.phase for d in doubles})
    differs = " and ".join(
        [f"only {place(there)} tests {clip(text)}" for text in missing]
        + [f"only {place(here)} tests {clip(text)}" for text in extra]
    )
    return Match(
        span=here,
        holder=decision.holder,
        anchor=decision.text,
        message=f"whether {', '.join(phases)} replays is decided here and again at "
        f"{place(there)}: {differs}",
        phases=phases,
        workers=tuple(sorted({d.worker for d in doubles})),
        related=(Step(there, "the other decision"),),
        confidence=Confidence.LOW if len(missing) + len(extra) > _ALIKE else None,
    )


def bypassed_runner(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A pass of the decode cycle reaches the model without asking any graph runner."""
    of_prefill = _asking_for_prefill(codemap)
    # A constant in place of the question is another rule's finding; one under a test is none.
    constant = {
        f.holder
        for f in codemap.flags
        if f.decides and f.status is FlagStatus.CONSTANT and not own_guards(f.guards, f.holder)
    }
    every = {d.holder for d in routes(codemap)} | constant
    holders = every - (of_prefill - constant)
    # Calls that others get to after they asked are not what leaves the runner out.
    shared = {
        site
        for _, arm in _arms(codemap)
        if any(holder in holders for holder, _ in arm.chain)
        for site in arm.chain
    }
    found: dict[_Site, list[tuple[Worker, PhaseName]]] = {}
    for worker, phase in phases_of(codemap):
        # A phase that keeps a graph has asked for it: what else it asks is of no account.
        keeps = any(arm.kind is SinkKind.GRAPH for arm in phase.arms)
        asked = every if keeps else holders
        for arm in phase.arms:
            if arm.kind is not SinkKind.EAGER:
                continue
            if not any(h in asked for h, _ in arm.chain):
                site = _site(arm.chain, worker, shared)
                found.setdefault(site, []).append((worker, phase.name))
    edges = {(e.caller, e.span.line): e for e in codemap.edges}
    spans = {f.id: f.span for f in codemap.functions}
    for (holder, line), where in sorted(found.items()):
        edge = edges.get((holder, line))
        phases = tuple(p for p in DECODE_PHASES if p in {name for _, name in where})
        yield Match(
            span=edge.span if edge else spans[holder],
            holder=holder,
            anchor=edge.text if edge else "",
            message=f"{', '.join(phases)} runs the model here without asking a graph runner",
            phases=phases,
            workers=tuple(sorted({worker.id for worker, _ in where})),
        )


def _asking_for_prefill(codemap: CodeMap) -> set[str]:
    """Return the functions that decide last on prefill's ways to a piecewise graph.

    Those on a way to a graph, and those that have asked before, ask another runner.
    """
    deciding = {decision.holder for decision in routes(codemap)}
    piecewise: set[str] = set()
    for name, arm in _arms(codemap):
        if arm.kind is SinkKind.PIECEWISE and name not in DECODE_PHASES:
            piecewise.update([h for h, _ in arm.chain if h in deciding][-1:])
    whole = {h for _, arm in _arms(codemap) if arm.kind is SinkKind.GRAPH for h, _ in arm.chain}
    return piecewise - whole


def _arms(codemap: CodeMap) -> Iterator[tuple[PhaseName, Arm]]:
    """Yield every way that a phase of a worker can end."""
    for worker in codemap.workers:
        for phase in worker.phases:
            yield from ((phase.name, arm) for arm in phase.arms)


def _site(chain: Sequence[_Site], worker: Worker, shared: set[_Site]) -> _Site:
    """The last call of a chain that stands in the worker's own code and is not ``shared``."""
    own = {worker.id, *worker.mro, *worker.owns}
    folder = worker.span.file.rpartition("/")[0]
    inside = [
        (holder, line)
        for holder, line in chain
        if holder.rpartition(".")[0] in own or holder.startswith(f"{folder}/")
    ]
    return next((site for site in reversed(inside) if site not in shared), [chain[0], *inside][-1])


def unused_graph(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A worker captures a graph that no pass replays, or throws the captured graph away."""
    lines = {c.id: {c.id, *c.mro} for c in codemap.classes}
    captured: dict[str, set[str]] = {}
    for entry in codemap.hazards.captured_modes:
        captured.setdefault(entry.runner, set()).add(entry.mode)
    runners = {d.holder.rpartition(".")[0] for d in codemap.decisions if d.kind == "can_run"}
    runners |= set(captured)
    found: dict[tuple[Assignment, str], set[tuple[str, PhaseName]]] = {}
    for attribute in codemap.attributes:
        made = [a for a in attribute.assignments if _builds(a, runners, lines)]
        kinds = {base for a in made for kind in a.types if kind for base in lines.get(kind, {kind})}
        modes = {mode for kind in kinds for mode in captured.get(kind, ())}
        owner, _, name = attribute.name.rpartition(".")
        gone = next((a for a in attribute.assignments if _drops(a, made)), None)
        if gone is not None:
            yield _thrown_away(gone, name, codemap, kinds)
        for worker in codemap.workers if made else ():
            if owner not in (worker.id, *worker.mro, *worker.owns):
                continue
            used = {h.rpartition(".")[0] for p in worker.phases for a in p.arms for h, _ in a.chain}
            eager = {
                (worker.id, p.name)
                for w, p in phases_of(codemap)
                if w == worker and not any(arm.kind is SinkKind.GRAPH for arm in p.arms)
                # Nobody knows what a runner captures that stores no mode.
                if (modes & set(p.forward_modes) if modes else p.verdict is Verdict.EAGER)
            }
            if eager and not kinds & used:
                found.setdefault((made[0], name), set()).update(eager)
    for (made_at, name), where in found.items():
        why = ("is captured and never replayed, and", "has no other graph")
        yield _never_replayed(made_at, name, why, where)


def _builds(assignment: Assignment, runners: set[str], lines: dict[str, set[str]]) -> bool:
    kinds = [kind for kind in assignment.types if kind]
    return bool(kinds) and all(lines.get(kind, {kind}) & runners for kind in kinds)


def _drops(stored: Assignment, made: Sequence[Assignment]) -> bool:
    """Tell whether a store replaces the runner that was made before by None, whatever the test."""
    if stored.types != (None,) or stored.restored_line or stored.context_manager or not made:
        return False
    own = set(own_guards(stored.guards, stored.holder))
    if stored.from_outside:
        return not own
    before = [a for a in made if a.holder == stored.holder and a.span < stored.span]
    return any(own <= set(own_guards(a.guards, a.holder)) for a in before)


def _thrown_away(gone: Assignment, name: str, codemap: CodeMap, kinds: set[str]) -> Match:
    cls = gone.holder.rpartition(".")[0]
    served = {
        (worker.id, phase.name)
        for worker, phase in phases_of(codemap)
        if not gone.from_outside or cls in (worker.id, *worker.mro, *worker.owns)
        if any(h.rpartition(".")[0] in kinds for arm in phase.arms for h, _ in arm.chain)
    }
    why = f"is set to {gone.value} after its graph was captured, so"
    return _never_replayed(gone, name, (why, "never replays it"), served)


def _never_replayed(
    stored: Assignment, name: str, why: tuple[str, str], where: set[tuple[str, PhaseName]]
) -> Match:
    """One finding at a store of a runner; ``why`` is said before and after the phases."""
    phases = tuple(p for p in DECODE_PHASES if p in {phase for _, phase in where})
    before, after = why
    return Match(
        span=stored.span,
        holder=stored.holder,
        anchor=f"{name} = {stored.value}",
        message=f"{name} {before} {', '.join(phases) or 'a phase'} {after}",
        phases=phases,
        workers=tuple(sorted({worker for worker, _ in where})),
    )
