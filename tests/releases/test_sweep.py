"""Sweeps of real releases: what SGLang's source says at the lines named, and what an H200 ran.

None of the expectations comes from specmap.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specmap.codemap.sweep import Cell, CellState, Sweep
from specmap.errors import SpecmapError
from specmap.launched import Launch, judge_launch
from specmap.sweep.grid import read_axes
from specmap.sweep.sweeping import SweepRequest, sweep_launch
from tests.releases.launches import DRAFT, LLAMA
from tests.trace.recorded import DISABLED, MAX_BS_2, RELEASE

pytestmark = pytest.mark.releases

EAGLE3 = (
    "--model-path meta-llama/Llama-3.1-8B-Instruct --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path someone/draft --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
)


def swept(release: str, *vary: str, text: str = EAGLE3, **more: object) -> Sweep:
    launch = Launch(text, gpu_memory=80, sm=90, **more)  # type: ignore[arg-type]
    return sweep_launch(f"sglang=={release}", SweepRequest(launch, read_axes(vary)))


def at(found: Sweep, *values: str) -> Cell:
    [cell] = [cell for cell in found.cells if cell.values == values]
    return cell


def verdicts(cell: Cell) -> list[str]:
    return [phase.verdict.value for phase in cell.phases]


@pytest.mark.parametrize(
    ("release", "argument"),
    [("0.5.9", "cuda-graph-max-bs"), ("0.5.23", "cuda-graph-max-bs-decode")],
)
def test_a_capture_limit_below_the_batch_loses_verify(release: str, argument: str) -> None:
    """User report 3 (EAGLE #298), measured on an H200: one argument, 4.6 to 7 times slower."""
    found = swept(release, f"{argument}=2,8", batch="bs=2,4")
    lost = at(found, "2", "4")
    assert lost.state is CellState.LOST
    assert "verify" in [phase.name for phase in lost.lost]
    assert {phase.reason for phase in lost.lost} == {"bs 4 > largest captured 2"}
    kept = [cell.state for cell in found.cells if cell is not lost]
    assert kept == [CellState.KEPT] * 3
    assert found.launches == 2


@pytest.mark.parametrize("more", ["", "--disable-cuda-graph", "--page-size 64"])
@pytest.mark.parametrize("release", ["0.5.9", "0.5.12"])
def test_a_sweep_of_one_launch_says_what_a_scan_of_it_says(release: str, more: str) -> None:
    """What may stop the start, too: without a model's config.json SGLang has checks that may."""
    launch = Launch(f"{EAGLE3} {more}", gpu_memory=80, sm=90, batch="bs=4")
    [cell] = sweep_launch(f"sglang=={release}", SweepRequest(launch)).cells
    outcome = judge_launch(f"sglang=={release}", launch)
    assert len(outcome.may_refuse) > 5
    assert (cell.refusal, cell.may_refuse) == (outcome.refusal, outcome.may_refuse)
    assert outcome.worker is not None
    told = {phase.name: phase.verdict for phase in outcome.worker.phases}
    assert {phase.name: phase.verdict for phase in cell.phases}.items() <= told.items()


LOG = Path(__file__).parent / "commands/server-log.txt"


@pytest.mark.parametrize("vary", ["cuda-graph-max-bs=2,4", "cuda-graph-bs=1 2,1 2 4"])
def test_the_captured_sizes_of_a_log_follow_what_is_varied(vary: str) -> None:
    """The log of an H200 with ``--cuda-graph-max-bs 2`` shows cuda_graph_bs=[1, 2], too.

    server_args.py:1495 of 0.5.12 takes the largest of the list for the limit.
    """
    found = swept("0.5.12", vary, text=LOG.read_text("utf-8"), batch="bs=4")
    small, large = found.cells
    assert (small.largest_captured, small.state) == (2, CellState.LOST)
    assert (large.largest_captured, large.state) == (4, CellState.KEPT)
    assert any("left for each cell to derive" in note for note in found.notes)


def test_trees_with_pages_are_refused_but_for_two_backends() -> None:
    """0.5.9 server_args.py:2452: topk and page size above 1 need flashinfer or fa3."""
    found = swept(
        "0.5.9", "speculative-eagle-topk=1,4", "page-size=1,64",
        "attention-backend=triton,flashinfer,fa3",
    )  # fmt: skip
    refused = [cell for cell in found.cells if cell.state is CellState.REFUSED]
    assert [cell.values for cell in refused] == [("4", "64", "triton", "1")]
    [cell] = refused
    assert cell.refusal is not None
    assert (cell.refusal.span.file, cell.refusal.span.line) == ("sglang/srt/server_args.py", 2457)
    assert cell.refusal.message.startswith("speculative_eagle_topk > 1 with page_size > 1")


def test_trees_with_pages_are_taken_by_triton_later(tmp_path: Path) -> None:
    """0.5.23 speculative_hook.py:1178, :1272: triton was added, trtllm_mha takes no tree."""
    for name, config in (("target", LLAMA), ("draft", DRAFT)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config), "utf-8")
    vary = ("speculative-eagle-topk=4", "page-size=64", "attention-backend=triton,trtllm_mha")
    found = swept(
        "0.5.23", *vary, model_config=tmp_path / "target", draft_config=tmp_path / "draft"
    )
    assert at(found, "4", "64", "triton", "1").refusal is None
    refusal = at(found, "4", "64", "trtllm_mha", "1").refusal
    assert refusal is not None
    assert refusal.span.file == "sglang/srt/arg_groups/speculative_hook.py"
    assert refusal.span.line == 1178
    assert refusal.message == (
        "trtllm_mha backend only supports topk = 1 for speculative decoding."
    )


def test_a_variable_chooses_the_worker_and_refuses_trees() -> None:
    """0.5.9 server_args.py:2368-2384: the variable alone decides v1 or v2; v2 takes no tree."""
    found = swept("0.5.9", "SGLANG_ENABLE_SPEC_V2=unset,1", "speculative-eagle-topk=1,4")
    assert at(found, "unset", "1", "1").workers == ("EAGLEWorker",)
    assert at(found, "1", "1", "1").workers == ("EAGLEWorkerV2",)
    assert at(found, "unset", "4", "1").workers == ("EAGLEWorker",)
    refusal = at(found, "1", "4", "1").refusal
    assert refusal is not None
    assert refusal.span.line == 2380
    assert "only supports topk = 1" in refusal.message


def test_a_chain_of_another_length_has_another_width() -> None:
    """0.5.9 server_args.py:2443: with topk 1 the verify tokens become steps + 1."""
    found = swept("0.5.9", "speculative-num-steps=1..5")
    assert [cell.tokens_per_request for cell in found.cells] == [2, 3, 4, 5, 6]
    # The last draft step runs no forward: with one step the draft model does not draft.
    assert verdicts(found.cells[0])[0] == "NOT_RUN"
    assert at(found, "3", "1").overwritten == ()
    assert at(found, "5", "1").overwritten == (
        "speculative_num_draft_tokens: 4 -> 6 (sglang/srt/server_args.py:2450)",
    )


def test_a_batch_above_the_admitted_requests_is_named() -> None:
    """0.5.9 server_args.py:2362: a speculating server admits 48 requests where none are given."""
    found = swept("0.5.9", batch="bs=48,64")
    assert [cell.admitted for cell in found.cells] == [48, 48]
    assert [bool(cell.too_large) for cell in found.cells] == [False, True]


def test_names_are_those_of_the_release() -> None:
    with pytest.raises(SpecmapError, match="did you mean --cuda-graph-max-bs"):
        swept("0.5.9", "cuda-graph-max-batch=2")
    with pytest.raises(
        SpecmapError, match=r"does not know --cuda-graph-max-bs; last in .*, gone in 0\.5\.20"
    ):
        swept("0.5.23", "cuda-graph-max-bs=2")


def test_an_h200_s_runs_rank_the_cells_that_they_measured(tmp_path: Path) -> None:
    """The launches of two recorded runs, EAGLE3 on 0.5.12: the cells they ran, and no others."""
    runs = []
    for case in (MAX_BS_2, DISABLED):
        folder = tmp_path / case.name
        folder.mkdir()
        case.write(folder)
        runs.append(folder)
    text = DISABLED.launch.replace("--cuda-graph-max-bs 8 --disable-cuda-graph", "")
    launch = Launch(text, gpu_memory=141, sm=90, batch="bs=2,4")
    vary = ("cuda-graph-max-bs=2,8", "disable-cuda-graph=yes,no")
    found = sweep_launch(f"sglang=={RELEASE}", SweepRequest(launch, read_axes(vary), tuple(runs)))
    ranked = {cell.values: cell.prediction for cell in found.ranked}
    assert set(ranked) == {("2", "no", "4"), ("2", "yes", "4"), ("8", "yes", "4")}
    for values, run in ((("2", "no", "4"), runs[0]), (("8", "yes", "4"), runs[1])):
        made = ranked[values]
        assert made is not None
        assert made.measured
        assert made.rules[0] == f"cycle of {run.name}"
        # The random draft head is right once in a hundred steps.
        assert made.accept_length == pytest.approx(1.0, abs=0.02)
    assert at(found, "8", "no", "4").unranked == (
        "no run at bs 4 with draft GRAPH, verify GRAPH, draft_extend GRAPH"
    )
    assert at(found, "2", "no", "2").unranked == "no run at bs 2"
