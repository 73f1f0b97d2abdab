"""Random launches: no crash, and a further fact never turns a definite verdict into another.

``SPECMAP_RANDOM_LAUNCHES`` sets how many argument sets are tried for each release.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from specmap.codemap.outcome import BatchRange, Outcome
from specmap.codemap.verdict import Verdict
from specmap.report.options import RenderOptions
from specmap.report.outcome_json import render_outcome_json
from specmap.report.outcome_text import render_outcome
from tests.releases.launches import evaluate
from tests.releases.test_launch_properties import COUNT, launch_fields, more_and_more
from tests.releases.verdicts import judged, with_plain

pytestmark = pytest.mark.releases


def _definite(found: Outcome) -> dict[str, str]:
    """Return what an outcome says for certain: the worker, and the verdicts of its phases."""
    if found.worker is None:
        return {}
    said = {"worker": found.worker.name}
    for phase in found.worker.phases:
        for part in phase.ranges:
            if part.verdict is not Verdict.UNKNOWN:
                said[f"{phase.name} from bs {part.first}"] = part.verdict.value
    return said


def _contradictions(before: Outcome, after: Outcome) -> list[str]:
    """Return the definite verdicts that a further fact changed."""
    if after.refusal is not None:
        foreseen = {refusal.span for refusal in before.may_refuse}
        known = before.refusal is not None or after.refusal.span in foreseen
        return [] if known else [f"refused without warning: {after.refusal}"]
    if before.refusal is not None:
        return ["no longer refused"]
    found = []
    sure = [w for w in before.workers if before.worker is not None and not w.assumed]
    for worker in sure:
        for phase in worker.phases:
            new = [p for w in after.workers for p in w.phases if p.name == phase.name]
            for part in phase.ranges:
                if part.assumed:
                    continue
                for size in {part.first, part.last or part.first}:
                    now = [r.verdict for p in new for r in p.ranges if _holds(r, size)]
                    if part.verdict is not Verdict.UNKNOWN and set(now) - {part.verdict}:
                        found.append(f"{phase.name} at bs {size}: {part.verdict} became {now}")
    for worker in sure:
        names = [worker.name for worker in after.workers]
        found += [f"{worker.name} became {names}"] * (names != [worker.name])
    return found


def _holds(part: BatchRange, size: int) -> bool:
    return part.first <= size and (part.last is None or size <= part.last)


@pytest.mark.parametrize("release", ["0.5.9", "0.5.12", "0.5.23"])
def test_a_further_fact_only_makes_more_definite(release: str) -> None:
    rng = random.Random(f"verdicts {release}")
    fields = launch_fields(release)
    definite = 0
    for _ in range(COUNT):
        before: Outcome | None = None
        for inputs in more_and_more(rng, fields)[::2]:
            found = judged(release, evaluate(release, inputs))
            assert render_outcome(found, RenderOptions())
            assert render_outcome_json(found)
            if before is not None:
                assert _contradictions(before, found) == [], inputs
            before = found
        assert before is not None
        definite += bool(before.refusal or _definite(before))
    assert definite > COUNT // 4


@pytest.mark.parametrize("release", ["0.5.9", "0.5.12", "0.5.23"])
def test_no_model_changes_what_is_not_marked_as_assumed(release: str) -> None:
    rng = random.Random(f"assumed {release}")
    fields = launch_fields(release)
    for _ in range(max(COUNT // 4, 2)):
        *_, full = more_and_more(rng, fields)
        bare = with_plain(release, replace(full, model_config=None, draft_config=None))
        after = judged(release, evaluate(release, full))
        assert _contradictions(bare, after) == [], full
