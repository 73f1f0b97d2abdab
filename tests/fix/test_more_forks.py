"""Forks that lost the graph in other ways: what is repaired, what is refused, what is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from specmap.codemap.remedy import FixReport, Layer, Outcome
from specmap.fixed import Request, fix_tree
from tests.fix.forks import FITS, MODEL_RUNNER, MODES, SCHEDULER, whole
from tests.review_tree import RUNNER, edit

Change = tuple[str, str, str]
DECISION = (
    "        can_run_graph = bool(\n"
    "            forward_batch.forward_mode.is_cuda_graph()\n"
    "            and self.graph_runner\n"
    "            and self.graph_runner.can_run(forward_batch)\n        )\n"
)
CLASS = "class CudaGraphRunner:\n"
CAN_RUN = "    def can_run(self, forward_batch: ForwardBatch):\n"
PROPERTY = "    @property\n    def trees(self):\n        return False\n\n"
DETOUR = (
    "        if forward_batch.forward_mode.is_target_verify():\n"
    "            ret, can_run_graph = self.forward_extend(forward_batch)\n"
    "            return ModelRunnerOutput(ret, can_run_graph)\n"
)
HALF = (
    "    def forward_extend(self, forward_batch):\n"
    "        can_run_graph = self.prefill_runner is not None\n"
    "        ret = self.model.forward(\n"
    "            forward_batch.input_ids, forward_batch.positions, forward_batch\n        )\n"
    "        return (ret, can_run_graph)\n\n"
)
ASKED = (
    "    def _may_replay(self, forward_batch):\n"
    "        if forward_batch.forward_mode.is_target_verify():\n            return False\n"
    f"        return bool({DECISION.partition('bool(')[2]}\n"
)
FORWARD = "    def forward(self, forward_batch: ForwardBatch) -> ModelRunnerOutput:\n"
WITH_TERM = f"{FITS[:-1]} and "
GRAPHS = "        self.graphs = {}\n"
LEFT = "        if {}:\n            return False\n"
TREES_OF = "def trees_of(model_runner):\n    return TREES\n"
IMPORTED = "from sglang.srt.model_executor.forward_batch_info import TREES as trees_are_ready\n"
FITTING = (
    "    def _fits(self, batch):\n        if batch.spec_info is None:\n            return True\n"
    "        return trees_of(self.model_runner)\n"
)


def fork(folder: Path, changes: Sequence[Change]) -> Path:
    whole(folder)
    for file, old, new in changes:
        edit(folder, file, (old, new))
    return folder


def run(folder: Path) -> FixReport:
    return fix_tree(Request(str(folder), ("SPF1",), use_cache=False)).report


REPAIRED: dict[str, tuple[Change, ...]] = {
    "a constant of the class": (
        (RUNNER, FITS, f"{WITH_TERM}self.trees\n"),
        (RUNNER, CLASS, f"{CLASS}    trees = False\n\n"),
    ),
    "an annotated constant of the class": (
        (RUNNER, FITS, f"{WITH_TERM}self.trees\n"),
        (RUNNER, CLASS, f"{CLASS}    trees: bool = False\n\n"),
    ),
    "a property": (
        (RUNNER, FITS, f"{WITH_TERM}self.trees\n"),
        (
            RUNNER,
            CAN_RUN,
            f"    @property\n    def trees(self):\n        return False\n\n{CAN_RUN}",
        ),
    ),
    "a constant of the module": (
        (RUNNER, FITS, f"{WITH_TERM}TREES\n"),
        (RUNNER, CLASS, f"TREES = False\n\n\n{CLASS}"),
    ),
    "a constant of the module behind a method and a function": (
        (RUNNER, f"        {FITS}", f"        {WITH_TERM}self._fits(forward_batch)\n\n{FITTING}"),
        (RUNNER, CLASS, f"TREES = False\n\n\n{TREES_OF}\n\n{CLASS}"),
    ),
    "a constant of another module": (
        (RUNNER, FITS, f"{WITH_TERM}trees_are_ready\n"),
        (RUNNER, CLASS, f"{IMPORTED}\n\n{CLASS}"),
        (MODES, "class ForwardMode(", "TREES = False\n\n\nclass ForwardMode("),
    ),
    "a test of the algorithm that the runner keeps": (
        (RUNNER, GRAPHS, f"{GRAPHS}        self.plain = model_runner.spec_algorithm.is_none()\n"),
        (RUNNER, f"        {FITS}", f"{LEFT.format('not self.plain')}        {FITS}"),
    ),
    "a number that the runner works out": (
        (RUNNER, GRAPHS, f"{GRAPHS}        self.max_trees = 1 // self.num_tokens_per_bs\n"),
        (
            RUNNER,
            f"        {FITS}",
            f"{LEFT.format('forward_batch.batch_size > self.max_trees')}        {FITS}",
        ),
    ),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_a_term_that_is_a_constant_elsewhere_leaves_the_decision(name: str, tmp_path: Path) -> None:
    report = run(fork(tmp_path / "fork", REPAIRED[name]))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert f"        {FITS}" in report.after[RUNNER]


@pytest.mark.parametrize(
    "store",
    [
        "        self.trees = model_runner.server_args.trees\n",
        "        CudaGraphRunner.trees = True\n",
    ],
)
def test_a_constant_that_something_else_stores_is_no_constant(store: str, tmp_path: Path) -> None:
    changes = (*REPAIRED["a constant of the class"], (RUNNER, "        self.graphs = {}\n", store))
    assert run(fork(tmp_path / "fork", changes)).applied == ()


@pytest.mark.parametrize(
    ("store", "test"),
    [
        ("self.plain = model_runner.spec_info is None", "not self.plain"),
        ("self.max_trees = model_runner.batch_size", "forward_batch.batch_size > self.max_trees"),
        ("self.mode = model_runner.forward_mode", "self.mode.is_target_verify()"),
    ],
)
def test_what_holds_for_a_batch_says_nothing_of_what_was_stored_before(
    store: str, test: str, tmp_path: Path
) -> None:
    changes = (
        (RUNNER, GRAPHS, f"{GRAPHS}        {store}\n"),
        (RUNNER, f"        {FITS}", f"{LEFT.format(test)}        {FITS}"),
    )
    assert run(fork(tmp_path / "fork", changes)).applied == ()


def test_a_module_s_name_that_a_function_binds_is_no_constant(tmp_path: Path) -> None:
    bound = f"        TREES = forward_batch.trees\n        {FITS}"
    changes = (
        (RUNNER, f"        {FITS}", bound), *REPAIRED["a constant of the module"],
    )  # fmt: skip
    assert run(fork(tmp_path / "fork", changes)).applied == ()


AROUND = (
    "        if self._prefers_eager(forward_batch):\n"
    "            self.attn_backend.init_forward_metadata(forward_batch)\n"
    "            out = self.model.forward(\n"
    "                forward_batch.input_ids, forward_batch.positions, forward_batch\n"
    "            )\n"
    "            return ModelRunnerOutput(out, False)\n"
)
PREFERS = (
    "    def _prefers_eager(self, batch):\n        return batch.forward_mode.is_target_verify()\n\n"
)


def test_a_detour_that_does_what_follows_is_taken_away(tmp_path: Path) -> None:
    changes = (
        (MODEL_RUNNER, FORWARD, PREFERS + FORWARD),
        (MODEL_RUNNER, DECISION, AROUND + DECISION),
    )
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert FORWARD + DECISION in report.after[MODEL_RUNNER]


@pytest.mark.parametrize(
    "own", ["            self.model.eval()\n", "            self.seen = forward_batch\n"]
)
def test_a_detour_with_work_of_its_own_is_left(own: str, tmp_path: Path) -> None:
    first, _, rest = AROUND.partition("\n")
    changes = (
        (MODEL_RUNNER, FORWARD, PREFERS + FORWARD),
        (MODEL_RUNNER, DECISION, f"{first}\n{own}{rest}{DECISION}"),
    )
    assert run(fork(tmp_path / "fork", changes)).applied == ()


MAPPED = (
    "    @staticmethod\n    def _known_as(mode):\n        if mode.is_target_verify():\n"
    "            return ForwardMode.EXTEND\n        return mode\n\n"
)
AS = "self._known_as(forward_batch.forward_mode).is_cuda_graph()"


def mapped(body: str = MAPPED, use: str = "") -> tuple[Change, ...]:
    """The decision asks about another mode than the batch has."""
    return (
        (MODEL_RUNNER, "import ForwardBatch", "import ForwardMode, ForwardBatch"),
        (MODEL_RUNNER, FORWARD, body + FORWARD),
        (MODEL_RUNNER, "forward_batch.forward_mode.is_cuda_graph()", AS),
        (MODEL_RUNNER, "        can_run_graph = ", f"{use}        can_run_graph = "),
    )


def test_a_function_that_gives_verify_another_mode_loses_that_arm(tmp_path: Path) -> None:
    report = run(fork(tmp_path / "fork", mapped()))
    assert [a.rewrite.id for a in report.applied] == ["SPF103"]
    assert "    def _known_as(mode):\n        return mode\n" in report.after[MODEL_RUNNER]


@pytest.mark.parametrize(
    ("body", "use", "why"),
    [
        (MAPPED, "        print(self._known_as(forward_batch.forward_mode))\n", "1 other places"),
        (
            "    @staticmethod\n    def _known_as(mode):\n        return ForwardMode.EXTEND\n\n",
            "", "no test of its own",
        ),
    ],
)  # fmt: skip
def test_a_mode_that_others_ask_for_is_refused(
    body: str, use: str, why: str, tmp_path: Path
) -> None:
    report = run(fork(tmp_path / "fork", mapped(body, use)))
    assert [(a.rewrite.id, a.outcome) for a in report.attempts] == [("SPF103", Outcome.REFUSED)]
    assert "_known_as says EXTEND for verify" in report.attempts[0].proposal.what
    assert why in report.attempts[0].reason


def test_a_detour_to_the_eager_half_is_taken_away(tmp_path: Path) -> None:
    changes = (
        (MODEL_RUNNER, FORWARD, HALF + FORWARD),
        (MODEL_RUNNER, "        self.graph_runner = None\n",
         "        self.graph_runner = None\n        self.prefill_runner = None\n"),
        (MODEL_RUNNER, DECISION, DETOUR + DECISION),
    )  # fmt: skip
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert DETOUR not in report.after[MODEL_RUNNER]
    assert FORWARD + DECISION in report.after[MODEL_RUNNER]


def test_a_decision_in_a_method_of_its_own_is_read_there(tmp_path: Path) -> None:
    changes = (
        (MODEL_RUNNER, DECISION, "        can_run_graph = self._may_replay(forward_batch)\n"),
        (MODEL_RUNNER, FORWARD, ASKED + FORWARD),
    )
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert "            return False\n" not in report.after[MODEL_RUNNER]


def test_a_test_that_is_handed_on_is_refused_with_its_name(tmp_path: Path) -> None:
    handed = "        mode_check = forward_batch.forward_mode.is_decode\n"
    asked = DECISION.replace("forward_batch.forward_mode.is_cuda_graph()", "mode_check()")
    report = run(fork(tmp_path / "fork", ((MODEL_RUNNER, DECISION, handed + asked),)))
    assert [(a.rewrite.id, a.outcome) for a in report.attempts] == [("SPF103", Outcome.REFUSED)]
    assert "is_decode is handed on" in report.attempts[0].reason


def test_a_loss_that_nothing_explains_is_said(tmp_path: Path) -> None:
    """No single term is false for verify; the decision is, and the map knows."""
    twice = "        if can_run_graph and not can_run_graph:\n"
    changes = ((MODEL_RUNNER, "        if can_run_graph:\n", twice),)
    report = run(fork(tmp_path / "fork", changes))
    assert {(a.rewrite.id, a.outcome) for a in report.attempts} == {("SPF199", Outcome.REFUSED)}
    assert {a.proposal.what for a in report.attempts} == {
        f"verify of {name} never replays its graph" for name in ("EAGLEWorker", "NGRAMWorker")
    }


def test_a_cause_that_no_rewrite_takes_away_is_named(tmp_path: Path) -> None:
    """Another class makes the graphs: nothing says what its own test would have done."""
    changes = (
        (MODEL_RUNNER, "self.graph_runner = CudaGraphRunner(self)\n", "self._capture()\n"),
        (
            MODEL_RUNNER,
            FORWARD,
            "    def _capture(self):\n        if self.spec_algorithm.is_none():\n"
            "            self.graph_runner = CudaGraphRunner(self)\n\n" + FORWARD,
        ),
    )
    report = run(fork(tmp_path / "fork", changes))
    assert {(a.rewrite.id, a.outcome) for a in report.attempts} == {("SPF199", Outcome.REFUSED)}
    assert {a.reason for a in report.attempts} == {
        "no rewrite takes it away; specmap why shows the way"
    }
    facts = {fact for a in report.attempts for fact in a.proposal.facts}
    assert any(
        fact.startswith("self.spec_algorithm.is_none() is false for every verify batch (")
        for fact in facts
    )


FIT = f"{WITH_TERM}self._mask_fits(forward_batch)\n"
MASK = (
    "\n    def _mask_fits(self, batch):\n"
    "        if batch.spec_info is None:\n            return True\n"
    "        return self.masks_are_stable\n"
)


def test_a_method_that_returns_in_two_places_is_followed(tmp_path: Path) -> None:
    changes = (
        (RUNNER, CLASS, f"{CLASS}    masks_are_stable = False\n\n"),
        (RUNNER, f"        {FITS}", f"        {FIT}{MASK}"),
    )
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert f"        {FITS}" in report.after[RUNNER]


WIDTH = (
    "        width = self._width_of(forward_batch)\n"
    "        recorded = (\n"
    "            width is not None and forward_batch.input_ids.numel() == width * 1\n        )\n"
    f"        {WITH_TERM}recorded\n\n"
    "    def _width_of(self, batch):\n        mode = batch.forward_mode\n"
    "        if mode.is_decode():\n            return self.num_tokens_per_bs\n"
    "        return None\n"
)


SUBCLASS = (
    "\n\nclass OtherGraphRunner(CudaGraphRunner):\n    def _mask_fits(self, batch):\n"
    "        return True\n"
)


def test_a_method_that_a_subclass_has_too_or_a_decorator_changes_is_not_followed(
    tmp_path: Path,
) -> None:
    changes = (
        (RUNNER, CLASS, f"{CLASS}    masks_are_stable = False\n\n"),
        (RUNNER, f"        {FITS}", f"        {FIT}{MASK}"),
    )
    broken = fork(tmp_path / "fork", changes)
    text = (broken / RUNNER).read_text("utf-8")
    (broken / RUNNER).write_text(text + SUBCLASS, "utf-8")
    assert run(broken).applied == ()
    marked = text.replace("    def _mask_fits", "    @inverted\n    def _mask_fits")
    assert marked != text
    (broken / RUNNER).write_text(marked, "utf-8")
    assert run(broken).applied == ()


def test_only_a_test_that_excludes_verify_is_spoken_of(tmp_path: Path) -> None:
    handed = (
        "        mode = forward_batch.forward_mode\n"
        '        mode_check = mode.is_decode if self.device == "cpu" else mode.is_cuda_graph\n'
    )
    asked = DECISION.replace("forward_batch.forward_mode.is_cuda_graph()", "mode_check()")
    changes = (
        (MODEL_RUNNER, DECISION, handed + asked), *REPAIRED["a constant of the module"],
    )  # fmt: skip
    report = run(fork(tmp_path / "fork", changes))
    assert [(a.rewrite.id, a.outcome) for a in report.attempts] == [("SPF101", Outcome.APPLIED)]


def test_a_number_that_is_none_for_verify_goes_with_the_term_that_it_guards(tmp_path: Path) -> None:
    """Prefill, for which it is none too, never gets as far as the runner."""
    report = run(fork(tmp_path / "fork", ((RUNNER, f"        {FITS}", WIDTH),)))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert f"        {FITS}" in report.after[RUNNER]
    assert "recorded" not in report.after[RUNNER]


def test_a_mode_test_that_is_handed_on_keeps_prefill_out_too(tmp_path: Path) -> None:
    handed = "        mode_check = forward_batch.forward_mode.is_cuda_graph\n"
    asked = DECISION.replace("forward_batch.forward_mode.is_cuda_graph()", "mode_check()")
    changes = ((RUNNER, f"        {FITS}", WIDTH), (MODEL_RUNNER, DECISION, handed + asked))
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert f"        {FITS}" in report.after[RUNNER]


@pytest.mark.parametrize(
    "body",
    [
        "        for _ in batch.reqs:\n            return True\n        return False\n",
        "        if batch.unknown:\n            return True\n        return False\n",
        "        return batch.unknown\n",
    ],
)
def test_a_method_that_may_hold_for_verify_is_left_alone(body: str, tmp_path: Path) -> None:
    asked = f"        {FIT}\n    def _mask_fits(self, batch):\n{body}"
    assert run(fork(tmp_path / "fork", ((RUNNER, f"        {FITS}", asked),))).attempts == ()


BUILT = "        self.tp_worker = TpModelWorker(server_args)\n"
LOADED = "        self.tp_worker = self._load(TpModelWorker, server_args)\n"
RUN_BATCH = "    def run_batch("


def loading(value: str, call: str = "worker_class(launch)") -> tuple[Change, ...]:
    """The target is built by a method that stores a setting and puts it back."""
    method = (
        "    def _load(self, worker_class, launch):\n        off = launch.disable_cuda_graph\n"
        f"        launch.disable_cuda_graph = {value}\n        target = {call}\n"
        "        launch.disable_cuda_graph = off\n        return target\n\n"
    )
    return ((SCHEDULER, BUILT, LOADED), (SCHEDULER, RUN_BATCH, method + RUN_BATCH))


def test_graphs_that_are_off_while_the_target_is_built(tmp_path: Path) -> None:
    changes = loading("off or not self.spec_algorithm.is_none()")
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF106"]
    assert "launch.disable_cuda_graph = off\n        target" in report.after[SCHEDULER]
    [proven] = [step for step in report.applied[0].proof if step.layer is Layer.MAP]
    assert "verify can replay: EAGLEWorker, NGRAMWorker" in proven.detail


def test_the_operator_s_own_setting_decides_again(tmp_path: Path) -> None:
    """The map knows nothing of what a dictionary hands over; verify asks for the setting."""
    changes = (
        *loading("True", "worker_class(**options)"),
        (
            SCHEDULER,
            "        target = ",
            "        options = dict(server_args=launch)\n        target = ",
        ),
    )
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF106"]
    [proven] = [step for step in report.applied[0].proof if step.layer is Layer.MAP]
    assert "verify can replay: EAGLEWorker, NGRAMWorker" in proven.detail


@pytest.mark.parametrize(
    ("value", "call"),
    [
        ("off or self.spec_algorithm.is_none()", "worker_class(launch)"),
        ("off or launch.unknown", "worker_class(launch)"),
        ("True", "worker_class(launch, is_draft_worker=True)"),
    ],
)
def test_a_setting_that_may_have_its_reason_is_left(value: str, call: str, tmp_path: Path) -> None:
    report = run(fork(tmp_path / "fork", loading(value, call)))
    assert [a for a in report.attempts if a.rewrite.id == "SPF106"] == []


STORES = (
    "        self.capture_forward_mode = ForwardMode.DECODE\n        self.num_tokens_per_bs = 1\n"
    "        if not model_runner.is_draft_worker:\n"
    "            self.capture_forward_mode = ForwardMode.TARGET_VERIFY\n"
    "            self.num_tokens_per_bs = model_runner.server_args.speculative_num_draft_tokens\n"
)
STEP = "        self.recorded, self.num_tokens_per_bs = self._recorded_step()\n"
METHODS = (
    "    def _recorded_step(self):\n"
    '        """Return the mode of the step and its tokens."""\n'
    "        algorithm = self.model_runner.spec_algorithm\n"
    "        return ForwardMode.DECODE, 1\n\n"
    "    def _records(self, mode):\n"
    "        return mode == self.recorded or mode.is_idle()\n\n"
)


def test_a_mode_that_a_method_returns_is_verify_first(tmp_path: Path) -> None:
    """The attribute has a name of its own, and the runner's test asks a method about it."""
    changes = (
        (RUNNER, STORES, STEP),
        (RUNNER, "forward_mode=self.capture_forward_mode", "forward_mode=self.recorded"),
        (RUNNER, CAN_RUN, METHODS + CAN_RUN),
        (
            RUNNER,
            f"        {FITS}",
            "        if not self._records(forward_batch.forward_mode):\n"
            f"            return False\n        {FITS}",
        ),
    )
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF104"]
    arm = (
        "is_draft_worker:\n            return ForwardMode.TARGET_VERIFY, "
        "self.model_runner.server_args.speculative_num_draft_tokens\n"
        "        algorithm = "
    )
    assert arm in report.after[RUNNER]
