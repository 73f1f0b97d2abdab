"""Runs of real engines on a GPU, read again: what SGLang counted itself is what is read."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from specmap.codemap.event import Pass, State
from specmap.trace.read import load_plan, passes_of
from specmap.traced import read_run, trace_names
from tests.trace.recorded import CASES, DISABLED, MAX_BS_2, NGRAM, Case


def verified(case: Case, folder: Path) -> list[Pass]:
    name = case.write(folder)
    every = passes_of(folder, name, load_plan(folder), trace_names())
    return [found for found in every if found.phase == "verify"]


def runs(found: list[Pass]) -> list[tuple[int, State, int, int]]:
    """Return size, state and graph size of the verify passes, with how many in a row."""
    keys = ((p.size, p.state, p.graph_size) for p in found)
    return [(*key, len(list(group))) for key, group in groupby(keys)]


def test_a_batch_above_the_largest_graph_is_eager_until_it_shrinks(tmp_path: Path) -> None:
    """SGLang counted 15 steps of all four, then 19, 31, 43 and 63 as they ended.

    With overlap one more step is launched before the end of a request is seen.
    """
    assert runs(verified(MAX_BS_2, tmp_path)) == [
        (4, State.EAGER, -1, 15 + 1 + 19 + 1),
        (3, State.EAGER, -1, 31 - 19),
        (2, State.GRAPH, 2, 43 - 31),
    ]


def test_reasons_have_both_numbers_and_the_switch_its_cycle(tmp_path: Path) -> None:
    MAX_BS_2.write(tmp_path)
    (rank,) = read_run(tmp_path).ranks
    cycle = [phase for phase in rank.phases if "prefill" not in phase.phase]
    assert [phase.phase for phase in cycle] == ["draft", "verify", "draft_extend"]
    for phase in cycle:
        assert [(reason.text, reason.count) for reason in phase.reasons] == [
            ("bs 4 > largest captured 2", 36),
            ("bs 3 > largest captured 2", 12),
        ]
        # Two prefills (cycles 0 and 17) and 48 steps of more than two requests before it.
        assert [(s.state, s.first) for s in phase.stretches] == [
            (State.EAGER, 1), (State.GRAPH, 50),
        ]  # fmt: skip


def test_without_graphs_the_launch_is_the_reason(tmp_path: Path) -> None:
    DISABLED.write(tmp_path)
    run = read_run(tmp_path)
    assert [finding.message.partition(": ")[2] for finding in run.findings] == [
        "disabled (disable_cuda_graph)"
    ] * 3
    assert run.failing


def test_accepted_tokens_are_those_of_the_requests(tmp_path: Path) -> None:
    """Wave one made 192 tokens in 14, 13, 14 and 13 steps, the first of each in the prefill."""
    found = verified(NGRAM, tmp_path)
    assert runs(found) == [
        (4, State.GRAPH, 4, 13), (2, State.GRAPH, 2, 1), (4, State.GRAPH, 4, 10),
    ]  # fmt: skip
    assert sum(p.accepted or 0 for p in found[:14]) == 192 - 4
    # Wave two accepts all four drafts of every request in each step.
    assert {p.accepted for p in found[14:]} == {16}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_forward_is_in_a_phase_of_the_worker(case: Case, tmp_path: Path) -> None:
    case.write(tmp_path)
    (rank,) = read_run(tmp_path).ranks
    assert {phase.worker for phase in rank.phases} == {case.worker}
    assert "unknown" not in {phase.phase for phase in rank.phases}
    assert rank.lost == rank.cut_bytes == 0


@pytest.mark.parametrize("lost", ["", "not JSON\n"])
def test_a_reason_whose_name_is_lost_is_not_replaced_by_another(tmp_path: Path, lost: str) -> None:
    name = MAX_BS_2.write(tmp_path)
    (tmp_path / f"{name}.names").write_text(lost, "utf-8")
    (rank,) = read_run(tmp_path).ranks
    (verify,) = [phase for phase in rank.phases if phase.phase == "verify"]
    assert [reason.count for reason in verify.reasons] == [48]
    assert ".names file lacks it" in verify.reasons[0].text
