"""The layer of equality, with torch: what is equal holds, and what is not is shown."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from specmap.codemap.remedy import Obligation
from specmap.fix.catalogue import CATALOGUE
from specmap.fix.prove import difference
from tests.live.environment import packages_of

pytestmark = pytest.mark.live

BY_NAME = {r.name: r.obligation for r in CATALOGUE if r.obligation is not None}
STATIC_COUNT, PACKED = BY_NAME["static-count"], BY_NAME["packed-tolist"]
OBLIGATIONS = list(BY_NAME.values())


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
