"""``specmap why`` on real releases; the lines were read in the source."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from specmap import cli, explained
from specmap.codemap.explanation import Explanation, SettingChange
from specmap.codemap.verdict import Verdict
from specmap.explained import explain
from specmap.launched import Launch, judge_launch
from specmap.report.explanation_text import render_explanation
from specmap.report.options import RenderOptions
from tests.releases.launches import LLAMA
from tests.releases.trees import checkout_of

pytestmark = pytest.mark.releases

CHAIN = (
    "--model-path meta-llama/Llama-3.1-8B-Instruct --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path someone/draft --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
)


def asked(
    release: str, place: str, tmp_path: Path, more: str | None = None, batch: str = ""
) -> Explanation:
    launch = None
    if more is not None:
        config = tmp_path / "config.json"
        config.write_text(json.dumps(LLAMA))
        launch = Launch(f"{CHAIN} {more}", model_config=config, gpu_memory=80, sm=90, batch=batch)
    return explain(f"sglang=={release}", place, launch)


def test_a_line_without_a_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """eagle_worker.py:322 of 0.5.9 is a comment; the constant is at 308, in 0.4.10 on 322."""
    checkout_of("0.4.10")
    # The user's cache may hold nearer releases in which the line fits, too.
    monkeypatch.setattr(explained, "_cached", lambda release: ["0.4.10"])
    found = asked("0.5.9", "eagle_worker.py:322", tmp_path).found
    assert found is not None
    assert found.facts[0] == "no graph flag is set here"
    assert found.source.startswith("#")
    assert (found.likely[0].release, found.likely[0].span.line) == (None, 308)
    assert "constant False" in found.likely[0].why
    assert "target_prefill" in found.likely[0].why
    [old] = [likely for likely in found.likely if likely.release == "0.4.10"]
    assert old.span.line == 322
    assert old.why == "can_run_cuda_graph is constant False (value 5 of a tuple), phase " + (
        "target_prefill"
    )


def test_the_six_terms_of_verify_0_5_9(tmp_path: Path) -> None:
    """cuda_graph_runner.py:401-437: size, vote, encoder, overlap, hidden states, width."""
    [reason] = asked("0.5.9", "EAGLEWorker.verify", tmp_path).phases
    named = {need.term.text for need in reason.needs}
    assert {
        "cuda_graph_bs <= self.max_bs",
        "forward_batch.can_run_dp_cuda_graph",
        "torch.all(forward_batch.encoder_lens > 0)",
        "forward_batch.can_run_tbo",
        "requested_capture_hidden_mode == self.capture_hidden_mode",
        "forward_batch.batch_size * self.num_tokens_per_bs == forward_batch.input_ids.numel()",
    } <= named
    graph = next(route for route in reason.routes if route.kind == "graph")
    lines = [(hop.span.file.rpartition("/")[2], hop.span.line) for hop in graph.hops]
    assert lines == [
        ("eagle_worker.py", 316),
        ("eagle_worker.py", 716),
        ("tp_worker.py", 456),
        ("model_runner.py", 2401),
        ("model_runner.py", 2463),
        ("cuda_graph_runner.py", 866),
    ]


def test_the_capture_list_and_its_switch_0_5_23(tmp_path: Path) -> None:
    [reason] = asked("0.5.23", "EAGLEWorkerV2.draft_extend", tmp_path).phases
    needs = {" ".join(need.term.text.split()): need for need in reason.needs}
    switch = needs["envs.SGLANG_DISABLE_DRAFT_EXTEND_CUDA_GRAPH.get()"]
    assert (switch.wanted, switch.term.span and switch.term.span.line) == (False, 627)
    assert any("tuple(graph_supported_backend_types)" in text for text in needs)


def test_what_would_change_the_verdict(tmp_path: Path) -> None:
    """flashinfer takes the draft-extend graph on 0.5.12, eagle_worker_v2.py:314."""
    found = asked(
        "0.5.12", "EAGLEWorkerV2.draft_extend", tmp_path, "--attention-backend flashinfer"
    )
    [reason] = found.phases
    assert reason.verdict is Verdict.EAGER
    changes = [(a.changes, a.verdict) for a in reason.alternatives]
    wanted = (SettingChange("attention_backend", "flashinfer", "triton"),)
    assert (wanted, Verdict.GRAPH) in changes


def test_what_a_dense_model_does_not_ask_is_not_claimed(tmp_path: Path) -> None:
    """cuda_graph_runner.py:797 and 816 of 0.5.12 are read only where :597 and :603 say so."""
    found = asked("0.5.12", "EAGLEWorkerV2.verify", tmp_path, "", batch="bs=1")
    text = render_explanation(found, RenderOptions(width=200))
    assert "every request has encoder input" not in text
    assert "two-batch overlap can split the batch" not in text
    assert "torch.all(forward_batch.encoder_lens > 0) -- does not matter" in text
    assert "not model_runner.model_config.is_encoder_decoder -- holds" in text


def test_a_capture_limit_is_raised_or_taken_away(tmp_path: Path) -> None:
    found = asked("0.5.12", "EAGLEWorkerV2.verify", tmp_path, "--cuda-graph-max-bs 2", batch="bs=4")
    changes = {a.changes for a in found.phases[0].alternatives}
    assert (SettingChange("cuda_graph_max_bs", 2, None, removed=True),) in changes
    # server_args.py:3700 of 0.5.12: speculation admits 48 requests where no limit is given.
    assert (SettingChange("cuda_graph_max_bs", 2, 48),) in changes


def test_the_advice_passes_the_tool_as_it_is_spelled() -> None:
    launch = f"{CHAIN} --max-running-requests 8 --attention-backend triton"
    stated = Launch(f"{launch} --cuda-graph-max-bs 2", gpu_memory=141, sm=90, batch="bs=4")
    [reason] = explain("sglang==0.5.12", "verify", stated).phases
    assert (reason.worker, reason.verdict) == ("EAGLEWorkerV2", Verdict.EAGER)
    arguments = [[c.argument for c in one.changes] for one in reason.alternatives]
    assert arguments == [["without --cuda-graph-max-bs"], ["--cuda-graph-max-bs 8"]]
    for change in ("", "--cuda-graph-max-bs 8"):
        changed = replace(stated, text=f"{launch} {change}")
        assert not judge_launch("sglang==0.5.12", changed).findings


def test_the_line_that_scan_names_says_what_it_decides(tmp_path: Path) -> None:
    """cuda_graph_runner.py:787 of 0.5.12 compares the batch with the largest captured size."""
    place = "cuda_graph_runner.py:787"
    plain = asked("0.5.12", place, tmp_path)
    assert "test: cuda_graph_bs <= self.max_bs; it decides " in shown(plain)
    assert "no graph flag is set here" not in shown(plain)
    found = asked("0.5.12", place, tmp_path, "--cuda-graph-max-bs 2", batch="bs=4")
    text = shown(found)
    assert "EAGLEWorkerV2.verify: EAGER" in text
    assert "cuda_graph_bs <= self.max_bs is false, bs 4 > largest captured 2" in text


def test_a_place_of_a_worker_that_does_not_run_names_the_one_that_does(tmp_path: Path) -> None:
    found = asked("0.5.12", "NGRAMWorker", tmp_path, "")
    assert "This launch runs EAGLEWorkerV2: none of its phases goes through here" in shown(found)


def shown(found: Explanation) -> str:
    return render_explanation(found, RenderOptions(width=300))


def test_a_launch_that_a_plain_model_does_not_fit_has_its_changes_too(tmp_path: Path) -> None:
    """No model has room for that much: model_config.py:564 would refuse the plain one, too."""
    launch = Launch(f"{CHAIN} --context-length 100000000 --disable-cuda-graph")
    found = explain("sglang==0.5.12", "EAGLEWorkerV2.verify", launch)
    assert found.outcome is not None
    assert any("would refuse a plain one" in note for note in found.outcome.notes)
    [reason] = found.phases
    assert reason.verdict is Verdict.EAGER
    changes = {(a.changes[0].name, a.changes[0].new, a.verdict) for a in reason.alternatives}
    assert ("disable_cuda_graph", False, Verdict.GRAPH) in changes


def test_a_context_length_leaves_the_plain_model_in_place() -> None:
    """Whose config.json says nothing has 2048 positions, and SGLang refuses to go above them."""
    launch = Launch(f"{CHAIN} --context-length 8192", gpu_memory=80, sm=90, batch="bs=4")
    found = explain("sglang==0.5.12", "EAGLEWorkerV2.verify", launch)
    assert found.outcome is not None
    assert found.outcome.notes == ()
    assert found.phases[0].verdict is Verdict.GRAPH


def test_what_would_take_the_graph_away_0_5_23(tmp_path: Path) -> None:
    """The off-switch of all graphs, eagle_worker_v2.py:481."""
    found = asked("0.5.23", "EAGLEWorkerV2.draft_extend", tmp_path, "")
    [reason] = found.phases
    assert reason.verdict is Verdict.GRAPH
    changes = {(a.changes[0].name, a.changes[0].new, a.verdict) for a in reason.alternatives}
    assert ("disable_cuda_graph", True, Verdict.EAGER) in changes


def test_a_worker_that_does_not_run(tmp_path: Path) -> None:
    [reason] = asked("0.5.12", "EAGLEWorker.verify", tmp_path, "").phases
    assert (reason.verdict, reason.routes, reason.needs) == (None, (), ())
    assert reason.note == (
        "this launch does not run EAGLEWorker, it runs EAGLEWorkerV2; "
        "ask: specmap why sglang==0.5.12 EAGLEWorkerV2.verify with the same options"
    )


def test_a_graph_that_two_things_keep_away_takes_two_changes_0_5_12(tmp_path: Path) -> None:
    """fa3 has no graph for draft extend (eagle_worker_v2.py:314), and 4 is above the limit.

    As many requests as are admitted want a graph: 48 (server_args.py, EAGLE3's default).
    """
    place = "EAGLEWorkerV2.draft_extend"
    [found] = asked("0.5.12", place, tmp_path, "--cuda-graph-max-bs 2", batch="bs=4").phases
    pairs = [{(c.name, c.new) for c in one.changes} for one in found.alternatives]
    assert {("attention_backend", "triton"), ("cuda_graph_max_bs", 48)} in pairs
    assert {one.verdict for one in found.alternatives} == {Verdict.GRAPH}


@pytest.mark.parametrize(("wanted", "code"), [("verify=EAGER", 0), ("verify=GRAPH", 1)])
def test_why_fails_where_an_expectation_does_not_hold(
    wanted: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = "--model-path m --speculative-algorithm EAGLE --disable-cuda-graph"
    arguments = ["sglang==0.5.9", "EAGLEWorker.verify", "--args", launch, "--expect", wanted]
    monkeypatch.setattr(sys, "argv", ["specmap", "why", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == code
    assert ("expected GRAPH and is EAGER" in capsys.readouterr().err) == bool(code)


@pytest.mark.parametrize("memory", [141, None])
def test_what_a_log_shows_as_derived_is_not_the_change(memory: int | None) -> None:
    """The log of ``--cuda-graph-max-bs 2`` shows cuda_graph_bs=[1, 2] too, made of the limit.

    Without the GPU it is not known that the list was; the limit is the change all the same.
    """
    log = (Path(__file__).parent / "commands/server-log.txt").read_text("utf-8")
    launch = Launch(log, gpu_memory=memory, sm=90, batch="bs=4")
    found = explain("sglang==0.5.12", "EAGLEWorkerV2.verify", launch)
    [reason] = found.phases
    assert reason.verdict is Verdict.EAGER
    change = SettingChange("cuda_graph_max_bs", 2, 8, removed=False)
    assert any(change in one.changes for one in reason.alternatives)
    if memory is not None:
        assert all(c.name != "cuda_graph_bs" for one in reason.alternatives for c in one.changes)
