from __future__ import annotations

from dataclasses import replace

import pytest

from specmap.codemap.event import Run, RunFinding, RunProblem, SizeCount, State
from specmap.codemap.explanation import Alternative, SettingChange
from specmap.codemap.finding import LintReport
from specmap.codemap.graph import Arm, Problem
from specmap.codemap.outcome import Outcome, PhaseOutcome, WorkerOutcome
from specmap.codemap.rule import Severity
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict
from specmap.fix.catalogue import CATALOGUE
from specmap.report.page.headline import headline
from specmap.report.page.ways import eager_ways
from tests.report.page.subjects import lint, subject
from tests.report.sample_outcome import REFUSAL, outcome
from tests.report.sample_run import EAGER_VERIFY, PREFILL, RUN, RUNNER, phase, rank


def judged(**verdicts: Verdict) -> Outcome:
    """Return a launch without concerns whose decode phases have these verdicts."""
    (worker,) = outcome().workers
    phases = tuple(_phase(worker, PhaseName(name), found) for name, found in verdicts.items())
    return replace(
        outcome(), batch_size=None, workers=(replace(worker, phases=phases),), concerns=(),
        expectations=(),
    )  # fmt: skip


def _phase(worker: WorkerOutcome, name: PhaseName, verdict: Verdict) -> PhaseOutcome:
    like = worker.phases[1 if verdict is Verdict.UNKNOWN else 0]
    return replace(like, name=name, verdict=verdict)


def test_without_a_launch_conditions_are_open_and_the_facts_are_named() -> None:
    made = headline(subject())
    assert made.level == "unknown"
    assert made.text.startswith("Open until a launch is given: ")
    assert "--args" in made.todo[0]
    asked = [text for text, span in made.because if span is not None]
    assert "2 phases ask for self.graph_runner" in asked


def test_where_the_cycle_replays_the_graph_is_not_the_cause_and_others_are_named() -> None:
    """The causes are those of docs/not-the-graph.md; a prefill runs eager as a rule."""
    one = judged(
        draft=Verdict.GRAPH, verify=Verdict.GRAPH, target_prefill=Verdict.EAGER,
        draft_prefill=Verdict.EAGER,
    )  # fmt: skip
    made = headline(subject(outcome=one))
    assert made.level == "ok"
    assert made.text == (
        "draft and verify of EAGLEWorkerV2 replay their graphs at a batch of 1: the graph is not "
        "the cause."
    )
    causes = ("accept length", "many requests", "after an update", "docs/not-the-graph.md")
    assert all(any(cause in line for line in made.todo) for cause in causes)
    assert made.because == [
        (
            "target_prefill and draft_prefill run eager, as is usual: once a request, not once a "
            "cycle", None,
        )
    ]  # fmt: skip


def test_that_the_model_is_assumed_is_said_beside_the_good_news() -> None:
    one = judged(verify=Verdict.GRAPH)
    (worker,) = one.workers
    phases = tuple(replace(p, assumed=True) for p in worker.phases)
    made = headline(subject(outcome=replace(one, workers=(replace(worker, phases=phases),))))
    assert any("--model-config" in text for text, _ in made.because)


def test_a_lost_graph_is_named_with_its_test_and_what_brings_it_back() -> None:
    back = Alternative((SettingChange("cuda_graph_max_bs", 2, 4),), Verdict.GRAPH)
    one = subject(
        outcome=judged(draft=Verdict.GRAPH, verify=Verdict.EAGER),
        changes={PhaseName.VERIFY: (back,), PhaseName.DRAFT: (back,)},
    )
    made = headline(one)
    assert made.level == "bad"
    assert made.text == (
        "verify of EAGLEWorkerV2 runs eager at a batch of 1, though a graph could replay."
    )
    assert made.todo == ["set cuda_graph_max_bs to 4 (now 2): GRAPH for verify and draft"]
    assert made.because[0][0] == (
        "verify: cuda_graph_bs <= self.max_bs is false, bs 4 > largest captured 2"
    )


def test_a_switch_that_can_be_left_out_is_named_once() -> None:
    name = "disable_cuda_graph"
    left_out = Alternative((SettingChange(name, True, None, removed=True),), Verdict.GRAPH)
    flipped = Alternative((SettingChange(name, True, False),), Verdict.GRAPH)
    one = subject(
        outcome=judged(verify=Verdict.EAGER), changes={PhaseName.VERIFY: (left_out, flipped)}
    )
    assert headline(one).todo == ["leave out disable_cuda_graph (now True): GRAPH for verify"]
    one = replace(one, changes={PhaseName.VERIFY: (flipped,)})
    assert headline(one).todo == ["set disable_cuda_graph to False (now True): GRAPH for verify"]


def test_what_a_setting_brings_back_is_not_put_down_to_the_source() -> None:
    back = Alternative((SettingChange("cuda_graph_max_bs", 2, 4),), Verdict.GRAPH)
    one = subject(
        outcome=judged(verify=Verdict.EAGER), lint=coverage("EAGLEWorkerV2", PhaseName.VERIFY),
        rewrites=CATALOGUE,
    )  # fmt: skip
    found = "SPM105: verify goes past the runner"
    assert found in [text for text, _ in headline(one).because]
    made = headline(replace(one, changes={PhaseName.VERIFY: (back,)}))
    assert found not in [text for text, _ in made.because]
    assert made.todo == ["set cuda_graph_max_bs to 4 (now 2): GRAPH for verify"]


def test_where_no_setting_helps_that_is_said() -> None:
    one = subject(outcome=judged(verify=Verdict.EAGER), changes={PhaseName.VERIFY: ()})
    made = headline(one)
    assert made.todo == []
    assert made.because[-1][0] == (
        "verify: no change of settings that was tried brings the graph back"
    )


def test_a_verify_that_has_no_way_to_a_graph_is_bad_whatever_the_others_do() -> None:
    one = judged(draft=Verdict.GRAPH, verify=Verdict.EAGER)
    (worker,) = one.workers
    phases = tuple(replace(p, could_replay=p.name is PhaseName.DRAFT) for p in worker.phases)
    found = coverage(worker.name, PhaseName.VERIFY)
    made = headline(
        subject(
            outcome=replace(one, workers=(replace(worker, phases=phases),)),
            lint=found, rewrites=CATALOGUE, tree="sglang==0.5.9",
        )
    )  # fmt: skip
    assert made.level == "bad"
    assert made.text == (
        "verify of EAGLEWorkerV2 has no way to a graph in this source, whatever the settings."
    )
    assert "SPM105: verify goes past the runner" in [text for text, _ in made.because]
    assert made.todo == [
        "see whether a rewrite brings the graph back: specmap fix sglang==0.5.9 --select SPM105 "
        "--diff"
    ]


def test_a_note_of_lint_is_no_cause_beside_an_error() -> None:
    """SPM103, a flag that is dropped, is a note: its rewrite brings no graph back."""
    outcome = judged(verify=Verdict.EAGER)
    found = coverage("EAGLEWorkerV2", PhaseName.VERIFY).findings[0]
    note = replace(
        found, rule=replace(found.rule, id="SPM103", severity=Severity.NOTE), fingerprint="2" * 32
    )
    report = replace(coverage("EAGLEWorkerV2", PhaseName.VERIFY), findings=(note, found))
    made = headline(subject(outcome=outcome, lint=report, rewrites=CATALOGUE))
    assert not any(text.startswith("SPM103") for text, _ in made.because)
    assert made.todo == [
        "see whether a rewrite brings the graph back: specmap fix TREE --select SPM105 --diff"
    ]
    alone = replace(report, findings=(note,))
    made = headline(subject(outcome=outcome, lint=alone, rewrites=CATALOGUE))
    assert any(text.startswith("SPM103") for text, _ in made.because)
    assert made.todo == []


def test_a_command_names_the_tree_as_the_caller_did() -> None:
    one = subject(
        outcome=judged(verify=Verdict.EAGER), lint=coverage("EAGLEWorkerV2", PhaseName.VERIFY),
        rewrites=CATALOGUE, tree="./our fork",
    )  # fmt: skip
    [todo] = headline(one).todo
    assert todo.endswith(": specmap fix './our fork' --select SPM105 --diff")


def test_an_error_that_is_a_cause_is_not_counted_again() -> None:
    report = coverage("EAGLEWorkerV2", PhaseName.VERIFY)
    cause = replace(
        report.findings[0], rule=replace(report.findings[0].rule, severity=Severity.ERROR)
    )
    one = subject(outcome=judged(verify=Verdict.EAGER), lint=replace(report, findings=(cause,)))
    assert not any("besides" in text for text, _ in headline(one).because)
    other = replace(cause, match=replace(cause.match, workers=("f.py::Other",)), fingerprint="3")
    made = headline(replace(one, lint=replace(report, findings=(cause, other))))
    assert "besides" not in " ".join(text for text, _ in made.because), "the same line and message"
    other = replace(other, match=replace(other.match, message="another pass"))
    made = headline(replace(one, lint=replace(report, findings=(cause, other))))
    assert made.because[-1][0].startswith("besides, lint finds 1 error in the tree: SPM105 ")


def test_the_place_is_where_the_way_turns_to_the_class_that_runs_the_model() -> None:
    """Not the phase's head, nor the forward that replaying phases fall back to as well."""
    chain = (
        ("w.py::Worker.step", 5), ("w.py::Worker.verify", 20), ("t.py::Helper.score", 44),
        ("r.py::Runner.extend", 90), ("r.py::Runner.raw", 99),
    )  # fmt: skip
    found = next(p for w in subject().codemap.workers for p in w.phases if p.arms)
    phase = replace(found, arms=(Arm("s", SinkKind.EAGER, found.graph_when, chain),))
    said = ("Helper.score calls Runner.extend", Span("t.py", 44, 44))
    assert eager_ways(phase) == [said]
    alone = replace(phase, arms=(Arm("s", SinkKind.EAGER, found.graph_when, chain[:2]),))
    assert eager_ways(alone) == [("Worker.verify runs the model itself", Span("w.py", 20, 20))]
    graph = Arm("s", SinkKind.GRAPH, found.graph_when, chain)
    assert eager_ways(replace(phase, arms=(*phase.arms, graph))) == []
    assert eager_ways(replace(phase, arms=())) == []

    one = judged(verify=Verdict.EAGER)
    (worker,) = one.workers
    lost = tuple(replace(p, could_replay=False) for p in worker.phases)
    codemap = subject().codemap
    verify = replace(phase, name=PhaseName.VERIFY)
    workers = (replace(codemap.workers[0], id=worker.id, phases=(verify,)),)
    made = headline(subject(
        outcome=replace(one, workers=(replace(worker, phases=lost),)),
        codemap=replace(codemap, workers=workers),
    ))  # fmt: skip
    assert made.because[0] == (
        "verify: Helper.score calls Runner.extend, and no way from there leads to a graph", said[1],
    )  # fmt: skip


def test_a_draft_without_a_graph_is_a_warning() -> None:
    one = judged(draft=Verdict.EAGER, verify=Verdict.GRAPH)
    (worker,) = one.workers
    phases = tuple(replace(p, could_replay=p.name is PhaseName.VERIFY) for p in worker.phases)
    made = headline(subject(outcome=replace(one, workers=(replace(worker, phases=phases),))))
    assert (made.level, made.text) == (
        "warn",
        "draft of EAGLEWorkerV2 has no way to a graph in this source, whatever the settings.",
    )


def test_a_tree_whose_verify_never_replays_needs_no_launch_to_be_bad() -> None:
    codemap = subject().codemap
    workers = tuple(
        replace(
            w, phases=tuple(
                replace(p, verdict=Verdict.EAGER) if p.name is PhaseName.VERIFY else p
                for p in w.phases
            ),
        )
        if w.name == "EAGLEWorker" else w
        for w in codemap.workers
    )  # fmt: skip
    made = headline(
        subject(
            codemap=replace(codemap, workers=workers),
            lint=coverage("EAGLEWorker", PhaseName.VERIFY),
        )
    )
    assert made.level == "bad"
    assert made.text == "verify of EAGLEWorker never replays, whatever the launch."
    assert "SPM105: verify goes past the runner" in [text for text, _ in made.because]


def coverage(worker: str, name: PhaseName) -> LintReport:
    """Return one finding about the graph of a phase."""
    report = lint("verify goes past the runner")
    first = replace(
        report.findings[0],
        rule=replace(report.findings[0].rule, id="SPM105", topic="graph-coverage"),
        match=replace(report.findings[0].match, workers=(f"f.py::{worker}",), phases=(name,)),
    )
    return replace(report, findings=(first,))


def test_what_is_not_known_is_said_with_what_would_settle_it() -> None:
    made = headline(subject(outcome=judged(draft=Verdict.GRAPH, verify=Verdict.UNKNOWN)))
    assert made.level == "unknown"
    assert made.text == "It is not known whether verify of EAGLEWorkerV2 replays a graph."
    assert made.todo == ["settle model config (--model-config)"]
    assert made.because[0][0].endswith("is not known (needs model config)")


@pytest.mark.parametrize("could_replay", [True, False])
def test_an_open_phase_beside_an_eager_one_is_told_too(could_replay: bool) -> None:
    one = judged(draft=Verdict.UNKNOWN, verify=Verdict.EAGER)
    (worker,) = one.workers
    phases = tuple(replace(p, could_replay=could_replay) for p in worker.phases)
    made = headline(subject(outcome=replace(one, workers=(replace(worker, phases=phases),))))
    assert made.level == "bad"
    assert made.text.startswith("verify of EAGLEWorkerV2 ")
    assert made.text.endswith(". It is not known whether draft of EAGLEWorkerV2 replays a graph.")
    assert made.todo == ["settle model config (--model-config)"]
    assert any(text.startswith("draft: ") for text, _ in made.because)


@pytest.mark.parametrize(
    ("found", "level", "text"),
    [
        (outcome(refusal=REFUSAL), "bad", "The server refuses to start: no tree here."),
        (
            replace(outcome(), workers=(), concerns=()), "warn",
            "No speculative worker runs: the command does not speculate.",
        ),
        (
            replace(outcome(), workers=(), concerns=(), partial="1 module was not read"), "unknown",
            "No worker is found for this command, and 1 module was not read.",
        ),
        (
            replace(judged(verify=Verdict.GRAPH), concerns=outcome().concerns), "warn",
            "Admission 48 > 2.",
        ),
        (
            replace(judged(verify=Verdict.GRAPH), expectations=outcome().expectations), "bad",
            "verify was expected GRAPH and is EAGER.",
        ),
        (
            replace(outcome(), workers=tuple(
                replace(w, certain=False, name=n) for w in outcome().workers for n in ("A", "B")
            )), "unknown",
            "It is not known which worker runs: A, B may.",
        ),
    ],
)  # fmt: skip
def test_launches_that_end_otherwise(found: Outcome, level: str, text: str) -> None:
    made = headline(subject(outcome=found))
    assert (made.level, made.text) == (level, text)


def test_a_run_with_an_eager_rank_says_so_first() -> None:
    made = headline(subject(run=RUN, outcome=judged(verify=Verdict.GRAPH)))
    assert made.level == "bad"
    assert made.text.startswith("Rank tp 1 ran verify eager while others replayed it")
    assert ("verify: bs 4 > largest captured 2", RUNNER) in made.because


def test_each_reason_of_a_run_is_told_once_with_its_place() -> None:
    said = "EAGLEWorker.verify ran eager in 74 of 90 passes: bs 4 > largest captured 2"
    first = RunFinding(RunProblem.PHASE_EAGER, "EAGLEWorker.draft ran eager", phase="draft")
    found = RunFinding(RunProblem.PHASE_EAGER, said, phase="verify")
    made = headline(subject(run=replace(RUN, findings=(first, found))))
    assert [place for text, place in made.because if "largest captured" in text] == [RUNNER]
    assert (said, RUNNER) in made.because


def test_phases_that_ran_eager_alike_are_one_sentence() -> None:
    said = "ran eager in 74 of 90 passes: bs 4 > largest captured 2"
    found = [
        RunFinding(RunProblem.PHASE_EAGER, f"EAGLEWorker.{name} {said}", phase=name)
        for name in ("draft", "verify")
    ]
    other = RunFinding(RunProblem.PHASE_EAGER, "EAGLEWorker.draft_extend ran eager in 1 of 90 "
                       "passes", phase="draft_extend")  # fmt: skip
    made = headline(subject(run=replace(RUN, findings=(*found, other))))
    assert made.text == f"draft and verify of EAGLEWorker {said}."
    assert (other.message, None) in made.because
    assert not any(text.startswith("EAGLEWorker.verify") for text, _ in made.because)


def test_a_limit_below_the_batches_that_ran_eager_is_named() -> None:
    ran = replace(EAGER_VERIFY, sizes=(
        SizeCount(2, State.GRAPH, 16), SizeCount(3, State.EAGER, 4), SizeCount(4, State.EAGER, 70),
    ))  # fmt: skip
    one = replace(rank(0, phase("draft"), ran), arguments={"cuda_graph_max_bs": 2, "other": 1})
    run = replace(RUN, ranks=(one,))
    made = headline(subject(run=run, limits=("cuda_graph_max_bs",)))
    assert made.todo == [
        "cuda_graph_max_bs is 2 and batches of 3 to 4 ran eager: raise it to 4, or admit fewer "
        "requests"
    ]
    limit = Alternative((SettingChange("cuda_graph_max_bs", 2, 4),), Verdict.GRAPH)
    other = Alternative((SettingChange("other", 1, 0),), Verdict.GRAPH)
    more = headline(subject(
        run=run, limits=("cuda_graph_max_bs",), changes={PhaseName.VERIFY: (limit, other)}
    ))  # fmt: skip
    assert more.todo == [*made.todo, "set other to 0 (now 1): GRAPH for verify"]
    captured = replace(one, arguments={"cuda_graph_max_bs": 3})
    made = headline(subject(run=replace(RUN, ranks=(captured,)), limits=("cuda_graph_max_bs",)))
    assert made.todo == [], "a batch of 3 ran eager though it is within the limit"


def healthy(*findings: RunFinding) -> Run:
    phases = (PREFILL, phase("draft"), phase("verify"), phase("draft_extend"))
    return replace(RUN, ranks=(rank(0, *phases),), findings=findings)


def test_a_healthy_run_has_nothing_wrong_with_its_graphs() -> None:
    made = headline(subject(run=healthy()))
    assert (made.level, made.todo) == ("ok", [])
    assert made.text == (
        "The graphs are not the cause: they replayed for draft in 90 of 90 passes, verify in "
        "90 of 90 passes, draft_extend in 90 of 90 passes."
    )
    # What the cycle costs instead: SGLang's accept length is 621 tokens of 270 requests.
    assert [text for text, _ in made.because] == [
        "a decode cycle takes 4.70 ms and yields 2.30 tokens a request",
        ".item() (removable) waits 100 us a cycle",
    ]


def test_a_run_that_replayed_all_lost_nothing_whatever_else_was_found() -> None:
    """Such as a launch on the command line that is not the run's own."""
    said = "EAGLEWorker.draft: 90 GRAPH at a batch of 4 where the source says EAGER"
    made = headline(subject(run=healthy(RunFinding(RunProblem.CONTRADICTION, said))))
    assert (made.level, made.text) == ("warn", f"{said}.")
    assert made.because[0][0].startswith("The graphs are not the cause: they replayed for")


def test_some_eager_passes_are_not_called_healthy() -> None:
    mixed = replace(phase("verify"), counts={State.GRAPH: 80, State.EAGER: 10})
    made = headline(subject(run=replace(healthy(), ranks=(rank(0, mixed),))))
    assert made.level == "warn"
    assert made.text == "Some passes ran eager; graphs replayed for verify in 80 of 90 passes."


def test_a_run_that_saw_nothing_is_not_called_healthy() -> None:
    blind = RunFinding(RunProblem.NO_CYCLE, "no decode cycle was seen")
    made = headline(subject(run=healthy(blind)))
    assert made.level == "unknown"
    assert "no decode cycle was seen" in made.text
    assert headline(subject(run=replace(RUN, ranks=(), findings=()))).level == "unknown"


def test_a_partial_map_is_never_ok() -> None:
    codemap = replace(subject().codemap, problems=(Problem("x.py", 3, "invalid syntax"),))
    one = subject(outcome=judged(verify=Verdict.GRAPH), codemap=codemap)
    made = headline(one)
    assert made.level == "unknown"
    unread = "the map is partial, not read: x.py:3 (invalid syntax)"
    assert (unread, None) in made.because


def test_findings_of_lint_stand_behind_the_sentence() -> None:
    made = headline(subject(lint=lint()))
    assert not any("lint" in text for text, _ in made.because), "a warning is no error"
