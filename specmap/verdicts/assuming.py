"""A launch whose model is not given: judged twice, with and without a plain one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specmap.codemap.outcome import (
    Assumption,
    BatchRange,
    Captured,
    Outcome,
    PhaseOutcome,
    WorkerOutcome,
)
from specmap.codemap.verdict import Verdict
from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.tables import NAME_OF_DRAFT, NAME_OF_MODEL, Inputs
from specmap.verdicts.words import VerdictWords

_LABELS = {"model": NAME_OF_MODEL, "draft": NAME_OF_DRAFT}


def with_plain_models(inputs: Inputs, words: VerdictWords, *, draft: bool) -> Inputs:
    """Return the inputs with a plain model for each config that is not given.

    ``draft`` says whether the launch names a draft model.
    """
    model, head = inputs.model_config, inputs.draft_config
    return replace(
        inputs,
        model_config=words.plain_model if model is None else model,
        draft_config=_plain_draft(inputs, words) if draft and head is None else head,
    )


def _plain_draft(inputs: Inputs, words: VerdictWords) -> Mapping[str, object]:
    """Return the config.json of a plain draft: for some algorithms it is a head of a class."""
    for (setting, value), name in words.plain_drafts.items():
        if inputs.values.get(setting) == value:
            return {**words.plain_model, words.config_class: [name]}
    return words.plain_model


def assumed_models(given: Inputs, taken: Inputs, words: VerdictWords) -> tuple[Assumption, ...]:
    """Return what is assumed of the models, with the option that says otherwise."""
    new: Mapping[str, bool] = {
        "model": given.model_config is not taken.model_config,
        "draft": given.draft_config is not taken.draft_config,
    }
    return tuple(
        Assumption("", words.models[which], words.options[_LABELS[which]])
        for which in new
        if new[which]
    )


def doubted(assumed: Outcome, evaluator: Evaluator) -> bool:
    """Whether a refusal under assumptions may be one of the assumed model alone."""
    refusal = assumed.refusal
    return refusal is not None and (not refusal.certain or evaluator.facts().refused is not None)


def marked(sure: Outcome, assumed: Outcome, models: tuple[Assumption, ...]) -> Outcome:
    """Return the outcome under the assumptions, with what rests on them marked.

    ``sure`` is the outcome without them: what it says for certain is not marked. Assumptions
    that would stop the start do not fit the launch, and are dropped.
    """
    if sure.refusal is not None:
        return sure
    if assumed.refusal is not None:
        span = assumed.refusal.span
        note = f"nothing is assumed of the model: {span.file}:{span.line} would refuse a plain one"
        return replace(sure, notes=(*sure.notes, note))
    before = {w.id: w for w in sure.workers}
    workers = tuple(_worker(before.get(w.id), w) for w in assumed.workers)
    return replace(
        assumed,
        may_refuse=sure.may_refuse,
        workers=workers,
        captured=_captured(sure.captured, assumed.captured),
        assumptions=(*models, *assumed.assumptions),
    )


def _worker(before: WorkerOutcome | None, now: WorkerOutcome) -> WorkerOutcome:
    rests = now.certain and not (before is not None and before.certain)
    phases = {p.name: p for p in before.phases} if before is not None and not rests else {}
    found = tuple(_phase(phases.get(phase.name), phase) for phase in now.phases)
    return replace(now, assumed=rests, phases=found)


def _phase(before: PhaseOutcome | None, now: PhaseOutcome) -> PhaseOutcome:
    known = before.ranges if before is not None else ()
    return replace(
        now,
        assumed=_differs(now.verdict, before.verdict if before is not None else None),
        ranges=tuple(replace(part, assumed=_new(known, part)) for part in now.ranges),
    )


def _differs(now: Verdict, before: Verdict | None) -> bool:
    return now is not Verdict.UNKNOWN and now is not before


def _new(known: tuple[BatchRange, ...], part: BatchRange) -> bool:
    """Whether a range holds a size whose verdict was not the same before."""
    said = [old for old in known if old.verdict is part.verdict]
    inside = any(
        old.first <= part.first
        and (old.last is None or (part.last is not None and part.last <= old.last))
        for old in said
    )
    return part.verdict is not Verdict.UNKNOWN and not inside


def _captured(before: Captured, now: Captured) -> Captured:
    return replace(now, assumed=now.sizes is not None and before.sizes is None)
