"""Which changes of a file move its lines and change nothing else."""

from __future__ import annotations

import pytest

from specmap.scan.layout import moved_lines

CODE = b"""\
def first(batch):
    rows = batch.rows  # how many
    text = \"\"\"one
two\"\"\"
    return call(
        rows,
        text,
    )
"""


def test_comments_and_blank_lines_move_the_code() -> None:
    changed = b"# Above.\n\n" + CODE.replace(b"        text,", b"        # Inside.\n        text,")
    assert moved_lines(CODE, changed.replace(b"  # how many", b"")) == {
        1: 3, 2: 4, 3: 5, 4: 6, 5: 7, 6: 8, 7: 10, 8: 11,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"batch.rows", b"batch.lines"),
        (b"two", b"two # no comment"),
        (b"        rows,\n        text,", b"        rows, text,"),
        (b"        text,\n    )", b"        text)"),
        (b"    return", b"    if rows:\n        return"),
    ],
)
def test_other_code_is_another_file(old: bytes, new: bytes) -> None:
    assert old in CODE
    assert moved_lines(CODE, CODE.replace(old, new)) is None


def test_a_file_that_is_no_python_has_no_layout() -> None:
    assert moved_lines(b"(", b"(") is None
