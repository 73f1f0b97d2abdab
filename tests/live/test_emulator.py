"""The emulated device against what a real capture does with the same functions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from specmap.fix.emulator import crossings, replayed
from tests.live import emulated_cases
from tests.live.emulated_cases import DOCUMENTED, GPU_ONLY, REFERENCE, Case, made, updated
from tests.live.environment import packages_of

pytestmark = pytest.mark.live

CASES = {**REFERENCE, **DOCUMENTED}


@pytest.fixture(autouse=True)
def torch_of_a_live_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages_of("0.5.9"))])
    import torch

    monkeypatch.setattr(emulated_cases, "torch", torch)
    yield


def test_the_table_is_whole() -> None:
    assert len(REFERENCE) == 41
    assert len(GPU_ONLY) == 10
    assert len(CASES) == len(REFERENCE) + len(DOCUMENTED) >= 61


@pytest.mark.parametrize("name", GPU_ONLY)
def test_what_only_a_gpu_can_show_is_modelled_or_declared_outside(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "fix.md").read_text("utf-8")
    outside = page.partition("Not modelled:")[2].partition(".\n")[0].partition(". ")[0]
    assert outside
    assert GPU_ONLY[name] in CASES or GPU_ONLY[name] in outside


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_crossings_and_fate(case: Case) -> None:
    state = made(0)
    kinds = {str(c.kind) for c in crossings(lambda: case.run(state))}
    found = replayed(made, updated, case.run)
    assert (" ".join(sorted(kinds)), str(found.fate)) == (case.kinds, case.fate), found.detail


def test_a_crossing_names_its_line() -> None:
    state = made(0)
    [crossing] = crossings(lambda: state.n.item())
    assert crossing.site.startswith("test_emulator.py:")


def padded(state: emulated_cases.State) -> object:
    """A bucket of 8 rows, of which k are real: the tail takes the sum of the row."""
    return state.x * 2 + state.i


def test_rows_of_padding_do_not_count_and_real_rows_do() -> None:
    """Replay of a bucket with stale rows: only what is shown must agree."""

    def stale_tail(state: emulated_cases.State, seed: int) -> None:
        fresh = made(seed)
        for name in ("x", "i"):
            getattr(state, name).inner[:3].copy_(getattr(fresh, name).inner[:3])

    real = replayed(made, stale_tail, padded, shown=lambda state, result: result[:3])
    assert str(real.fate) == "equal"
    assert str(replayed(made, stale_tail, padded).fate) == "stale"


def test_a_row_that_reads_its_neighbours_feels_the_padding() -> None:
    def stale_tail(state: emulated_cases.State, seed: int) -> None:
        state.x.inner[:3].copy_(made(seed).x.inner[:3])

    found = replayed(
        made, stale_tail, lambda s: s.x / s.x.sum(), shown=lambda state, result: result[:3]
    )
    assert str(found.fate) == "stale"


def test_memory_that_no_replay_writes_is_poisoned() -> None:
    """What the capture left there by chance must not pass for a result."""

    def first_time_only(state: emulated_cases.State) -> object:
        result = emulated_cases.torch.zeros(8, device="cuda")
        result.inner.copy_(state.x.inner)  # behind the device's back: no operator, no tape
        return result

    same = replayed(made, lambda state, seed: None, first_time_only, seeds=(0,))
    assert str(same.fate) == "stale"
