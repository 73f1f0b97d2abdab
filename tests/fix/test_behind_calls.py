"""Decisions behind calls of other objects: only what is dead goes, and nothing that goes along."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from specmap.codemap.remedy import Outcome
from tests.fix.forks import FITS, MODEL_RUNNER
from tests.fix.test_more_forks import (
    CLASS,
    DECISION,
    FORWARD,
    GRAPHS,
    WITH_TERM,
    Change,
    fork,
    run,
)  # fmt: skip
from tests.review_tree import RUNNER

DEAD = (RUNNER, CLASS, f"{CLASS}    trees = False\n\n")
METHOD = f"        {WITH_TERM}self._ok(forward_batch)\n\n    def _ok(self, b):\n"
ASKS = "self.graph_runner.can_run(forward_batch)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        return b.batch_size <= self.limit and self.trees\n",
         "        return b.batch_size <= self.limit\n"),
        ("        if b.batch_size > self.limit:\n            return False\n"
         "        return self.trees\n",
         "        if b.batch_size > self.limit:\n            return False\n"
         "        return True\n"),
        ("        if not self.trees:\n            return False\n"
         "        return b.batch_size <= self.limit\n",
         "        return b.batch_size <= self.limit\n"),
    ],
)  # fmt: skip
def test_a_live_test_beside_a_dead_one_stays(old: str, new: str, tmp_path: Path) -> None:
    """The call of the method is false for verify too; with it ``limit`` would have gone."""
    report = run(fork(tmp_path / "fork", (DEAD, (RUNNER, f"        {FITS}", METHOD + old))))
    assert [a.outcome for a in report.applied] == [Outcome.APPLIED]
    assert METHOD + new in report.after[RUNNER]


@pytest.mark.parametrize(
    "decision",
    [
        f"{WITH_TERM}(forward_batch.batch_size <= self.limit and self.trees)\n",
        f"{WITH_TERM}not (forward_batch.batch_size > self.limit or not self.trees)\n",
    ],
)
def test_a_live_test_inside_the_same_term_is_not_taken_along(decision: str, tmp_path: Path) -> None:
    report = run(fork(tmp_path / "fork", (DEAD, (RUNNER, FITS, decision))))
    assert report.applied == ()
    assert {a.rewrite.id for a in report.attempts} == {"SPF199"}


ODD = "forward_batch.batch_size % 2 == 1 and self.odd"
BOTH = f"{CLASS}    trees = False\n    odd = False\n\n"
BLOCKED = f"\n    def _odd(self, forward_batch):\n        return {ODD}\n"


@pytest.mark.parametrize(
    ("decision", "behind"),
    [
        (f"odd = {ODD}\n        {FITS[:-1]} and not odd", ""),
        (f"{FITS[:-1]} and not self._odd(forward_batch)", BLOCKED),
        (f"if self._odd(forward_batch):\n            return False\n        {FITS[:-1]}", BLOCKED),
        (f"odd = None if not ({ODD}) else 1\n        {FITS[:-1]} and odd is None", ""),
    ],
)
def test_what_is_turned_round_is_no_cause(decision: str, behind: str, tmp_path: Path) -> None:
    """``odd`` is false as well, and keeps nothing from its graph; without it odd batches lose."""
    changes = ((RUNNER, CLASS, BOTH), (RUNNER, FITS, f"{decision} and self.trees\n{behind}"))
    report = run(fork(tmp_path / "fork", changes))
    assert [a.proposal.what.partition(":")[0] for a in report.applied] == ["self.trees"]
    assert f"{decision}\n{behind}" in report.after[RUNNER]


FLAGS = (
    "from dataclasses import dataclass\n\n\n@dataclass\nclass Flags:\n"
    "    decode: bool = True\n    verify: bool = False\n\n"
    "    def allows(self, mode):\n        if mode.is_target_verify():\n"
    "            return self.verify\n        return self.decode\n\n\n"
)
ALLOWED = f"{WITH_TERM}self.flags.allows(forward_batch.forward_mode)\n"


def flags(made: str) -> Sequence[Change]:
    return (
        (RUNNER, CLASS, FLAGS + CLASS),
        (RUNNER, GRAPHS, f"{GRAPHS}        self.flags = {made}\n"),
        (RUNNER, FITS, ALLOWED),
    )


def test_a_flag_of_another_object_that_is_never_given_is_a_constant(tmp_path: Path) -> None:
    report = run(fork(tmp_path / "fork", flags("Flags(decode=True)")))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert f"        {FITS}" in report.after[RUNNER]


@pytest.mark.parametrize(
    "made",
    [
        "Flags(verify=model_runner.server_args.trees)",
        "Flags(True, model_runner.server_args.trees)",
        "Flags(**model_runner.server_args.flags)",
        "replace(Flags(), verify=model_runner.server_args.trees)",
        "model_runner.server_args.read(Flags)",
    ],
)
def test_a_field_that_may_be_given_is_no_constant(made: str, tmp_path: Path) -> None:
    assert run(fork(tmp_path / "fork", flags(made))).attempts == ()


WRAPPER = (
    "class Guarded:\n    def __init__(self, inner: CudaGraphRunner):\n"
    "        self.inner = inner\n\n"
    "    def supports(self, batch):\n"
    "        return self._one_each(batch) and self.inner.can_run(batch)\n\n"
    "    def _one_each(self, batch):\n"
    "        return batch.input_ids.shape[0] == batch.batch_size\n\n"
    "    def replay(self, batch):\n        return self.inner.replay(batch)\n\n\n"
)


def test_a_wrapper_that_asks_the_runner_behind_another_name_is_read(tmp_path: Path) -> None:
    changes = (
        (MODEL_RUNNER, "class ModelRunner:\n", f"{WRAPPER}class ModelRunner:\n"),
        (MODEL_RUNNER, "CudaGraphRunner(self)\n", "Guarded(CudaGraphRunner(self))\n"),
        (MODEL_RUNNER, ASKS, "self.graph_runner.supports(forward_batch)"),
    )
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert "        return self.inner.can_run(batch)\n" in report.after[MODEL_RUNNER]
    assert "self.graph_runner.supports(forward_batch)" in report.after[MODEL_RUNNER]


KNOWN = "REPLAYED = frozenset({ForwardMode.DECODE, ForwardMode.IDLE})\n"
CHOSEN = (
    "    def _graph_for(self, batch):\n        runner = self.graph_runner\n"
    "        if runner is None or batch.forward_mode not in REPLAYED:\n            return None\n"
    "        return runner if runner.can_run(batch) else None\n\n"
)


def test_a_method_that_chooses_the_runner_is_a_decision(tmp_path: Path) -> None:
    changes = (
        (MODEL_RUNNER, "import ForwardBatch", "import ForwardMode, ForwardBatch"),
        (MODEL_RUNNER, "class ModelRunner:\n", f"{KNOWN}\n\nclass ModelRunner:\n"),
        (MODEL_RUNNER, FORWARD, CHOSEN + FORWARD),
        (MODEL_RUNNER, DECISION,
         "        can_run_graph = forward_batch.forward_mode.is_cuda_graph() and (\n"
         "            self._graph_for(forward_batch) is not None\n        )\n"),
        (MODEL_RUNNER, "self.graph_runner.replay(", "self._graph_for(forward_batch).replay("),
    )  # fmt: skip
    report = run(fork(tmp_path / "fork", changes))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert "        if runner is None:\n            return None\n" in report.after[MODEL_RUNNER]


WIDE = (
    f"        {WITH_TERM}self._rows(forward_batch) <= 1\n\n"
    "    def _rows(self, batch):\n        spec = batch.spec_info\n"
    "        if spec is None or batch.forward_mode.is_decode():\n            return 1\n"
    "        return self.num_tokens_per_bs\n"
)


def test_a_number_that_a_method_returns_is_followed(tmp_path: Path) -> None:
    report = run(fork(tmp_path / "fork", ((RUNNER, f"        {FITS}", WIDE),)))
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert f"        {FITS}" in report.after[RUNNER]


def test_a_list_that_may_have_grown_says_nothing_of_a_mode(tmp_path: Path) -> None:
    changes = (
        (RUNNER, CLASS, f"REPLAYED = [ForwardMode.DECODE]\n\n\n{CLASS}"),
        (RUNNER, FITS, f"{WITH_TERM}forward_batch.forward_mode in REPLAYED\n"),
    )
    assert run(fork(tmp_path / "fork", changes)).attempts == ()
