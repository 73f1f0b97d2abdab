"""The layer of equality, with torch: what is equal holds, and what is not is shown."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from specmap.codemap.remedy import Layer, Obligation
from specmap.fix.catalogue import CATALOGUE
from specmap.fix.prove import difference, ledger
from tests.live.environment import packages_of

pytestmark = pytest.mark.live

BY_NAME = {r.name: r.obligation for r in CATALOGUE if r.obligation is not None}
STATIC_COUNT, PACKED = BY_NAME["static-count"], BY_NAME["packed-tolist"]
OBLIGATIONS = list(BY_NAME.values())
WAITING = [r.obligation for r in CATALOGUE if r.obligation and Layer.LEDGER in r.layers]


@pytest.fixture(autouse=True)
def torch_of_a_live_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages_of("0.5.9"))])


@pytest.mark.parametrize("obligation", OBLIGATIONS, ids=lambda obligation: obligation.new)
def test_old_and_new_code_agree(obligation: Obligation) -> None:
    assert difference(obligation) == ""


def test_a_count_that_is_one_too_many_is_found() -> None:
    wrong = replace(STATIC_COUNT, new="kept = select_static(x, mask, count + 1)")
    assert "differ" in difference(wrong)


def test_tensors_of_two_dtypes_are_found() -> None:
    wrong = replace(
        PACKED,
        setup=PACKED.setup + "\ny = y.to(torch.float32) / 2",
    )
    assert "differ" in difference(wrong)


@pytest.mark.parametrize("obligation", WAITING, ids=lambda obligation: obligation.new)
def test_new_code_waits_less(obligation: Obligation) -> None:
    old, new, wrong = ledger(obligation)
    assert new < old
    assert wrong == ""


def test_a_mask_index_by_nonzero_waits_as_the_mask_does() -> None:
    """The change of SGLang's pull request 15383, which was closed."""
    wrong = replace(STATIC_COUNT, new="kept = x[torch.nonzero(mask).squeeze(1)]")
    assert difference(wrong) == ""
    old, new, reason = ledger(wrong)
    assert old == new
    assert "waits" in reason


def test_a_new_way_to_wait_is_no_repair() -> None:
    wrong = replace(
        PACKED, setup=f"{PACKED.setup}\nrows = [0]",
        old="a = x.tolist()\nb = y.tolist()\nc = x.sum().item()",
        new="a, b = packed_tolist(x, y)\nc = x[rows].sum()",
        results=("a", "b"),
    )  # fmt: skip
    assert ledger(wrong)[2] == (
        "the new code crosses in a new way on the emulated device: pageable-copy"
    )


def test_a_shift_of_all_requests_waits_no_more_than_one_by_one() -> None:
    assert ledger(BY_NAME["request-loop"])[:2] == (0, 0)


def test_a_shift_by_wrong_lengths_is_found() -> None:
    new = "rotate_segments_(x, lengths[::-1], last)"
    assert "differ" in difference(replace(BY_NAME["request-loop"], new=new))
