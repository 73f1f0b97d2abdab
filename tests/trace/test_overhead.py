from __future__ import annotations

import random

import pytest

from specmap.trace.cycles import Cycle
from specmap.trace.overhead import Windows


def windows(*times: tuple[bool, list[int]]) -> Windows:
    """Return windows of cycles that take these ns from start to start."""
    found, number, now = Windows(), 0, 0
    for armed, window in times:
        for time in window:
            found.add(Cycle(number, now, 4, "Worker", armed))
            number, now = number + 1, now + time
    return found


def turns(count: int, off_ns: int, on_ns: int, drift_ns: int = 0) -> Windows:
    """Return windows of 12 cycles, disarmed first, each cycle longer by a drift a window."""
    return windows(
        *(
            (number % 2 == 1, [(on_ns if number % 2 else off_ns) + drift_ns * number] * 12)
            for number in range(count)
        )
    )


def test_the_cost_is_what_armed_windows_take_longer() -> None:
    found = turns(9, 1000, 1010).overhead()
    assert found is not None
    assert found.windows == 7
    assert found.cost == pytest.approx(0.01, rel=1e-2)
    assert (found.null, found.null_error) == (0.0, 0.0)


def test_a_trend_is_neither_in_the_cost_nor_in_the_null() -> None:
    """A cycle grows with its sequences: from 4.1 to 10.3 ms in one run on an H200."""
    found = turns(62, 4_100_000, 4_100_000, drift_ns=100_000).overhead()
    assert found is not None
    assert found.cost == pytest.approx(0.0, abs=1e-6)
    assert found.null == pytest.approx(0.0, abs=1e-6)
    found = turns(62, 4_100_000, 4_141_000, drift_ns=100_000).overhead()
    assert found is not None
    assert found.cost == pytest.approx(0.006, abs=0.003)


def test_the_error_is_that_of_a_median() -> None:
    """Windows of 1000 or 1002 ns by chance: the error shrinks with their number."""
    chance = random.Random(3)
    errors = []
    for count in (40, 640):
        found = windows(
            *((n % 2 == 1, [1000 + 20 * chance.randrange(5)] * 12) for n in range(count))
        ).overhead()
        assert found is not None
        assert abs(found.cost) < 4 * found.cost_error
        errors.append(found.cost_error)
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.5)


def test_cycles_that_scatter_to_one_side_leave_the_null_at_nothing() -> None:
    """As on a shared machine: most cycles take 1000 ns, some take much longer."""
    chance = random.Random(5)
    found = windows(
        *((n % 2 == 1, [1000 + int(chance.expovariate(0.02)) for _ in "12"]) for n in range(4000))
    ).overhead()
    assert found is not None
    assert abs(found.cost) < 4 * found.cost_error
    assert abs(found.null) < 4 * found.null_error


def test_a_pause_between_requests_does_not_count() -> None:
    off, on = [1000] * 12, [1010] * 6 + [5_000_000] + [1010] * 5
    found = windows(*((n % 2 == 1, on if n % 2 else off) for n in range(9))).overhead()
    assert found is not None
    assert found.cost == pytest.approx(0.01, rel=1e-2)


def test_what_the_tracer_does_in_one_cycle_of_eight_counts() -> None:
    off, on = [1000] * 16, ([1080] + [1000] * 7) * 2
    found = windows(*((n % 2 == 1, on if n % 2 else off) for n in range(9))).overhead()
    assert found is not None
    assert found.cost == pytest.approx(0.01, rel=0.1)


def test_windows_of_two_cycles_will_do() -> None:
    found = windows(*((n % 2 == 1, [1000 + 10 * (n % 2), 1500]) for n in range(40))).overhead()
    assert found is not None
    assert found.windows == 38
    assert found.cost == pytest.approx(0.01, rel=1e-2)


def test_a_window_without_a_time_leaves_its_neighbours_out() -> None:
    off, on = [1000] * 12, [1010] * 12
    cut = [(n % 2 == 1, on if n % 2 else off) for n in range(13)]
    cut[5] = (True, [1010])
    found = windows(*cut).overhead()
    assert found is not None
    assert found.windows < 11
    assert found.cost == pytest.approx(0.01, rel=1e-2)
    assert found.null == 0.0


def test_without_windows_nothing_is_claimed() -> None:
    assert windows((True, [1000] * 500)).overhead() is None
    assert turns(4, 1000, 1010).overhead() is None
