from __future__ import annotations

import pytest

from specmap.verdicts.sizes import Sizes

KNOWN = Sizes((1, 2, 4))
UNKNOWN = Sizes(None, (1, 2), ("GPU memory",))


@pytest.mark.parametrize(
    ("sizes", "how", "size", "holds"),
    [
        (KNOWN, "at most", 3, True),
        (KNOWN, "one of", 3, False),
        (KNOWN, "at most", 5, False),
        (UNKNOWN, "at most", 2, True),
        (UNKNOWN, "at most", 3, None),
        (UNKNOWN, "one of", 2, True),
        (UNKNOWN, "one of", 3, None),
        (Sizes(None), "at most", 1, True),
        (Sizes(None), "one of", 1, None),
        (Sizes(()), "at most", 1, False),
    ],
)
def test_whether_a_batch_is_within(sizes: Sizes, how: str, size: int, holds: bool | None) -> None:
    assert sizes.holds(how, size) is holds


def test_the_numbers() -> None:
    assert KNOWN.numbers("at most", 5) == "bs 5 > largest captured 4"
    assert KNOWN.numbers("one of", 3) == "bs 3 not captured"
    assert UNKNOWN.numbers("at most", 3) == "bs 3, largest captured not known (at least 2)"


@pytest.mark.parametrize("sizes", [KNOWN, UNKNOWN, Sizes(None), Sizes(())])
def test_between_two_steps_nothing_changes(sizes: Sizes) -> None:
    steps = sizes.steps(9)
    assert steps[0] == 1
    for how in ("at most", "one of"):
        for size in range(1, 10):
            step = max(s for s in steps if s <= size)
            assert sizes.holds(how, size) is sizes.holds(how, step), (how, size, step)
