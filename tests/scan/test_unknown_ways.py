"""A pass that may run on something that nobody knows: no phase is settled by what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.condition import AtomKind, atoms_of, evaluate, render
from specmap.codemap.graph import Phase
from specmap.codemap.verdict import SinkKind, Verdict
from tests.review_tree import edit, plant, scan

RUNNERS = "sglang/srt/model_executor/model_runner.py"
EAGLE = "sglang/srt/speculative/eagle_worker.py"
MADE = "self.graph_runner = CudaGraphRunner(self)"


def phase_of(folder: Path, name: str) -> Phase:
    """One phase of the EAGLE worker."""
    worker = next(w for w in scan(folder).workers if w.name == "EAGLEWorker")
    return next(p for p in worker.phases if p.name.value == name)


def open_ways(phase: Phase) -> set[str]:
    """The tests that nobody can answer on the ways to a graph; there is no settled verdict."""
    assert phase.verdict is None
    for arm in phase.arms:
        assert evaluate(arm.condition, {}) is None
    ways = [arm.condition for arm in phase.arms if arm.kind is SinkKind.GRAPH]
    return {a.text for way in ways for a in atoms_of(way) if a.kind is AtomKind.UNKNOWN}


@pytest.mark.parametrize("name", ["verify", "target_prefill"])
def test_a_target_that_nobody_knows_may_run_its_passes(tmp_path: Path, name: str) -> None:
    folder = plant(tmp_path / "t")
    held = "self.target_worker = "
    edit(folder, EAGLE, (f"{held}target_worker", f"{held}plugin.wrap(target_worker)"))
    edit(folder, EAGLE, ("\n\nclass", "\nimport plugin\n\n\nclass"))
    phase = phase_of(folder, name)
    assert phase.verdict is Verdict.UNKNOWN
    asked = "nothing is known about what self.target_worker.forward_batch_generation ("
    assert phase.note.startswith(asked)


VERIFIER = "sglang/srt/speculative/eagle_verify.py"
STORE = "        batch.forward_mode = ForwardMode.TARGET_VERIFY\n"
MANY = "(len(batch.reqs) > 3)"
USUAL = "not server_args.disable_cuda_graph and (forward_batch.batch_size <= self.max_bs)"


@pytest.mark.parametrize(
    ("store", "when"),
    [
        (
            f"{STORE}        if len(batch.reqs) > 3:\n"
            "            batch.forward_mode = ForwardMode.EXTEND\n",
            f"not {MANY}",
        ),
        (
            "        batch.forward_mode = ForwardMode.EXTEND if len(batch.reqs) > 3 "
            "else ForwardMode.TARGET_VERIFY\n",
            f"not {MANY}",
        ),
        (
            "        if len(batch.reqs) > 3:\n"
            "            batch.forward_mode = ForwardMode.TARGET_VERIFY\n"
            "        else:\n            batch.forward_mode = ForwardMode.EXTEND\n",
            MANY,
        ),
        (
            f"{STORE}        if len(batch.reqs) > 3:\n"
            "            batch.forward_mode = ForwardMode.IDLE\n",
            "",
        ),
        (
            "        batch.forward_mode = plugin.mode(batch)\n",
            "forward_batch.forward_mode.is_cuda_graph()",
        ),
    ],
)
def test_a_mode_that_a_test_chooses(tmp_path: Path, store: str, when: str) -> None:
    """A plain extend has no graph; an idle batch is not what the phase is about."""
    folder = plant(tmp_path / "t")
    edit(folder, VERIFIER, (STORE, store), ("import torch", "import plugin\nimport torch"))
    phase = phase_of(folder, "verify")
    assert render(phase.graph_when) == (f"{when} and {USUAL}" if when else USUAL)
    (eager,) = [arm.condition for arm in phase.arms if arm.kind is SinkKind.EAGER]
    assert set(atoms_of(eager)) == set(atoms_of(phase.graph_when))


RUNNER_MADE = "CudaGraphRunner(self)"


@pytest.mark.parametrize(
    ("call", "may"),
    [
        (f"setattr(self, name, {RUNNER_MADE})", True),
        (f"made = {RUNNER_MADE}\n            setattr(self, name, made)", True),
        (f"setattr(self, 'other', {RUNNER_MADE})", False),
        ("setattr(self, name, server_args)", False),
        (f"setattr(server_args, name, {RUNNER_MADE})", False),
    ],
)
def test_a_runner_set_by_a_name_that_is_not_written(tmp_path: Path, call: str, may: bool) -> None:
    """Where the call stands still counts: the draft's model runner makes none."""
    folder = plant(tmp_path / "t")
    draft = render(phase_of(folder, "draft").graph_when)
    edit(folder, RUNNERS, (MADE, call))
    phase = phase_of(folder, "verify")
    if may:
        assert any(text.endswith(" sets graph_runner") for text in open_ways(phase))
        assert "not server_args.disable_cuda_graph" in render(phase.graph_when)
    else:
        assert phase.verdict is Verdict.EAGER
    assert render(phase_of(folder, "draft").graph_when) == draft


@pytest.mark.parametrize(
    "value", ["plugin.make_runner(self)", "getattr(m, n)(self)", "REGISTRY[n](self)"]
)
def test_a_runner_that_nobody_knows_may_replay(tmp_path: Path, value: str) -> None:
    folder = plant(tmp_path / "t")
    edit(folder, RUNNERS, (MADE, f"self.graph_runner = {value}"))
    edit(folder, RUNNERS, ("from dataclasses", "import plugin\nfrom dataclasses"))
    assert "self.graph_runner.replay replays a graph" in open_ways(phase_of(folder, "verify"))


WORKERS = "sglang/srt/managers/tp_worker.py"
PASS = "        out = self.model_runner.forward(forward_batch)\n"
REPLAY = "self.graph_runner.replay(forward_batch)"


@pytest.mark.parametrize(
    ("file", "old", "new", "asked"),
    [
        (WORKERS, PASS, "        out = getattr(self.model_runner, n)(forward_batch)\n", "model"),
        (
            WORKERS,
            PASS,
            "        run = getattr(self.model_runner, n)\n        out = run(forward_batch)\n",
            "model",
        ),
        (RUNNERS, REPLAY, "getattr(self.graph_runner, n)(forward_batch)", "graph"),
    ],
)
def test_a_method_looked_up_by_a_name_may_run_the_pass(
    tmp_path: Path, file: str, old: str, new: str, asked: str
) -> None:
    folder = plant(tmp_path / "t")
    edit(folder, file, (old, new))
    phase = phase_of(folder, "verify")
    assert open_ways(phase) == {f"getattr(self.{asked}_runner, n) replays a graph"}
    kinds = [SinkKind.GRAPH] if asked == "model" else [SinkKind.GRAPH, SinkKind.EAGER]
    assert [arm.kind for arm in phase.arms] == kinds


@pytest.mark.parametrize("call", ["getattr(self.model, n)", "getattr(forward_batch, n)"])
def test_a_method_of_what_runs_no_pass_is_no_way(tmp_path: Path, call: str) -> None:
    folder = plant(tmp_path / "t")
    before = render(phase_of(folder, "verify").graph_when)
    line = "        can_run_graph = bool("
    edit(folder, RUNNERS, (line, f"        {call}(forward_batch)\n{line}"))
    assert render(phase_of(folder, "verify").graph_when) == before


def verify_replayed_by(folder: Path, call: str) -> Phase:
    """Verify, where another call stands for the runner's replay."""
    edit(folder, RUNNERS, (REPLAY, call))
    edit(folder, RUNNERS, ("from dataclasses", "import functools, operator\nfrom dataclasses"))
    return phase_of(folder, "verify")


@pytest.mark.parametrize(
    "call",
    [
        "functools.wraps(self.graph_runner.replay)(forward_batch)",
        "operator.methodcaller('replay', forward_batch)(self.graph_runner)",
        "next(map(self.graph_runner.replay, [forward_batch]))",
        "profiled(self.graph_runner.replay, forward_batch)",
    ],
)
def test_a_replay_that_is_handed_to_code_that_nobody_reads(tmp_path: Path, call: str) -> None:
    phase = verify_replayed_by(plant(tmp_path / "t"), call)
    assert any(text.endswith(" replays a graph") for text in open_ways(phase))


@pytest.mark.parametrize(
    ("call", "verdict"),
    [
        ("functools.partial(self.graph_runner.replay, forward_batch)()", None),
        ("callable(self.graph_runner.replay)", Verdict.EAGER),
    ],
)
def test_a_replay_that_is_handed_to_what_is_known(
    tmp_path: Path, call: str, verdict: Verdict | None
) -> None:
    folder = plant(tmp_path / "t")
    before = render(phase_of(folder, "verify").graph_when)
    phase = verify_replayed_by(folder, call)
    assert phase.verdict is verdict
    assert render(phase.graph_when) == ("never" if verdict else before)


@pytest.mark.parametrize(
    "store",
    [
        "self.__dict__['graph_runner'] = {}",
        "vars(self)['graph_runner'] = {}",
        "object.__setattr__(self, 'graph_runner', {})",
    ],
)
def test_a_store_in_other_words(tmp_path: Path, store: str) -> None:
    folder = plant(tmp_path / "t")
    before = render(phase_of(folder, "verify").graph_when)
    edit(folder, RUNNERS, (MADE, store.format(RUNNER_MADE)))
    assert render(phase_of(folder, "verify").graph_when) == before
    gone = f"{store.format(RUNNER_MADE)}\n            {store.format(None)}"
    edit(folder, RUNNERS, (store.format(RUNNER_MADE), gone))
    assert phase_of(folder, "verify").verdict is Verdict.EAGER
