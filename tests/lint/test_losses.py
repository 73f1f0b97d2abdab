"""A phase that a change takes out of its graph: one finding, at the change that did it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.finding import FindingStatus, LintReport
from specmap.codemap.rule import Confidence
from specmap.review import Request, lint_tree
from tests.review_tree import DRAFT, RUNNER, VERIFY, commit, edit, git, repository

MODEL_RUNNER = "sglang/srt/model_executor/model_runner.py"
MODES = "sglang/srt/model_executor/forward_batch_info.py"
WORKER = "sglang/srt/speculative/eagle_worker.py"
GRAPHS = "sglang/srt/speculative/eagle_graphs.py"
CAN_RUN = "        return forward_batch.batch_size <= self.max_bs\n"
ASKED = "            and self.graph_runner.can_run(forward_batch)\n"
INIT = "    def __init__(self, server_args, is_draft_worker: bool):\n"
IDLE = "            or self == ForwardMode.IDLE"
VERIFIED = f"            or self == ForwardMode.TARGET_VERIFY\n{IDLE}"

IMPORTED = "from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner\n"
SWITCH = """
    def apply_runtime_state(self, state):
        self.target_worker.model_runner.graph_runner = CudaGraphRunner(state)
"""


@pytest.fixture
def fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "cache"))
    folder = repository(tmp_path / "fork")
    monkeypatch.chdir(folder)
    return folder


def reviewed(**asked: object) -> LintReport:
    return lint_tree(Request(base="HEAD", **asked)).report  # type: ignore[arg-type]


def new(report: LintReport) -> list[tuple[str, str, int]]:
    return [(f.rule.id, f.match.span.file, f.match.span.line) for f in report.new]


def line_of(fork: Path, file: str, text: str) -> int:
    source = (fork / "python" / file).read_text("utf-8")
    return source[: source.index(text)].count("\n") + 1


# The ways a newcomer tried, and more of their kind: where the change stands, and what it is.
INDIRECT = {
    "a mode test without verify": (
        MODES,
        ((VERIFIED, IDLE),),
        "            or self == ForwardMode.IDLE",
    ),
    "one more test at the decision": (
        MODEL_RUNNER,
        ((ASKED, f"{ASKED}            and not forward_batch.forward_mode.is_target_verify()\n"),),
        "            and not forward_batch",
    ),
    "the runner refuses verify": (
        RUNNER,
        ((CAN_RUN, "        if forward_batch.forward_mode.is_target_verify():\n"
          f"            return False\n{CAN_RUN}"),),
        "        if forward_batch.forward_mode.is_target_verify()",
    ),
    "a helper that says no": (
        MODEL_RUNNER,
        ((ASKED, f"{ASKED}            and self._allowed(forward_batch)\n"),
         (INIT, f"    def _allowed(self, forward_batch):\n        return False\n\n{INIT}")),
        "            and self._allowed",
    ),
    "an attribute set elsewhere": (
        RUNNER,
        ((CAN_RUN, CAN_RUN.replace("\n", " and self.replays_verify\n")),
         ("        self.graphs = {}\n",
          "        self.graphs = {}\n        self.replays_verify = False\n")),
        "        return forward_batch.batch_size <= self.max_bs and",
    ),
    "a changed default": (
        MODEL_RUNNER,
        ((INIT, INIT.replace("bool)", "bool, graphs: bool = False)")),
         ("        if not server_args", "        if graphs and not server_args")),
        "    def __init__(self, server_args, is_draft_worker: bool, graphs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", INDIRECT)
def test_one_finding_at_the_change_that_did_it(fork: Path, way: str) -> None:
    file, changes, at = INDIRECT[way]
    edit(fork / "python", file, *changes)
    report = reviewed()
    assert new(report) == [("SPM113", file, line_of(fork, file, at))]
    (finding,) = report.new
    assert finding.match.phases == ("verify",)
    assert {w.rpartition("::")[2] for w in finding.match.workers} == {"EAGLEWorker", "NGRAMWorker"}


def test_a_runner_that_a_setting_swaps_in_is_no_replacement(fork: Path) -> None:
    """With adaptive speculation, off by default, the worker stores other runners while it runs."""
    worker = fork / "python" / WORKER
    worker.write_text(f"{IMPORTED}{worker.read_text('utf-8')}{SWITCH}", "utf-8")
    commit(fork, "adaptive speculation")
    file, changes, at = INDIRECT["a changed default"]
    edit(fork / "python", file, *changes)
    report = reviewed()
    assert new(report) == [("SPM113", file, line_of(fork, file, at))]
    (finding,) = report.new
    assert {w.rpartition("::")[2] for w in finding.match.workers} == {"EAGLEWorker", "NGRAMWorker"}
    assert "(now eager)" in finding.match.message


def test_what_repeats_it_at_untouched_lines_is_folded(fork: Path) -> None:
    file, changes, at = INDIRECT["a mode test without verify"]
    edit(fork / "python", file, *changes)
    report = reviewed()
    folded = [f for f in report.findings if f.reason.startswith("follows from")]
    assert {f.status for f in folded} == {FindingStatus.BASELINED}
    place = f"forward_batch_info.py:{line_of(fork, file, at)}"
    assert {f.reason for f in folded} == {f"follows from SPM113 at {place}"}
    assert {f.rule.id for f in folded} == {"SPM106"}


@pytest.mark.parametrize("selector", ["SPM1", "graph-lost", "graph-coverage"])
def test_a_choice_of_rules_reports_its_part_of_the_whole(fork: Path, selector: str) -> None:
    file, changes, _ = INDIRECT["a mode test without verify"]
    edit(fork / "python", file, *changes)
    chosen = reviewed(select=(selector,))
    ids = {rule.id for rule in chosen.rules}
    assert new(chosen) == [found for found in new(reviewed()) if found[0] in ids]


def test_a_finding_at_the_change_is_enough(fork: Path) -> None:
    old = "bool(\n            forward_batch.forward_mode.is_cuda_graph()\n            and "
    old += f"self.graph_runner\n{ASKED}        )"
    edit(fork / "python", MODEL_RUNNER, (f"can_run_graph = {old}", "can_run_graph = False"))
    report = reviewed()
    assert [(f.rule.id, f.match.phases) for f in report.new] == [("SPM101", ("verify",))]


def test_an_untouched_decision_beside_many_changes(fork: Path) -> None:
    file, changes, at = INDIRECT["a mode test without verify"]
    edit(fork / "python", file, *changes)
    edit(fork / "python", VERIFY, ("class EagleVerify:\n", "LIMIT = 3\n\n\nclass EagleVerify:\n"))
    edit(fork / "python", GRAPHS, ("\nclass ", "\nLIMIT = 3\n\n\nclass "))
    assert new(reviewed()) == [("SPM113", file, line_of(fork, file, at))]


def test_it_says_when_it_cannot_tell(fork: Path) -> None:
    """The decision depends on two constants of a module, and both of them changed."""
    switched = VERIFIED.replace("\n", " and WIDE and DEEP\n", 1)
    switches = "\nWIDE = True\nA = 3\nDEEP = True\n\n\nclass ForwardMode("
    edit(fork / "python", MODES, (VERIFIED, switched), ("\n\nclass ForwardMode(", switches))
    commit(fork, "two switches")
    edit(fork / "python", MODES, ("WIDE = True", "WIDE = False"), ("DEEP = True", "DEEP = False"))
    (finding,) = reviewed().new
    assert (finding.rule.id, finding.confidence) == ("SPM113", Confidence.MEDIUM)
    assert "which of the changes did it cannot be told" in finding.match.message
    assert [step.text for step in finding.match.related] == [
        "also changed: WIDE = False",
        "also changed: DEEP = False",
    ]


def test_a_comment_accepts_it(fork: Path) -> None:
    allow = "  # specmap: allow graph-lost -- measured, eager is faster"
    text = f"{ASKED}            and not forward_batch.forward_mode.is_target_verify(){allow}\n"
    edit(fork / "python", MODEL_RUNNER, (ASKED, text))
    report = reviewed()
    assert new(report) == []
    assert [f.reason for f in report.findings if f.status is FindingStatus.SUPPRESSED] == [
        "measured, eager is faster"
    ]
    assert new(lint_tree(Request()).report) != []


def test_without_the_rule_the_others_speak(fork: Path) -> None:
    file, changes, _ = INDIRECT["a mode test without verify"]
    edit(fork / "python", file, *changes)
    assert [f.rule.id for f in reviewed(ignore=("graph-lost",)).new] == ["SPM106"]


@pytest.mark.parametrize("import_stays", [True, False])
def test_a_mixin_that_is_gone_is_told_at_the_calls_of_its_methods(
    fork: Path, import_stays: bool
) -> None:
    (fork / "python" / DRAFT).unlink()
    if not import_stays:
        taken = ("from sglang.srt.speculative.eagle_draft import EagleDraft\n", "")
        edit(fork / "python", WORKER, taken, ("EagleVerify, EagleDraft,", "EagleVerify,"))
    report = reviewed()
    calls = ("self.draft(batch)", "self.draft_extend(batch)")
    assert new(report) == [("SPM113", WORKER, line_of(fork, WORKER, call)) for call in calls]
    assert "(now nothing: self.draft is not defined)" in report.new[0].match.message


def test_a_phase_that_is_called_no_more_is_no_loss(fork: Path) -> None:
    edit(fork / "python", WORKER, ("        self.draft_extend(batch)\n", ""))
    assert new(reviewed()) == []


def test_a_gain_is_no_loss(fork: Path) -> None:
    file, changes, _ = INDIRECT["a mode test without verify"]
    edit(fork / "python", file, *changes)
    commit(fork, "lost")
    edit(fork / "python", file, *((now, was) for was, now in changes))
    assert new(reviewed()) == []
    assert git(fork, "status", "--short") != ""


def test_each_worker_is_named_with_what_it_lost(fork: Path) -> None:
    """NGRAM drafts without a model: it has no draft pass to lose."""
    may = " and forward_batch.forward_mode.may_replay()"
    own = "self.cuda_graph_runner.can_run(forward_batch)"
    enum = "\n    def may_replay(self):\n        return True\n\n    def is_cuda_graph(self"
    edit(fork / "python", MODES, ("\n    def is_cuda_graph(self", enum))
    edit(fork / "python", DRAFT, (own, own + may))
    edit(fork / "python", MODEL_RUNNER, (ASKED, ASKED.replace("\n", may + "\n")))
    commit(fork, "a test that holds")
    edit(
        fork / "python",
        MODES,
        ("return True\n\n    def is_cuda", "return False\n\n    def is_cuda"),
    )
    (finding,) = reviewed().new
    assert finding.match.message.startswith(
        "draft, verify of EAGLEWorker and verify of NGRAMWorker could replay a graph in the base"
    )


def test_two_losses_of_one_change_have_their_own_causes(fork: Path) -> None:
    file, changes, _ = INDIRECT["a mode test without verify"]
    edit(fork / "python", file, *changes)
    asked = "self.cuda_graph_runner.can_run(forward_batch)"
    edit(fork / "python", DRAFT, (asked, f"{asked} and forward_batch.batch_size < 0 and False"))
    found: dict[tuple[str, ...], tuple[str, str]] = {
        f.match.phases: (f.rule.id, f.match.span.file) for f in reviewed().new
    }
    assert found[("verify",)] == ("SPM113", file)
    assert found[("draft",)][1] == DRAFT
