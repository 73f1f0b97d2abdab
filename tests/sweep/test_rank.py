"""Predicted tokens a second: from what was measured, by rules that can be redone by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from specmap.codemap.event import Run, SizeCount, State
from specmap.codemap.sweep import Axis, Cell, CellPhase, Prediction
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.errors import RulesError, SpecmapError
from specmap.sweep.rank import ranked
from specmap.sweep.samples import Sample, load_sweep_words, read_accept_lengths, sample_of
from tests.sweep.sample import PHASES, cell, ran, refused, run, sweep

WORDS = load_sweep_words()
BS = Axis("bs", ("4",))


def predicted(
    found: Cell, *runs: Run, given: Sequence[str] = (), axes: tuple[Axis, ...] = (BS,)
) -> Cell:
    samples = {f"run{i}": sample_of(f"run{i}", r, WORDS) for i, r in enumerate(runs)}
    made = ranked(sweep(axes, found), samples, read_accept_lengths(given), {}, WORDS)
    return made.cells[0]


def figure(found: Cell) -> Prediction:
    assert found.prediction is not None, found.unranked
    return found.prediction


def test_a_measured_cell_is_its_tokens_over_its_cycle() -> None:
    """4 requests x 2 tokens in 4 ms."""
    found = figure(predicted(cell(), run()))
    assert found.tokens_per_second == pytest.approx(2000)
    assert found.rules == ("cycle of run0", "accept length of run0")
    assert found.measured


def test_a_stated_accept_length_comes_before_the_run_s() -> None:
    found = figure(predicted(cell(), run(), given=["3=2.5"]))
    assert found.tokens_per_second == pytest.approx(2500)
    assert not found.measured
    found = figure(predicted(cell(), run(), given=["3=2.5", "3/1/4=3"]))
    assert found.tokens_per_second == pytest.approx(3000)


@pytest.mark.parametrize(("accept", "given"), [(2.0, ["3=4.01"]), (7.0, []), (0.5, [])])
def test_more_tokens_than_a_cycle_verifies_are_no_accept_length(
    accept: float, given: list[str]
) -> None:
    """Of four verify tokens one to four are kept, whether it is stated or recorded."""
    assert figure(predicted(cell(), run(), given=["3=4"])).accept_length == 4
    found = predicted(cell(), run(accept=accept), given=given)
    assert found.prediction is None
    assert found.unranked.endswith("a request has 1 to 4 tokens a cycle here")


def test_a_step_count_between_two_runs_lies_on_their_line() -> None:
    """3 steps take 4 ms and 5 take 5 ms: 4 take 4.5 ms."""
    found = figure(predicted(cell(steps=4), run(), run(steps=5, cycle_us=5000), given=["4=2.25"]))
    assert found.cycle_ns == 4_500_000
    assert found.tokens_per_second == pytest.approx(2000)
    assert found.rules[0] == "cycle on the line between run0 (3/1/4) and run1 (5/1/6)"


def test_nothing_is_said_beyond_the_runs_or_without_accept_length() -> None:
    runs = run(), run(steps=5, cycle_us=5000)
    beyond = predicted(cell(steps=6), *runs, given=["6=2.5"])
    assert beyond.prediction is None
    assert beyond.unranked.startswith("no rule leads to a cycle of 6/1/7 from 3/1/4, 5/1/6")
    unknown = predicted(cell(steps=4), *runs)
    assert unknown.unranked.startswith("no accept length for 4/1/5: --accept-length 4=VALUE")


def test_gpu_times_scale_draft_by_its_forwards_and_verify_by_two_runs() -> None:
    """Draft: 200 us for 2 forwards, so 400 us for 4. Verify: 10 us a token, so 2 tokens more."""

    def timed(steps: int, draft_us: int, verify_us: int, cycle_us: int) -> Run:
        return run(
            ran("draft", gpu_us=draft_us), ran("verify", gpu_us=verify_us), ran("draft_extend"),
            steps=steps, cycle_us=cycle_us,
        )  # fmt: skip

    runs = timed(3, 200, 500, 4000), timed(4, 300, 510, 4200)
    found = figure(predicted(cell(steps=5), *runs, given=["5=2"]))
    assert found.cycle_ns == pytest.approx((4000 + 200 + 20) * 1000)
    assert found.rules[0] == (
        "cycle of run0 (3/1/4), its draft times 4/2, its verify with 6 tokens by the slope to "
        "run1, its draft_extend as it was"
    )
    assert not found.measured


def test_the_cpu_time_of_a_replay_scales_nothing() -> None:
    assert "no rule leads" in predicted(cell(steps=5), run(), given=["5=2"]).unranked


def test_the_cpu_time_of_eager_work_scales() -> None:
    """A tree of 8 tokens, whatever its depth: only the draft changes, 300 us a forward."""
    phases = [ran(name, State.EAGER, cpu_us=600) for name in PHASES]
    measured = run(*phases, topk=2, tokens=8)
    found = figure(
        predicted(cell(steps=5, topk=2, tokens=8, verdict=Verdict.EAGER), measured, given=["5=2"])
    )
    assert found.cycle_ns == pytest.approx((4000 + 600) * 1000)


def test_one_draft_step_runs_no_forward_and_scales_from_nothing() -> None:
    phases = [ran(name, State.EAGER) for name in PHASES]
    measured = run(*phases, topk=2, tokens=8)
    one = cell(steps=1, topk=2, tokens=8, verdict=Verdict.EAGER)
    assert "no rule leads" in predicted(one, measured, given=["1=2"]).unranked


@pytest.mark.parametrize(
    ("release", "gpu_sm", "reason"),
    [
        ("0.5.12", 90, "it ran SGLang 0.5.12 and the tree is 0.5.9"),
        ("0.5.9", 80, "it ran on NVIDIA H200 with --sm 80, the launch says --sm 90"),
        ("0.5.9", 90, ""),
        (None, None, ""),
    ],
)
def test_a_run_of_another_program_ranks_nothing(
    release: str | None, gpu_sm: int | None, reason: str
) -> None:
    measured = run()
    (rank,) = measured.ranks
    rank = replace(rank, gpu="NVIDIA H200", gpu_sm=gpu_sm)
    sample = sample_of("run0", replace(measured, release=release, ranks=(rank,)), WORDS)
    made = ranked(sweep((BS,), cell()), {"run0": sample}, (), {}, WORDS, 90)
    assert made.runs[0].unused == reason
    assert (made.cells[0].prediction is None) == bool(reason)
    told = [text for text in made.ranking_assumes if "NVIDIA H200" in text]
    wanted = f"run0: SGLang {release or 'not recorded'} on NVIDIA H200, and so is every cell"
    assert told == ([] if reason else [wanted])


def test_a_run_that_lost_its_graph_stands_for_its_replays_where_both_were_seen() -> None:
    """Verify took 2400 us eager and 400 us replayed: 2 ms of 4 ms would go."""
    verify = replace(ran("verify", State.EAGER, cpu_us=2400), median_replay_ns=400_000)
    measured = run(ran("draft"), verify, ran("draft_extend"))
    found = figure(predicted(cell(), measured))
    assert found.cycle_ns == pytest.approx(2_000_000)
    assert "at the time of their own replays" in found.rules[0]
    assert not found.measured
    never = replace(verify, median_replay_ns=None)
    unseen = predicted(cell(), run(ran("draft"), never, ran("draft_extend")))
    assert unseen.unranked == "no run at bs 4 with draft GRAPH, verify GRAPH, draft_extend GRAPH"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (replace(cell(), workers=("NGRAMWorker",)), "no run of NGRAMWorker"),
        (cell(size=8), "no run at bs 8"),
        (cell(verdict=Verdict.EAGER),
         "no run at bs 4 with draft EAGER, verify EAGER, draft_extend EAGER"),
        (replace(cell(), graph_size=16), "no run that pads bs 4 to 16"),
        (cell(verdict=Verdict.UNKNOWN), "draft, verify, draft_extend not settled"),
        (replace(cell(), phases=()), "the worker is not known"),
        (replace(cell(), phases=(), workers=()),
         "it does not speculate: no cycle to predict"),
        (refused("4"), "refused at start"),
        (replace(cell(), admitted=2),
         "no batch is that large: at most 2 requests are admitted"),
    ],
)  # fmt: skip
def test_a_cell_that_no_run_measured_says_why(asked: Cell, reason: str) -> None:
    found = predicted(asked, run())
    assert found.prediction is None
    assert found.unranked == reason


def test_varied_settings_must_be_those_of_the_run() -> None:
    axes = (Axis("attention-backend", ("fa3", "triton"), ("attention_backend",)), BS)
    asked = cell("fa3", attention_backend="fa3")
    other = run(attention_backend="triton", cycle_us=3000)
    assert predicted(asked, other, axes=axes).unranked == "no run with attention_backend fa3"
    found = figure(predicted(asked, other, run(attention_backend="fa3"), axes=axes))
    assert found.rules[0] == "cycle of run1"
    open_ = predicted(cell("fa3"), other, axes=axes)
    assert open_.unranked == "no run with attention_backend, which is not known here"


def test_a_capture_limit_that_captures_as_much_does_not_matter() -> None:
    axes = (Axis("cuda-graph-max-bs", ("8",), ("cuda_graph_max_bs",)), BS)
    asked = cell("8", cuda_graph_max_bs=8)
    assert figure(predicted(asked, run(cuda_graph_max_bs=64), axes=axes)).measured
    exact = run(cuda_graph_max_bs=8, cycle_us=3000)
    found = figure(predicted(asked, run(cuda_graph_max_bs=64), exact, axes=axes))
    assert found.rules[0] == "cycle of run1"


def test_a_varied_variable_must_be_that_of_the_run() -> None:
    axes = (Axis("SGLANG_X", ("unset", "1")), BS)
    assert figure(predicted(cell("unset"), run(), axes=axes)).measured
    assert predicted(cell("1"), run(), axes=axes).unranked.endswith("no run with SGLANG_X 1")


def test_a_phase_that_does_not_run_has_no_state() -> None:
    asked = cell(steps=1)
    idle = CellPhase(PhaseName.DRAFT, Verdict.NOT_RUN, True)
    asked = replace(asked, phases=(idle, *asked.phases[1:]))
    measured = run(ran("verify"), ran("draft_extend"), steps=1)
    assert figure(predicted(asked, measured)).measured
    other = predicted(asked, run(steps=1))
    assert other.unranked == "no run at bs 4 with verify GRAPH, draft_extend GRAPH"


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (Run(None, (), (), ()), "it has no decode cycle"),
        (run(ran("draft")), "it has no decode cycle"),
        (run(replace(ran("verify"), sizes=(SizeCount(4, State.GRAPH, 45),))),
         "no batch size has more than half of its verify passes"),
        (run(replace(ran("verify"), sizes=(SizeCount(4, State.GRAPH, 60),
                                           SizeCount(4, State.EAGER, 30)))),
         "verify did not run in one state at bs 4"),
    ],
)  # fmt: skip
def test_runs_that_measured_no_steady_cycle(measured: Run, reason: str) -> None:
    assert sample_of("run", measured, WORDS) == reason


def test_a_run_is_one_of_the_size_of_most_of_its_passes() -> None:
    sizes = (SizeCount(2, State.GRAPH, 12), SizeCount(4, State.EAGER, 78))
    mixed = [replace(ran(name), sizes=sizes) for name in PHASES]
    found = sample_of("run", run(*mixed), WORDS)
    assert isinstance(found, Sample)
    assert (found.size, found.share) == (4, 78 / 90)
    assert set(found.states.values()) == {State.EAGER}
    assert found.graph_size is None


def test_what_the_ranking_assumes_names_how_the_run_differs() -> None:
    sample = sample_of("run", run(tp_size=2), WORDS)
    made = ranked(sweep((BS,), cell()), {"run": sample}, (), {"tp_size": 1}, WORDS)
    assert "run ran with tp_size 2, the launch says 1" in made.ranking_assumes
    assert made.runs[0].accept_length == 2.0
    bad = ranked(sweep((BS,), cell()), {"run": "it has no decode cycle"}, (), {}, WORDS)
    assert bad.runs[0].unused == "it has no decode cycle"
    assert bad.ranking_assumes == ()


def test_the_fastest_cell_comes_first() -> None:
    samples = {"run": sample_of("run", run(), WORDS)}
    slow, fast = replace(cell(), values=("4",)), cell()
    made = ranked(sweep((BS,), slow, fast), samples, (), {}, WORDS)
    quick = replace(made.cells[1], prediction=replace(figure(made.cells[1]), tokens_per_second=1e6))
    assert replace(made, cells=(made.cells[0], quick)).ranked[0] is quick


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["3"], "expected STEPS=VALUE"),
        (["3/1=2"], "expected STEPS=VALUE"),
        (["0=2"], "expected STEPS=VALUE"),
        (["3=0.5"], "accepts one token at least"),
        (["3=nan"], "accepts one token at least"),
        (["3/1/4=4.5"], "verifies 4 tokens at most"),
        (["3=2", "3=2.5"], "3 is given twice"),
    ],
)
def test_accept_lengths_that_are_none(texts: list[str], message: str) -> None:
    with pytest.raises(SpecmapError, match=message):
        read_accept_lengths(texts)


def test_a_vocabulary_without_the_table(tmp_path: Path) -> None:
    (tmp_path / "vocabulary.toml").write_text("[sweep]\nsteps = []\n", "utf-8")
    with pytest.raises(RulesError, match=r"table \[sweep\]"):
        load_sweep_words(tmp_path / "vocabulary.toml")
