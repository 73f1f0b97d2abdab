"""What the rules find on real releases, against the reviewed table and users' reports."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from specmap.codemap.finding import Finding
from specmap.codemap.rule import Confidence
from specmap.lint.engine import lint_map
from specmap.lint.rulebook import load_folder
from specmap.scan.vocabulary import rules_folder
from tests.releases.trees import map_of

pytestmark = pytest.mark.releases

TABLE = Path(__file__).parents[2] / "docs/findings-0.5.23.md"
_ROW = re.compile(r"^\| (?P<file>\S+):(?P<line>\d+) \| (?P<rule>SPM\d+) \| (?P<verdict>[^|]+) \|")


@cache
def findings(release: str) -> tuple[Finding, ...]:
    rules = load_folder(rules_folder())
    report = lint_map(map_of(release), rules, source=lambda file: None, known=rules)
    assert not report.crashes
    return report.findings


def places(release: str, rule: str) -> set[str]:
    """The places of a rule's findings, as ``file:line`` below sglang/srt."""
    return {_place(f) for f in findings(release) if f.rule.id == rule}


def _place(finding: Finding) -> str:
    span = finding.match.span
    return f"{span.file.removeprefix('sglang/srt/')}:{span.line}"


def holders(release: str, rule: str, text: str) -> set[str]:
    """The functions in which a rule finds an operation."""
    found = (f.match for f in findings(release) if f.rule.id == rule and text in f.match.anchor)
    return {match.holder.rpartition(".")[2] for match in found}


def test_every_finding_of_high_confidence_is_in_the_reviewed_table() -> None:
    rows = [m for line in TABLE.read_text("utf-8").splitlines() if (m := _ROW.match(line))]
    reviewed = sorted((f"{m['file']}:{m['line']}", m["rule"]) for m in rows)
    high = [f for f in findings("0.5.23") if f.confidence is Confidence.HIGH]
    assert sorted((_place(f), f.rule.id) for f in high) == reviewed


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ("SPM109", "speculative/eagle_worker_v2.py:543"),
        ("SPM401", "managers/scheduler.py:4829"),
        ("SPM110", "managers/scheduler_components/profiler_manager.py:419"),
    ],
)
def test_known_faults_of_0_5_23(rule: str, place: str) -> None:
    assert place in places("0.5.23", rule)


def test_constants_of_idle_ranks_are_silent() -> None:
    silent = {f"speculative/dflash_worker_v2.py:{line}" for line in (2454, 2474, 2867, 2873)}
    silent.add("speculative/dspark_components/dspark_worker_v2.py:935")
    assert not silent & (places("0.5.23", "SPM101") | places("0.5.23", "SPM102"))


def test_cpu_look_alikes_are_silent() -> None:
    # sglang-0.5.9 notes: tensors on the host, read with the same idioms.
    silent = {
        "speculative/eagle_worker.py:458",
        "speculative/eagle_worker.py:949",
        "speculative/eagle_info.py:445",
        "speculative/eagle_info_v2.py:140",
        "speculative/ngram_info.py:439",
    }
    rules = ("SPM201", "SPM202", "SPM205")
    assert not silent & set().union(*(places("0.5.9", rule) for rule in rules))


def test_report_6_waits_of_dflash_between_draft_and_verify() -> None:
    # Pull request 31468: int(lengths.max().item()), a mask gather, a blocking copy.
    assert "_gather_req_to_token_segments" in holders("0.5.12", "SPM201", "lengths.max().item()")
    assert "_gather_req_to_token_masked" in holders("0.5.12", "SPM202", "[mask]")


def test_report_1_dsa_is_captured_on_hip_since_0_5_19() -> None:
    bad = [f.match.anchor for f in findings("0.5.18") if f.rule.id == "SPM108"]
    good = [f.match.anchor for f in findings("0.5.19") if f.rule.id == "SPM108"]
    assert any(text.startswith("DeepseekSparseAttnBackend") for text in bad)
    assert not any(text.startswith("DeepseekSparseAttnBackend") for text in good)


@pytest.mark.parametrize(("release", "line"), [("0.5.9", 343), ("0.5.12", 345)])
def test_report_10_a_profile_by_stage_that_never_stops(release: str, line: int) -> None:
    assert f"managers/scheduler_profiler_mixin.py:{line}" in places(release, "SPM110")


def test_runner_buffers_after_an_eager_pass() -> None:
    # Lines 502, 506 and 507 read buffers of the same runner.
    assert places("0.5.9", "SPM306") == {"speculative/multi_layer_eagle_worker_v2.py:501"}
    assert not places("0.5.23", "SPM306")


def test_a_fall_back_to_the_first_workers_that_is_said() -> None:
    """0.5.12, server_args.py:3763 warns of both stores, at lines 3754 and 3760, and why."""
    assert not places("0.5.12", "SPM112")


def test_reported_constants_and_dropped_flags() -> None:
    assert "speculative/eagle_worker.py:308" in places("0.5.9", "SPM102")
    assert not places("0.5.12", "SPM102")
    assert "speculative/eagle_worker_v2.py:1046" in places("0.5.12", "SPM103")
