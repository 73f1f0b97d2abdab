"""Two maps of a small tree, one of them changed at one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specmap.codemap.graph import CodeMap
from specmap.codemap.verdict import PhaseName
from specmap.compare.diff import compare_maps
from specmap.compare.matching import shape
from specmap.compare.model import Change, MapDiff
from specmap.compare.renames import find_renames
from tests.review_tree import (
    DRAFT,
    LAST_LINE,
    RUNNER,
    SPECULATIVE,
    SYNC,
    VERIFY,
    edit,
    edit_everywhere,
    plant,
    scan,
)

Compare = Callable[[Callable[[Path], None]], MapDiff]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> CodeMap:
    return scan(plant(tmp_path_factory.mktemp("trees") / "old"))


@pytest.fixture
def compare(old: CodeMap, tmp_path: Path) -> Compare:
    def compared(change: Callable[[Path], None]) -> MapDiff:
        folder = plant(tmp_path / "new")
        change(folder)
        return compare_maps(old, scan(folder))

    return compared


def test_nothing_changed(old: CodeMap) -> None:
    assert compare_maps(old, old).empty


def test_comments_order_and_extracted_code_are_no_difference(compare: Compare) -> None:
    def change(folder: Path) -> None:
        edit(folder, VERIFY, ("class EagleVerify:\n", "# More.\n\n\nclass EagleVerify:\n"))
        edit(
            folder, DRAFT,
            ("    def draft(self, batch: ScheduleBatch):\n",
             "    def draft(self, batch: ScheduleBatch):\n        return self._draft(batch)\n\n"
             "    def _draft(self, batch: ScheduleBatch):\n"),
        )  # fmt: skip

    assert compare(change).empty


def test_a_renamed_method_is_a_rename_and_nothing_else(compare: Compare) -> None:
    def change(folder: Path) -> None:
        edit_everywhere(folder, {"draft_forward": "propose_tokens"})

    found = compare(change)
    assert [(name.was, name.now) for name in found.names] == [
        ("EagleDraft.draft_forward", "EagleDraft.propose_tokens")
    ]
    assert not (found.workers or found.phases or found.decisions or found.syncs)


def test_a_renamed_method_that_calls_a_new_one_is_a_rename(tmp_path: Path) -> None:
    mode = "        batch.forward_mode = ForwardMode.DECODE\n"
    before, after = plant(tmp_path / "before"), plant(tmp_path / "after")
    for folder in (before, after):
        edit(folder, DRAFT, (mode, f"{mode}        self.seed(batch)\n        self.align(batch)\n"))
    noted = "    def _note(self, batch: ScheduleBatch):\n        self.noted = batch\n\n"
    define = "    def draft(self, batch: ScheduleBatch):\n"
    edit(after, DRAFT, (define, f"{noted}{define}        self._note(batch)\n"))
    edit_everywhere(after, {"def draft(": "def propose(", ".draft(": ".propose("})
    found = find_renames(scan(before), scan(after))
    assert found.functions == {"EagleDraft.draft": "EagleDraft.propose"}


def test_a_renamed_attribute_is_a_rename(tmp_path: Path) -> None:
    before, after = plant(tmp_path / "before"), plant(tmp_path / "after")
    for folder, name in ((before, "seq_lens_sum"), (after, "total_lens")):
        edit(folder, VERIFY, (LAST_LINE, f"        n = batch.{name}.item()\n{LAST_LINE}"))
    found = compare_maps(scan(before), scan(after))
    assert [(name.kind, name.was, name.now) for name in found.names] == [
        ("name", "seq_lens_sum", "total_lens")
    ]
    assert found.syncs == ()


def test_a_name_may_become_one_that_another_function_had(tmp_path: Path) -> None:
    before, after = plant(tmp_path / "before"), plant(tmp_path / "after")
    decode = "        batch.forward_mode = ForwardMode.DECODE\n"
    for folder, name in ((before, "totl_lens"), (after, "total_lens")):
        edit(folder, VERIFY, (LAST_LINE, f"        n = batch.{name}.item()\n{LAST_LINE}"))
        edit(folder, DRAFT, (decode, f"{decode}        n = batch.total_lens.item()\n"))
    found = compare_maps(scan(before), scan(after))
    assert [(name.was, name.now) for name in found.names] == [("totl_lens", "total_lens")]
    assert found.syncs == ()


def test_another_operation_is_no_rename(tmp_path: Path) -> None:
    before, after = plant(tmp_path / "before"), plant(tmp_path / "after")
    for folder, name in ((before, "item"), (after, "tolist")):
        edit(folder, VERIFY, (LAST_LINE, f"        n = batch.seq_lens.{name}()\n{LAST_LINE}"))
    found = compare_maps(scan(before), scan(after))
    assert found.names == ()
    assert {sync.change for sync in found.syncs} == {Change.ADDED, Change.REMOVED}


def test_a_renamed_worker_is_a_rename(compare: Compare) -> None:
    found = compare(lambda folder: edit_everywhere(folder, {"EAGLEWorker": "TreeWorker"}))
    (worker,) = found.workers
    assert (worker.change, worker.was, worker.name) == (
        Change.RENAMED, "EAGLEWorker", "TreeWorker",
    )  # fmt: skip
    assert not (found.phases or found.decisions or found.syncs)


def test_a_worker_that_is_gone(compare: Compare) -> None:
    """The factory's last arm gave NGRAMWorker."""

    def change(folder: Path) -> None:
        edit(folder, f"{SPECULATIVE}/spec_info.py", ("return NGRAMWorker", "raise ValueError"))

    assert [(w.change, w.name) for w in compare(change).workers] == [
        (Change.REMOVED, "NGRAMWorker")
    ]


def test_a_synchronisation_that_was_added(compare: Compare) -> None:
    found = compare(lambda folder: edit(folder, VERIFY, (LAST_LINE, SYNC + LAST_LINE)))
    (sync,) = found.syncs
    assert (sync.change, sync.operation) == (Change.ADDED, "batch.seq_lens.sum().item()")
    assert (sync.holder, sync.between) == ("EagleVerify.verify", "verify->draft_extend")
    assert not (found.workers or found.phases or found.decisions or found.names)


def test_a_phase_that_lost_its_graph(compare: Compare) -> None:
    def change(folder: Path) -> None:
        edit(
            folder, DRAFT,
            ("        if can_cuda_graph:\n            return self.cuda_graph_runner.replay",
             "        if False:\n            return self.cuda_graph_runner.replay"),
        )  # fmt: skip

    (phase,) = compare(change).phases
    assert (phase.phase, phase.before, phase.after) == (
        PhaseName.DRAFT, ("graph", "eager"), ("eager",),
    )  # fmt: skip
    assert (phase.lost, phase.gained, phase.workers) == (("graph",), (), ("EAGLEWorker",))


PASS = "self.model_runner.forward(forward_batch)"
LOOKED_UP = "getattr(self.model_runner, self.server_args.way)(forward_batch)"


def test_a_phase_that_the_map_lost_track_of_is_not_lost(old: CodeMap, tmp_path: Path) -> None:
    """The target is asked by a method name that only the launch knows."""
    tree = plant(tmp_path / "tree")
    edit(tree, "sglang/srt/managers/tp_worker.py", (PASS, LOOKED_UP))
    found = compare_maps(old, scan(tree))
    ways = {change.phase: (change.before, change.after) for change in found.phases}
    assert ways[PhaseName.VERIFY] == (("graph", "eager"), ("unknown",))
    assert ways[PhaseName.TARGET_PREFILL] == (("eager",), ("unknown",))
    assert not any(change.lost for change in found.phases)


def test_a_phase_that_lost_its_graph_says_where_it_went(compare: Compare) -> None:
    """``draft`` calls a new function that never asks the runner."""

    def change(folder: Path) -> None:
        edit(
            folder, DRAFT,
            ("        batch.forward_mode = ForwardMode.DECODE\n",
             "        batch.forward_mode = ForwardMode.DECODE\n"
             "        return self._plain(batch)\n\n"
             "    def _plain(self, batch: ScheduleBatch):\n"),
            ("        if can_cuda_graph:\n            return self.cuda_graph_runner.replay(forward",
             "        if False:\n            return self.cuda_graph_runner.replay(forward"),
        )  # fmt: skip

    (phase,) = compare(change).phases
    (turn,) = phase.turns
    assert (turn.caller, turn.callee, turn.new) == ("EagleDraft.draft", "EagleDraft._plain", True)
    assert turn.span.file == DRAFT


def test_a_phase_with_another_name_says_where_it_went(tmp_path: Path) -> None:
    """The method that drafts has another name, and calls a new one instead of the runner."""
    mode = "        batch.forward_mode = ForwardMode.DECODE\n"
    before, after = plant(tmp_path / "before"), plant(tmp_path / "after")
    for folder in (before, after):
        edit(folder, DRAFT, (mode, f"{mode}        self.seed(batch)\n        self.align(batch)\n"))
    edit(
        after, DRAFT,
        ("        if can_cuda_graph:\n            return self.cuda_graph_runner.replay(forward",
         "        if False:\n            return self.cuda_graph_runner.replay(forward"),
        ("        return self.draft_forward(forward_batch)\n",
         "        return self._plain(forward_batch)\n\n"
         "    def _plain(self, forward_batch):\n"
         "        return self.draft_forward(forward_batch)\n"),
    )  # fmt: skip
    edit_everywhere(after, {"def draft(": "def drafts(", ".draft(": ".drafts("})
    (phase,) = compare_maps(scan(before), scan(after)).phases
    (turn,) = phase.turns
    assert (turn.caller, turn.callee, turn.new) == ("EagleDraft.drafts", "EagleDraft._plain", True)


def test_terms_that_a_decision_gained_lost_and_writes_otherwise(compare: Compare) -> None:
    def change(folder: Path) -> None:
        edit(
            folder, RUNNER,
            ("return forward_batch.batch_size <= self.max_bs",
             "return forward_batch.batch_size <= self.max_captured_bs and "
             "forward_batch.replace_embeds is None"),
            ("self.max_bs", "self.max_captured_bs"),
        )  # fmt: skip

    (decision,) = compare(change).decisions
    assert (decision.change, decision.holder) == (Change.CHANGED, "CudaGraphRunner.can_run")
    assert PhaseName.VERIFY in decision.phases
    assert [(term.change, term.text) for term in decision.terms] == [
        (Change.REMOVED, "forward_batch.batch_size <= self.max_bs"),
        (Change.ADDED, "forward_batch.batch_size <= self.max_captured_bs"),
        (Change.ADDED, "forward_batch.replace_embeds is None"),
    ]


def test_a_fallback_that_became_an_error(old: CodeMap, tmp_path: Path) -> None:
    test = "forward_batch.batch_size <= self.max_bs"
    hidden = "forward_batch.capture_hidden_mode == self.capture_hidden_mode"
    before = plant(tmp_path / "before")
    edit(before, RUNNER, (f"return {test}", f"return {test} and {hidden}"))
    after = plant(tmp_path / "after")
    refuse = f"        if not {hidden}:\n            raise RuntimeError('hidden mode')\n"
    edit(after, RUNNER, ("        raw_bs = forward", f"{refuse}        raw_bs = forward"))
    (decision,) = compare_maps(scan(before), scan(after)).decisions
    (term,) = decision.terms
    assert (term.change, term.text) == (Change.REMOVED, hidden)
    assert term.error is not None
    line = (after / RUNNER).read_text("utf-8").splitlines()[term.error.line - 1]
    assert line.strip() == "raise RuntimeError('hidden mode')"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("int(lens.max())", "int(lengths.max())", True),
        ("lens[keep]", "lengths[kept]", True),
        ("self.lens.item()", "self.lengths.item()", False),
        ("lens.max().item()", "lens.min().item()", False),
        ("f(a, b)", "f(b, a)", True),
        ("f(a, a)", "f(a, b)", False),
        ("length(a)", "width(a)", False),
    ],
)
def test_shapes_forget_local_names_only(one: str, other: str, same: bool) -> None:
    assert (shape(one) == shape(other)) is same


@pytest.mark.parametrize("text", ["a name", "draft", "self.draft", "x ="])
def test_text_without_an_operation_has_no_shape(text: str) -> None:
    assert shape(text) is None
