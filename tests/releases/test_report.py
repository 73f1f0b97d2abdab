"""Pages of real releases: what they hold is what scan, lint and a launch say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from specmap.launched import Launch, judge_launch
from specmap.pipeline import render, scan_tree
from specmap.report.options import RenderOptions
from specmap.report.page.reference import Reference, vectors
from specmap.reported import Request, report
from specmap.review import Request as LintRequest
from specmap.review import lint_tree
from specmap.traced import read_run
from specmap.verdicts.sizes import Sizes
from tests.report.page.shapes import wrong
from tests.report.page.subjects import unpacked
from tests.trace.recorded import MAX_BS_2, RELEASE

pytestmark = pytest.mark.releases

RELEASES = ("0.5.9", "0.5.12", "0.5.23")
LIMIT_BYTES = 3_000_000
COMMAND = (
    "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE "
    "--speculative-draft-model-path d --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4"
)


@cache
def page_of(release: str) -> bytes:
    return report(Request((f"sglang=={release}",))).content


def side_of(page: bytes) -> dict[str, Any]:
    data, _ = unpacked(page)
    assert list(wrong(data, "Page")) == []
    (side,) = data["sides"]
    assert isinstance(side, dict)
    return side


def as_scanned(side: Mapping[str, Any], number: int) -> Any:
    """Return a condition of a page as ``scan -f json`` writes it, atoms by their own record."""
    term = side["terms"][number]
    if isinstance(term, int):
        atom, place = side["atoms"][term], side["atoms"][term]["place"] or {}
        return (atom["text"], atom["kind"], place.get("file"), place.get("line"))
    return [term[0], *(as_scanned(side, inner) for inner in term[1:])]


def in_map(condition: Mapping[str, Any], tree: Any) -> Any:
    if tree[0] == "atom":
        atom = condition["atoms"][tree[1]]
        return (atom["text"], atom["kind"])
    return [tree[0], *(in_map(condition, inner) for inner in tree[1:])]


def without_places(tree: Any) -> Any:
    return tree[:2] if isinstance(tree, tuple) else [tree[0], *map(without_places, tree[1:])]


@pytest.mark.parametrize("release", RELEASES)
def test_the_page_says_what_the_map_says(release: str) -> None:
    side = side_of(page_of(release))
    codemap = scan_tree(f"sglang=={release}")
    known = json.loads(render(codemap, "json", RenderOptions()))
    assert [w["name"] for w in side["workers"]] == [w["name"] for w in known["workers"]]
    for worker, record in zip(side["workers"], known["workers"], strict=True):
        assert worker["selection"] == "open"
        for phase, told in zip(worker["phases"], record["phases"], strict=True):
            assert phase["name"] == told["name"]
            assert phase["verdict"] == (told["verdict"] or "depends")
            assert len(phase["arms"]) == len(told["arms"])
            when = told["graph_when"]
            shown = without_places(as_scanned(side, phase["graphWhen"]))
            assert shown == in_map(when, when["tree"])
    assert {n["full"] for n in side["graph"]["nodes"] if n["kind"] == "function"} >= {
        symbol["symbol"] for w in known["workers"] for p in w["phases"]
        for arm in p["arms"] for symbol in arm["chain"]
    }  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
def test_the_page_has_the_findings_of_lint(release: str) -> None:
    side = side_of(page_of(release))
    linted = lint_tree(LintRequest(f"sglang=={release}")).report
    assert [f["fingerprint"] for f in side["findings"]] == [
        finding.fingerprint for finding in linted.findings
    ]
    assert side["findings"]
    for finding in side["findings"]:
        chunks = side["sources"][finding["place"]["file"]]
        line = finding["place"]["line"]
        assert any(c["line"] <= line < c["line"] + len(c["lines"]) for c in chunks)


@pytest.mark.parametrize("release", RELEASES)
def test_the_page_is_small_and_the_same_every_time(release: str) -> None:
    page = page_of(release)
    assert len(page) < LIMIT_BYTES
    assert report(Request((f"sglang=={release}",))).content == page
    assert str(Path.home()).encode() not in page


@pytest.mark.parametrize("release", RELEASES)
def test_settings_chosen_at_random_reach_every_kind_of_verdict(release: str) -> None:
    """The page's own evaluation is compared with these in tests/page."""
    side = side_of(page_of(release))
    made = list(vectors(side, 1, 40))
    seen = {verdict for one in made for phases in one["expected"] for verdict in phases}
    assert {"GRAPH", "EAGER", "NOT_RUN", "UNKNOWN"} <= seen


@pytest.mark.parametrize("more", ["", " --cuda-graph-max-bs 8 --attention-backend triton"])
@pytest.mark.parametrize("release", ["0.5.9", "0.5.12"])
def test_before_anybody_toggles_the_page_evaluates_to_the_verdicts_of_the_launch(
    release: str, more: str
) -> None:
    launch = Launch(COMMAND + more, gpu_memory=80, sm=90)
    side = side_of(report(Request((f"sglang=={release}",), launch=launch)).content)
    outcome = judge_launch(f"sglang=={release}", launch)
    (worker,) = [w for w in side["workers"] if w["selection"] == "runs"]
    assert outcome.worker is not None
    assert worker["id"] == outcome.worker.id
    number, captured = side["workers"].index(worker), side["launch"]["captured"]
    sizes = Sizes(tuple(captured["sizes"]), tuple(captured["least"]))
    reference = Reference(side)
    for place, (phase, told) in enumerate(
        zip(worker["phases"], outcome.worker.phases, strict=True)
    ):
        assert (phase["name"], phase["verdict"]) == (told.name, told.verdict)
        assert len(phase["ranges"]) == len(told.ranges)
        for part in told.ranges:
            for size in (part.first, part.last or part.first + 100):
                truths: list[bool | None] = [
                    None if atom["size"] is None else sizes.holds(atom["size"], size)
                    for atom in side["atoms"]
                ]
                for value in phase["values"]:
                    if value["source"] != "size":
                        truths[value["atom"]] = value["value"]
                assert reference.verdict(number, place, truths) is part.verdict, (told.name, size)


def test_a_recorded_run_stands_beside_its_release(tmp_path: Path) -> None:
    rank = MAX_BS_2.write(tmp_path)
    made = report(Request((f"sglang=={RELEASE}",), run=tmp_path))
    side = side_of(made.content)
    assert made.failing
    assert side["headline"]["level"] == "bad"
    assert "bs 4 > largest captured 2" in side["headline"]["text"]
    # Its header names no model path, but the server ran.
    assert side["launch"] is None or side["launch"]["refusal"] is None
    (shown,) = side["run"]["ranks"]
    assert shown["name"] == rank
    ran = [w for w in side["workers"] if any(p["observed"]["counts"] for p in w["phases"])]
    assert [w["name"] for w in ran] == [MAX_BS_2.worker]
    verify = next(p for p in ran[0]["phases"] if p["name"] == "verify")
    (read,) = [p for r in read_run(tmp_path).ranks for p in r.phases if p.phase == "verify"]
    assert verify["observed"]["counts"] == {s.value: n for s, n in read.counts.items()}
    assert verify["observed"]["reasons"][0]["text"] == "bs 4 > largest captured 2"
    assert verify["observed"]["agreement"] != "contradict"
