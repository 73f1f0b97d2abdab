from __future__ import annotations

from dataclasses import replace

import pytest

from specmap.codemap.condition import AtomKind, leaf
from specmap.codemap.graph import Arm, CodeMap
from specmap.codemap.source import Span, symbol_id
from specmap.codemap.verdict import SinkKind
from specmap.errors import SpecmapError
from specmap.why.lines import (
    argument_reason,
    file_reason,
    flag_reason,
    line_reason,
    may_set_flag,
    symbol_reason,
)
from specmap.why.phases import not_run, phase_reason
from specmap.why.places import (
    ArgumentPlace,
    FilePlace,
    FlagPlace,
    LinePlace,
    PhasePlace,
    SymbolPlace,
    find_place,
)
from tests.report.sample import sample_map
from tests.report.sample_outcome import REFUSAL, outcome

EAGLE = "sglang/srt/speculative/eagle_worker.py"
SOURCE = ["" for _ in range(400)]


@pytest.fixture
def sample() -> CodeMap:
    return sample_map()


def test_a_phase(sample: CodeMap) -> None:
    place = find_place(sample, "EAGLEWorker.verify")
    assert isinstance(place, PhasePlace)
    assert (place.worker.name, place.phase.name) == ("EAGLEWorker", "verify")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("", "the place is empty; name WORKER.PHASE or FILE:LINE"),
        (" ", "the place is empty; name WORKER.PHASE or FILE:LINE"),
        ("eagle_worker.py:x", "eagle_worker.py:x: 'x' is no line number"),
        ("eagle_worker.py:-3", "eagle_worker.py:-3: '-3' is no line number"),
        ("eagle_worker.py:", "eagle_worker.py:: '' is no line number"),
    ],
)
def test_what_is_no_place_is_told_as_such(sample: CodeMap, place: str, said: str) -> None:
    with pytest.raises(SpecmapError) as raised:
        find_place(sample, place)
    assert str(raised.value) == said


def test_a_symbol(sample: CodeMap) -> None:
    wanted = SymbolPlace(symbol_id("sglang/srt/model_executor/cuda_graph_runner.py",
                                   "CudaGraphRunner.can_run"))  # fmt: skip
    assert find_place(sample, "CudaGraphRunner.can_run") == wanted


@pytest.mark.parametrize(
    "name",
    [
        "eagle_worker.py",
        "speculative/eagle_worker.py",
        "./eagle_worker.py",
        "../speculative/eagle_worker.py",
        EAGLE,
        f"python/{EAGLE}",
        f"fork/python/{EAGLE}",
        f"/home/me/fork/python/{EAGLE}",
        f"fork/../fork/python/{EAGLE}",
    ],
)
def test_a_line(sample: CodeMap, name: str) -> None:
    assert find_place(sample, f"{name}:322") == LinePlace(EAGLE, 322)


def test_a_phase_alone_is_that_of_the_worker_that_runs(sample: CodeMap) -> None:
    eagle = next(worker for worker in sample.workers if worker.name == "EAGLEWorker")
    place = find_place(sample, "verify", [eagle.id])
    assert isinstance(place, PhasePlace)
    assert (place.worker.name, place.phase.name) == ("EAGLEWorker", "verify")


@pytest.mark.parametrize("text", ["disable_cuda_graph", "--disable-cuda-graph"])
def test_a_launch_argument(sample: CodeMap, text: str) -> None:
    assert find_place(sample, text, (), {"disable_cuda_graph"}) == ArgumentPlace(
        "disable_cuda_graph"
    )


def test_the_phases_that_have_an_argument_in_a_test(sample: CodeMap) -> None:
    tested = leaf("server_args.disable_cuda_graph", AtomKind.LAUNCH)
    worker = sample.workers[0]
    phase = replace(worker.phases[0], arms=(Arm("s", SinkKind.GRAPH, tested, ()),))
    others = tuple(replace(p, arms=()) for p in worker.phases[1:])
    codemap = replace(sample, workers=(replace(worker, phases=(phase, *others)),))
    flag = "--disable-cuda-graph"
    found = argument_reason(codemap, "disable_cuda_graph", flag)
    assert found.facts[0] == f"a launch argument: {flag}"
    assert found.passes == (f"{worker.name}.{phase.name}",)
    assert not argument_reason(codemap, "cuda_graph", "--cuda-graph").passes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("verify", r"verify is a phase of .*EAGLEWorker.*; name one, as .*--args-file"),
        ("EAGLEWorker.verfy", "did you mean EAGLEWorker.verify"),
        ("eagle_workr.py:3", "did you mean eagle_worker.py"),
    ],
)
def test_a_place_that_is_none(sample: CodeMap, text: str, message: str) -> None:
    with pytest.raises(SpecmapError, match=message):
        find_place(sample, text)


def test_a_line_without_a_flag_points_to_the_constant(sample: CodeMap) -> None:
    found = line_reason(sample, EAGLE, 322, SOURCE, ())
    assert found.facts[0] == "no graph flag is set here"
    assert found.likely[0].span.line == 308
    assert "constant False" in found.likely[0].why


def test_a_line_with_a_flag_says_what_it_is(sample: CodeMap) -> None:
    found = line_reason(sample, EAGLE, 308, SOURCE, ())
    assert "can_run_cuda_graph is constant False, phase target_prefill" in found.facts
    assert found.likely == ()


def test_the_guards_of_a_line_are_those_of_its_function(sample: CodeMap) -> None:
    """Another worker's test on its way to a shared function is no test of this line."""
    flag = next(f for f in sample.flags if f.span.file == EAGLE and f.span.line == 308)
    own = next(g for g in flag.guards if g.span.line == 290)
    foreign = replace(own, holder=symbol_id("sglang/srt/speculative/other.py", "Other.step"))
    holder = next(f for f in sample.functions if f.id == flag.holder)
    changed = replace(
        sample,
        flags=(replace(flag, guards=(foreign, own)),),
        functions=(replace(holder, span=Span(EAGLE, 278, 330)),),
    )
    assert line_reason(changed, EAGLE, 308, SOURCE, ()).guards == (own,)


def test_a_line_that_is_not_there(sample: CodeMap) -> None:
    with pytest.raises(SpecmapError, match="has 400 lines"):
        line_reason(sample, EAGLE, 401, SOURCE, ())


def test_a_symbol_lists_the_phases_through_it(sample: CodeMap) -> None:
    place = find_place(sample, "CudaGraphRunner.replay")
    assert isinstance(place, SymbolPlace)
    assert "EAGLEWorker.verify" in symbol_reason(sample, place.symbol).passes


def test_a_phase_names_its_chain_and_its_tests(sample: CodeMap) -> None:
    place = find_place(sample, "EAGLEWorker.verify")
    assert isinstance(place, PhasePlace)
    reason = phase_reason(sample, place.worker, place.phase)
    graph = next(route for route in reason.routes if route.kind == "graph")
    assert [hop.span.line for hop in graph.hops][:2] == [316, 716]
    assert graph.hops[0].guards[0].span.line == 290
    assert reason.needs
    assert all(need.term.value is None for need in reason.needs)


@pytest.mark.parametrize(
    ("text", "maybe"),
    [
        ("return logits_output, ids, bid, 0, False", True),
        ("can_run_cuda_graph = self.verify(batch)", True),
        ("# can_run_cuda_graph is False here", False),
        ("flag = False", False),
    ],
)
def test_which_lines_of_another_release_are_looked_at(text: str, maybe: bool) -> None:
    assert may_set_flag([text], 1, {"can_run_cuda_graph"}) is maybe
    assert not may_set_flag([text], 2, {"can_run_cuda_graph"})


def test_a_worker_that_does_not_run_names_the_one_that_does(sample: CodeMap) -> None:
    place = find_place(sample, "EAGLEWorker.verify")
    assert isinstance(place, PhasePlace)
    reason = not_run(sample, place.worker, place.phase, outcome())
    assert "it runs EAGLEWorkerV2; ask: specmap why" in reason.note
    assert "EAGLEWorkerV2.verify with the same options" in reason.note
    refused = not_run(sample, place.worker, place.phase, outcome(refusal=REFUSAL))
    assert "the server refuses to start" in refused.note


def test_the_places_of_a_flag(sample: CodeMap) -> None:
    place = find_place(sample, "can_run_cuda_graph")
    assert place == FlagPlace("can_run_cuda_graph")
    found = flag_reason(sample, "can_run_cuda_graph")
    assert any(
        fact.startswith(f"{EAGLE}:308: can_run_cuda_graph is constant False, phase target_prefill")
        for fact in found.facts
    )


def test_a_file_without_a_line_lists_its_methods_and_phases(sample: CodeMap) -> None:
    assert find_place(sample, "eagle_worker.py") == FilePlace(EAGLE)
    found = file_reason(sample, EAGLE)
    assert "EAGLEWorker.verify" in found.passes
    assert any("EAGLEWorker.verify, phase EAGLEWorker.verify" in fact for fact in found.facts)
