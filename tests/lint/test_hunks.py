"""Changed lines, and the functions around them."""

from __future__ import annotations

from specmap.codemap.source import Span
from specmap.lint.hunks import hunks

OLD = """\
class Worker:
    def verify(self, batch):
        # asks the runner
        ready = self.runner.can_run(batch)
        return self.forward(batch, ready)

    def draft(self, batch):
        return self.forward(batch, True)
"""


def found(new: str, old: str | None = OLD) -> list[tuple[int, int, str]]:
    changes = hunks(["a.py"], lambda file: old, lambda file: new)
    return [(hunk.span.line, hunk.span.end_line, hunk.qualname) for hunk in changes]


def test_a_changed_line_is_in_its_function() -> None:
    assert found(OLD.replace("self.runner.can_run(batch)", "False")) == [(4, 4, "Worker.verify")]


def test_lines_that_went_are_the_line_after_them() -> None:
    gone = OLD.replace("        ready = self.runner.can_run(batch)\n", "")
    assert found(gone) == [(4, 4, "Worker.verify")]


def test_comments_and_blank_lines_do_not_count() -> None:
    assert found(OLD.replace("# asks the runner", "# asks it\n\n")) == []


def test_two_changes_are_two() -> None:
    new = OLD.replace("ready)", "False)").replace("True", "False")
    assert found(new) == [(5, 5, "Worker.verify"), (8, 8, "Worker.draft")]


def test_a_new_file_is_one_change_and_a_missing_one_none() -> None:
    assert found("A = 1\nB = 2\n", old=None) == [(1, 2, "")]
    assert hunks(["a.py"], lambda file: OLD, lambda file: None) == []


def test_overlap_is_by_file_and_line() -> None:
    (change,) = hunks(["a.py"], lambda file: OLD, lambda file: OLD.replace("ready)", "1)"))
    assert change.overlaps(Span("a.py", 4, 5))
    assert not change.overlaps(Span("b.py", 4, 5))
    assert not change.overlaps(Span("a.py", 6, 9))


def test_a_form_feed_ends_no_line() -> None:
    old = f"\x0c\n{OLD}".replace("\n    def draft", "\x0c\n    def draft")
    assert found(old.replace("True", "False"), old) == [(9, 9, "Worker.draft")]
