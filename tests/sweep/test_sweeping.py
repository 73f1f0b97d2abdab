"""A sweep of a small tree: every combination is a cell, and says what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.sweep import Cell, CellState, Sweep
from specmap.errors import SpecmapError
from specmap.launched import Launch, judge_launch
from specmap.sweep.grid import read_axes
from specmap.sweep.sweeping import SweepRequest, sweep_launch
from tests.sweep.tree import LAUNCH, REFUSAL_LINE, sweepable


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sweepable(tmp_path_factory.mktemp("sweep"))


def swept(root: Path, *vary: str, batch: str = "", expect: str = "") -> Sweep:
    launch = Launch(LAUNCH, batch=batch, expect=expect)
    return sweep_launch(str(root), SweepRequest(launch, read_axes(vary)), use_cache=False)


@pytest.fixture(scope="module")
def grid(root: Path) -> Sweep:
    return swept(
        root, "disable-cuda-graph=no,yes", "speculative-num-steps=3,5",
        "speculative-eagle-topk=1,2", batch="bs=1,4",
    )  # fmt: skip


def at(found: Sweep, *values: str) -> Cell:
    [cell] = [cell for cell in found.cells if cell.values == values]
    return cell


def test_cells_are_all_combinations_the_batch_size_fastest(grid: Sweep) -> None:
    assert [axis.name for axis in grid.axes][-1] == "bs"
    assert (len(grid.cells), grid.launches) == (16, 8)
    assert [cell.values for cell in grid.cells[:3]] == [
        ("no", "3", "1", "1"), ("no", "3", "1", "4"), ("no", "3", "2", "1"),
    ]  # fmt: skip
    assert grid.cells[1].batch_size == 4


def test_a_switch_loses_every_graph_and_is_named(grid: Sweep) -> None:
    cell = at(grid, "yes", "3", "1", "4")
    assert cell.state is CellState.LOST
    assert [phase.name for phase in cell.lost] == ["draft", "verify", "draft_extend"]
    assert {phase.reason for phase in cell.lost} == {"server_args.disable_cuda_graph is true"}
    assert all(phase.span is not None for phase in cell.lost)
    assert grid.findings


def test_what_sglang_refuses_is_a_cell_with_the_raising_line(grid: Sweep) -> None:
    for switch in ("no", "yes"):
        cell = at(grid, switch, "5", "2", "1")
        assert cell.state is CellState.REFUSED
        assert cell.refusal is not None
        assert cell.refusal.message == "too deep a tree"
        assert cell.refusal.span.line == REFUSAL_LINE
        assert cell.workers == ()
    assert at(grid, "yes", "5", "1", "1").refusal is None


def test_an_unknown_cell_says_what_would_settle_it(grid: Sweep) -> None:
    """The tree compares the batch with a limit that no argument gives, and is not below 1."""
    assert at(grid, "no", "3", "1", "1").state is CellState.KEPT
    cell = at(grid, "no", "3", "1", "4")
    assert cell.state is CellState.UNKNOWN
    assert {p.reason for p in cell.phases} == {"bs 4, largest captured not known"}
    assert all(phase.missing == ("the name sizes_of",) for phase in cell.phases)


def test_what_the_argument_code_overwrites_is_said(grid: Sweep) -> None:
    said = at(grid, "no", "5", "1", "1").overwritten
    assert [text.partition(" (")[0] for text in said] == ["speculative_num_draft_tokens: 4 -> 6"]
    assert at(grid, "no", "3", "2", "1").overwritten == ()
    assert at(grid, "no", "5", "1", "1").tokens_per_request == 6


def test_cells_say_what_the_same_launch_alone_says(root: Path, grid: Sweep) -> None:
    """The shared work must not leak from one cell into the next."""
    for values in (("yes", "5", "1", "4"), ("no", "3", "2", "1"), ("no", "5", "2", "1")):
        switch, steps, topk, size = values
        text = f"{LAUNCH} --speculative-num-steps {steps} --speculative-eagle-topk {topk}"
        text += " --disable-cuda-graph" if switch == "yes" else ""
        alone = judge_launch(str(root), Launch(text, batch=f"bs={size}"), use_cache=False)
        cell = at(grid, *values)
        assert cell.refusal == alone.refusal
        assert cell.workers == tuple(w.name for w in alone.workers)
        said = {p.name: p.verdict for w in alone.workers for p in w.phases}
        assert {p.name: p.verdict for p in cell.phases}.items() <= said.items()


def test_expectations_hold_for_every_cell(root: Path) -> None:
    found = swept(root, "disable-cuda-graph=yes", expect="verify=EAGER,target_prefill=GRAPH")
    [cell] = found.cells
    assert cell.unmet == ("target_prefill: expected GRAPH, found EAGER",)


def test_nothing_varied_is_one_cell(root: Path) -> None:
    found = swept(root, batch="bs=4")
    assert [cell.values for cell in found.cells] == [("4",)]
    assert found.undecided == "no cell can be told: state what is listed as not known"


def test_a_launch_without_speculation_has_nothing_to_lose(root: Path) -> None:
    found = swept(root, "speculative-algorithm=unset")
    assert [cell.state for cell in found.cells] == [CellState.PLAIN]
    assert not found.findings


def test_accept_lengths_need_a_run(root: Path) -> None:
    request = SweepRequest(Launch(LAUNCH), accept_lengths=("3=2",))
    with pytest.raises(SpecmapError, match="name one with --run"):
        sweep_launch(str(root), request, use_cache=False)
