"""The headline of a recorded run: what its ranks did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from specmap.codemap.event import PhaseStats, RankRun, Run, RunFinding, RunProblem, State
from specmap.codemap.outcome import CYCLE
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.report.page.sentence import SHOWN, Headline, explained, listed, sentence
from specmap.report.page.subject import Subject
from specmap.report.run_text import duration

_REPLAYED = (State.GRAPH, State.PIECEWISE)
_EAGER = (State.EAGER, State.PARTIAL)


def of_run(run: Run, subject: Subject) -> Headline:
    """Return what a run says."""
    failing = [finding for finding in run.findings if finding.failing]
    if not run.ranks or any(f.problem is RunProblem.NO_CYCLE for f in failing):
        text = failing[0].message if failing else "no rank left a record"
        return Headline("unknown", f"The run shows nothing: {text}.")
    made = _replayed(run)
    if failing:
        text, others = _together(failing)
        # Nothing is lost where all replayed: ranks or a launch that differ are to be looked at.
        kept = [(made.text.rstrip("."), None)] if made.level == "ok" else []
        made = Headline("warn" if kept else "bad", f"{text}.")
        made.because += kept
        made.because += [(f.message, _place(f, run)) for f in others[: SHOWN - 1]]
    if made.level in ("bad", "warn"):
        _eager(made, run, subject)
        _limits(made, run, subject)
    elif made.level == "ok":
        _elsewhere(made, run.ranks[0])
    return made


def _together(failing: Sequence[RunFinding]) -> tuple[str, list[RunFinding]]:
    """Say the first finding, with all phases that it holds for; return that and the others."""
    first = failing[0]
    worker, found, rest = first.message.partition(f".{first.phase} ")
    if not (first.phase and found):
        return sentence(first.message), list(failing[1:])
    alike = [f for f in failing if f.message == f"{worker}.{f.phase} {rest}"]
    if len(alike) == 1:
        return sentence(first.message), list(failing[1:])
    names = listed([f.phase for f in alike])
    return f"{names} of {worker} {rest}".rstrip("."), [f for f in failing if f not in alike]


def _place(finding: RunFinding, run: Run) -> Span | None:
    """Return the place of the reason that a finding about a phase tells."""
    reasons = (r for p in _phases(run) if p.phase == finding.phase for r in p.reasons)
    return next((r.span for r in reasons if r.text in finding.message), None)


def _phases(run: Run) -> Iterator[PhaseStats]:
    return (p for rank in run.ranks for p in rank.phases if p.phase in set(CYCLE))


def _replayed(run: Run) -> Headline:
    """Say how the cycles of a run ran."""
    counts: dict[str, Counter[State]] = {}
    for phase in _phases(run):
        counts.setdefault(phase.phase, Counter()).update(phase.counts)
    if not counts:
        return Headline("unknown", "The run has no pass of a decode cycle.")
    said = ", ".join(
        f"{name} in {sum(c[s] for s in _REPLAYED)} of {_ran(c)} passes"
        for name, c in counts.items()
    )
    if any(c[state] for c in counts.values() for state in _EAGER):
        return Headline("warn", f"Some passes ran eager; graphs replayed for {said}.")
    return Headline("ok", f"The graphs are not the cause: they replayed for {said}.")


def _ran(counts: Counter[State]) -> int:
    return sum(count for state, count in counts.items() if state is not State.CAPTURE)


def _eager(made: Headline, run: Run, subject: Subject) -> None:
    """Add why passes of the decode cycle did not replay."""
    eager = [p for p in _phases(run) if any(p.counts.get(state) for state in _EAGER)]
    placed = {span for _, span in made.because}
    for phase in eager:
        reasons = [r for r in phase.reasons[:1] if r.span is None or r.span not in placed]
        made.because += [(f"{phase.phase}: {r.text}", r.span) for r in reasons]
        if not phase.reasons:
            explained(made, subject, phase.worker, [PhaseName(phase.phase)])


def _limits(made: Headline, run: Run, subject: Subject) -> None:
    """Say which limit of the captured sizes all eager passes of a phase were above."""
    for rank in run.ranks:
        for phase in (p for p in rank.phases if p.phase in set(CYCLE)):
            eager = [part.size for part in phase.sizes if part.state in _EAGER]
            for name in subject.limits if eager else ():
                limit = rank.arguments.get(name)
                if isinstance(limit, int) and 0 < limit < min(eager):
                    least, most = min(eager), max(eager)
                    sizes = f"{least}" if least == most else f"{least} to {most}"
                    made.todo.append(
                        f"{name} is {limit} and batches of {sizes} ran eager: raise it to {most}, "
                        "or admit fewer requests"
                    )


def _elsewhere(made: Headline, rank: RankRun) -> None:
    """Add where the time of a cycle goes and what it yields, as the first rank counted it."""
    if rank.decode.median_ns is not None:
        text = f"a decode cycle takes {duration(rank.decode.median_ns)}"
        length = rank.accept.length
        text += f" and yields {length:.2f} tokens a request" if length is not None else ""
        made.because.append((text, None))
    syncs = sorted(rank.syncs, key=lambda sync: -sync.blocked_ns)
    cycles = max(rank.decode.count, 1)
    made.because += [
        (f"{sync.label} waits {duration(sync.blocked_ns // cycles)} a cycle", sync.span)
        for sync in syncs[:2]
        if sync.blocked_ns
    ]
