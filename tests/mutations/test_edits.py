"""The edits that make mutants: each does one thing and keeps the rest as it was."""

from __future__ import annotations

import pytest

from tests.mutations.edits import Edit, NotAppliedError, apply

SOURCE = """\
class Worker:
    def run(self, batch, extra=None):
        flag = bool(
            self.runner and self.runner.can_run(batch)
        )  # decides
        if flag:
            return self.runner.replay(batch)
        else:
            out = self.forward(batch, verify=True)
        return Result(out, flag=flag)
"""


@pytest.mark.parametrize(
    ("edit", "gone", "come"),
    [
        (Edit("value", 3, "flag", "False"), "can_run", "flag = False"),
        (Edit("keyword", 10, "flag", "False"), "flag=flag", "flag=False"),
        (Edit("keyword", 9, "verify"), "verify=True", "self.forward(batch, )"),
        (Edit("add", 9, "self.forward", "more=1"), "verify=True)", "verify=True, more=1)"),
        (Edit("insert", 10, "", "probe()\n"), "", "        probe()\n        return Result"),
        (Edit("unless", 6), "replay", "        out = self.forward(batch, verify=True)"),
        (Edit("parameter", 2, "extra"), "extra=None", "def run(self, batch, ):"),
        (Edit("swap", 10, "", "pass\n"), "Result", "        pass\n"),
        (
            Edit("expression", 4, "self.runner and self.runner.can_run(batch)", "ready"),
            "can_run",
            "(ready)",
        ),
    ],
)
def test_one_edit(edit: Edit, gone: str, come: str) -> None:
    changed = apply(SOURCE, [edit])
    compile(changed, "changed.py", "exec")
    assert come in changed
    assert not gone or gone not in changed


def test_an_edit_without_its_place_is_an_error() -> None:
    with pytest.raises(NotAppliedError):
        apply(SOURCE, [Edit("value", 3, "other", "False")])


def test_edits_of_one_file_keep_each_others_places() -> None:
    changed = apply(SOURCE, [Edit("insert", 3, "", "a()\n"), Edit("insert", 10, "", "b()\n")])
    assert changed.index("a()") < changed.index("flag = bool") < changed.index("b()")
