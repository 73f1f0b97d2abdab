"""Facts of releases that the scanner was not written with.

``data/unseen.json`` holds, with file and line, what the source of 0.4.7, 0.5.2, 0.5.3, 0.5.4.post3,
0.5.6.post2, 0.5.7, 0.5.10 and later releases says: facts as in ``data/facts.json``,
and launches of Llama or DeepSeek with the worker and the verdicts of draft, verify and draft
extend, or the refusal. ``refusals`` are launches of more releases, which the argument code alone
refuses. The launches, and the facts of 0.5.16, were written down before specmap was asked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specmap.codemap.outcome import Outcome
from specmap.scan.launch.tables import Inputs
from tests.releases.answer_key import Fact, differences
from tests.releases.launches import DEEPSEEK, DRAFT, evaluate
from tests.releases.trees import map_of
from tests.releases.verdicts import inputs, judged, phase

pytestmark = pytest.mark.releases

DATA: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "data" / "unseen.json").read_text("utf-8")
)

# Facts that the map or the verdicts do not meet, each with its reason. One that is met must leave.
UNMET = {
    "0.5.2-tree-pages-flashinfer": "UNKNOWN: a global dict that the runner fills, to no effect",
    "0.5.3-tree": "UNKNOWN: a global dict that the runner fills says whether the model has MLA",
    "0.5.10-layers-v1": "UNKNOWN: the length of a list that a loop fills",
    "0.5.14-dflash-off-full": "UNKNOWN: the runner that a worker takes in place of its graphs",
    "0.5.14-deepep8-max12": "UNKNOWN: a phase's own sizes, where draft and verify capture others",
    "0.5.20-standalone-over-tc": "UNKNOWN: what stands in for a draft's prefill graph",
    "0.5.20-uno-linear": "UNKNOWN: what two runners of one kind ask is too long to be told",
    "0.5.20-uno-tree": "UNKNOWN: the class of what a batch carries, which the runner asks for",
}


def _parameters(key: str) -> list[object]:
    return [
        pytest.param(
            entry,
            id=entry["id"],
            marks=[pytest.mark.xfail(reason=UNMET[entry["id"]])] if entry["id"] in UNMET else [],
        )
        for entry in DATA[key]
    ]


@pytest.mark.parametrize("fact", _parameters("facts"))
def test_fact(fact: Fact) -> None:
    found = differences(fact, map_of(fact["release"]), DATA["facts"])
    assert not found, "\n".join([f"{fact['id']}: {fact['detail']}", *found])


@pytest.mark.parametrize("launch", _parameters("launches"))
def test_launch(launch: dict[str, Any]) -> None:
    found = _outcome(launch)
    if "refused" in launch:
        assert found.refusal is not None, launch["source"]
        assert found.refusal.certain
        assert launch["refused"] in found.refusal.message
        return
    assert found.refusal is None, found.refusal
    assert found.worker is not None, [worker.name for worker in found.workers]
    assert found.worker.name == launch["worker"], launch["source"]
    verdicts = {name: phase(found, name).verdict.value for name in launch["verdicts"]}
    assert verdicts == launch["verdicts"], launch["source"]
    if "sizes" in launch:
        assert list(found.captured.sizes or ()) == launch["sizes"], launch["source"]


@pytest.mark.parametrize("launch", _parameters("refusals"))
def test_refusal(launch: dict[str, Any]) -> None:
    refusal = evaluate(launch["release"], _inputs(launch)).facts().refused
    assert refusal is not None, launch["source"]
    assert refusal.certain
    assert launch["message"] in refusal.message


def _outcome(launch: dict[str, Any]) -> Outcome:
    evaluator = evaluate(launch["release"], _inputs(launch))
    return judged(launch["release"], evaluator, batch=launch.get("batch", ""))


def _inputs(launch: dict[str, Any]) -> Inputs:
    given = inputs(launch["args"], gigabytes=80, sm=launch.get("sm", 90), env=launch.get("env"))
    if architecture := launch.get("draft_architecture"):
        return replace(given, draft_config={**DRAFT, "architectures": [architecture]})
    if launch.get("model") == "deepseek":
        return replace(given, model_config=DEEPSEEK, draft_config=DEEPSEEK)
    return given


def test_unmet_facts_exist() -> None:
    assert set(UNMET) <= {entry["id"] for entries in DATA.values() for entry in entries}
