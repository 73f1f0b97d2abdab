"""The headline of a launch: what the release's own code makes of the command."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from specmap.codemap.explanation import Alternative, SettingChange
from specmap.codemap.launch import Plain
from specmap.codemap.outcome import CYCLE, Outcome, PhaseOutcome, WorkerOutcome
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.report.page.phases import said
from specmap.report.page.sentence import SHOWN, Headline, explained, listed, sentence
from specmap.report.page.subject import Subject
from specmap.report.page.ways import eager_ways


def of_launch(subject: Subject, outcome: Outcome) -> Headline:
    """Return what a launch says."""
    if outcome.refusal is not None:
        made = Headline("bad", f"The server refuses to start: {outcome.refusal.message}.")
        made.because.append(("what is raised", outcome.refusal.span))
        return made
    if not outcome.workers and outcome.partial:
        text = f"No worker is found for this command, and {outcome.partial}."
        return Headline("unknown", text)
    if not outcome.workers:
        return Headline("warn", "No speculative worker runs: the command does not speculate.")
    worker = outcome.worker
    if worker is None:
        return _candidates(outcome)
    failing = [concern for concern in outcome.concerns if concern.failing]
    made = _of_worker(worker, outcome, subject)
    if made.level == "ok" and failing:
        made = Headline("warn", f"{sentence(failing[0].message)}.")
    unmet = [e for e in outcome.expectations if not e.met]
    if unmet and made.level != "bad":
        first = unmet[0]
        made = Headline("bad", f"{first.phase} was expected {first.expected} and is {first.found}.")
    told = made.text.rstrip(".").lower()
    made.because += [(c.message, c.span) for c in failing if sentence(c.message).lower() != told]
    return made


def changes(made: Headline, subject: Subject, told: Collection[str] = ()) -> None:
    """Say which settings would bring a graph back, as the release's own code has it.

    ``told`` are settings of which it has been said already.
    """
    helped: dict[str, list[str]] = {}
    for phase, found in subject.changes.items():
        for alternative in (one for one in found if not _same(one, found)):
            if any(change.name in told for change in alternative.changes):
                continue
            helped.setdefault(_change(alternative), []).append(phase.value)
        if not found and not told:
            text = f"{phase}: no change of settings that was tried brings the graph back"
            made.because.append((text, None))
    made.todo += [f"{change} for {listed(phases)}" for change, phases in helped.items()]


def _of_worker(worker: WorkerOutcome, outcome: Outcome, subject: Subject) -> Headline:
    size = outcome.batch_size or 1
    cycle = [p for p in worker.phases if p.name in CYCLE and p.verdict is not Verdict.NOT_RUN]
    eager = [p for p in cycle if p.verdict is Verdict.EAGER]
    lost = [p for p in eager if p.could_replay]
    never = [p for p in eager if not p.could_replay]
    unknown = [p for p in cycle if p.verdict is Verdict.UNKNOWN]
    if lost:
        made = _lost(worker, lost, size)
        changes(made, subject)
        # A phase whose graph a setting brings back has its reason in the tests above.
        eager = [p for p in eager if not subject.changes.get(p.name)]
    elif any(p.name is PhaseName.VERIFY for p in never):
        made = _without(worker, never, "bad", subject)
    elif unknown:
        made = Headline("unknown", _unknown(worker, unknown))
        _settling(made, unknown, outcome)
        return made
    elif never:
        made = _without(worker, never, "warn", subject)
    else:
        return _good(worker, cycle, outcome)
    if unknown:
        made.text += f" {_unknown(worker, unknown)}"
        _settling(made, unknown, outcome)
    explained(made, subject, worker.name, [p.name for p in eager])
    return made


def _candidates(outcome: Outcome) -> Headline:
    names = ", ".join(worker.name for worker in outcome.workers[:SHOWN])
    made = Headline("unknown", f"It is not known which worker runs: {names} may.")
    made.because += [(said(t), t.span) for w in outcome.workers for t in w.open_terms[:1]]
    made.todo += [f"settle {what}" for what in outcome.missing[:SHOWN]]
    return made


def _lost(worker: WorkerOutcome, lost: Sequence[PhaseOutcome], size: int) -> Headline:
    names = listed([phase.name.value for phase in lost])
    verb = "runs" if len(lost) == 1 else "run"
    made = Headline(
        "bad", f"{names} of {worker.name} {verb} eager at a batch of {size}, though a graph could "
        "replay.",
    )  # fmt: skip
    for phase in lost:
        made.because += [(f"{phase.name}: {said(t)}", t.span) for t in phase.deciding[:2]]
    return made


def _without(
    worker: WorkerOutcome, never: Sequence[PhaseOutcome], level: str, subject: Subject
) -> Headline:
    """Say which phases no setting brings under a graph."""
    names = listed([phase.name.value for phase in never])
    verb = "has" if len(never) == 1 else "have"
    made = Headline(
        level,
        f"{names} of {worker.name} {verb} no way to a graph in this source, whatever the settings.",
    )
    phases = {p.name: p for w in subject.codemap.workers if w.id == worker.id for p in w.phases}
    for one in never:
        ways = eager_ways(phases[one.name]) if one.name in phases else []
        made.because += [
            (f"{one.name}: {text}, and no way from there leads to a graph", place)
            for text, place in ways[:SHOWN]
        ] or [(f"{one.name} runs eager here", one.span)]
    return made


def _unknown(worker: WorkerOutcome, unknown: Sequence[PhaseOutcome]) -> str:
    names = listed([phase.name.value for phase in unknown])
    verb = "replays" if len(unknown) == 1 else "replay"
    return f"It is not known whether {names} of {worker.name} {verb} a graph."


def _settling(made: Headline, unknown: Sequence[PhaseOutcome], outcome: Outcome) -> None:
    """Say what is open of phases, and what would settle it."""
    for phase in unknown:
        made.because += [(f"{phase.name}: {said(t)}", t.span) for t in phase.open_terms[:2]]
        made.because += [(f"{phase.name}: {phase.note}", None)] if phase.note else []
    made.todo += [f"settle {what}" for what in outcome.missing[:SHOWN]]


def _good(worker: WorkerOutcome, cycle: Sequence[PhaseOutcome], outcome: Outcome) -> Headline:
    size = outcome.batch_size or 1
    names = [phase.name.value for phase in cycle]
    if not names:
        return Headline("warn", f"{worker.name} runs no forward in its decode cycle.")
    verb = "replays its graph" if len(names) == 1 else "replay their graphs"
    made = Headline(
        "ok",
        f"{listed(names)} of {worker.name} {verb} at a batch of {size}: the graph is not the "
        "cause.",
    )
    made.todo += _elsewhere(size, outcome.captured.tokens_per_request)
    other = [p for p in worker.phases if p.name not in CYCLE and p.verdict is Verdict.EAGER]
    if other:
        eager = listed([phase.name.value for phase in other])
        verb = "runs" if len(other) == 1 else "run"
        text = f"{eager} {verb} eager, as is usual: once a request, not once a cycle"
        made.because.append((text, None))
    if any(phase.assumed for phase in cycle):
        made.because.append(("it holds for the model that is assumed (--model-config)", None))
    return made


def _elsewhere(size: int, tokens: int | None) -> list[str]:
    """Say where the time of a cycle may go that replays: docs/not-the-graph.md in short."""
    wide = f" ({size} x {tokens} = {size * tokens} tokens a step here)" if tokens else ""
    return [
        "record what runs (specmap trace --live -- COMMAND): it tells the time of a cycle and how "
        "many tokens are accepted",
        "a low accept length is the draft model's: specmap trace read RUN --baseline-tps N says "
        "below which one speculation loses",
        f"at many requests the work of verify is the cost{wide}: fewer draft tokens, topk 1",
        "if the accept length fell after an update, a replay may compute something else: see "
        "whether it differs with --disable-cuda-graph",
        "all of it, with cases: docs/not-the-graph.md",
    ]


def _change(alternative: Alternative) -> str:
    return f"{' and '.join(map(_one, alternative.changes))}: {alternative.verdict}"


def _one(change: SettingChange) -> str:
    if change.removed:
        return f"leave out {change.name} (now {_value(change.old)})"
    return f"set {change.name} to {_value(change.new)} (now {_value(change.old)})"


def _same(alternative: Alternative, found: Sequence[Alternative]) -> bool:
    """Whether a switch is flipped that can be left out as well."""
    changes = alternative.changes
    if len(changes) != 1 or changes[0].removed or not isinstance(changes[0].new, bool):
        return False
    left_out = replace(changes[0], new=None, removed=True)
    return any(one.changes == (left_out,) and one.verdict == alternative.verdict for one in found)


def _value(value: Plain) -> str:
    return value if isinstance(value, str) else repr(value)
