from __future__ import annotations

import json

import pytest

from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.compare.model import (
    Change,
    DecisionChange,
    MapDiff,
    NameChange,
    PhaseChange,
    SyncChange,
    TermChange,
    TypesChange,
    WorkerChange,
)
from specmap.report.diff import SHOWN, DiffOptions, render_diff

FILE = "sglang/srt/speculative/eagle_worker.py"
RUNNER = "sglang/srt/model_executor/cuda_graph_runner.py"
VERIFY = (PhaseName.VERIFY,)


def span(line: int, file: str = FILE) -> Span:
    return Span(file, line, line)


def sync(number: int) -> SyncChange:
    return SyncChange(
        Change.ADDED, f"x{number}.item()", "EAGLEWorker.verify", "removable", "explicit",
        "verify->draft_extend", False, ("EAGLEWorker",), span(number), number == 0,
    )  # fmt: skip


NOTHING = MapDiff("sglang==0.5.9", "git:abc", (), (), (), (), (), ())
TERMS = (
    TermChange(Change.REMOVED, "a == self.a", span(8, RUNNER), error=span(9, RUNNER)),
    TermChange(Change.ADDED, "b is None", span(10, RUNNER)),
    TermChange(Change.RENAMED, "self.decode_runner", span(11, RUNNER), "self.runner"),
)
FOUND = MapDiff(
    old="sglang==0.5.9",
    new="git:abc",
    workers=(
        WorkerChange(Change.REMOVED, "NGRAMWorker", span(5)),
        WorkerChange(Change.RENAMED, "TreeWorker", span(6), "EAGLEWorker"),
    ),
    phases=(
        PhaseChange(PhaseName.DRAFT, ("TreeWorker",), ("graph", "eager"), ("eager",), span(7)),
    ),
    decisions=(
        DecisionChange(
            Change.CHANGED, "can_run", "New.can_run", "Old.can_run", span(7, RUNNER), VERIFY,
            ("TreeWorker",), TERMS,
        ),
        DecisionChange(
            Change.ADDED, "route", "Other.route", "", span(9), tuple(PhaseName), ("TreeWorker",),
            TERMS[1:2],
        ),
    ),
    types=(
        TypesChange(
            PhaseName.DRAFT, ("TreeWorker",), ("TritonBackend (cuda)",), ("Old (cuda)",), span(7)
        ),
    ),
    syncs=tuple(sync(number) for number in range(SHOWN + 3)),
    names=(NameChange("function", "verify", "check"),),
)  # fmt: skip
TEXT = """\
sglang==0.5.9 -> git:abc

workers
  - NGRAMWorker  eagle_worker.py:5
  ~ EAGLEWorker -> TreeWorker  eagle_worker.py:6

phases
  - draft: graph or eager -> eager  (TreeWorker)

fallbacks that became errors
  ! a == self.a: was eager, raises now at cuda_graph_runner.py:9

backends that are captured
  draft  (TreeWorker)
    + TritonBackend (cuda)
    - Old (cuda)

graph decisions
  Old.can_run -> New.can_run  cuda_graph_runner.py:7  (verify)
    ! a == self.a  was at line 8
    + b is None  line 10
    ~ self.runner -> self.decode_runner  line 11
  + new: Other.route  eagle_worker.py:9  (all phases)
"""


def test_text_says_the_most_important_first() -> None:
    assert render_diff(FOUND, "text", DiffOptions()).startswith(TEXT)


def test_a_long_list_is_cut_and_the_cut_is_said() -> None:
    text = render_diff(FOUND, "text", DiffOptions())
    assert f"{SHOWN + 3} added ({SHOWN + 3} removable; 1 only with workers that are added)" in text
    assert text.count(".item()") == SHOWN
    assert "  ... and 2 more (--all shows them)" in text
    whole = render_diff(FOUND, "text", DiffOptions(everything=True))
    assert whole.count(".item()") == SHOWN + 3
    assert "--all" not in whole


def test_nothing_changed_is_said_in_words() -> None:
    assert render_diff(NOTHING, "text", DiffOptions()) == (
        "sglang==0.5.9 -> git:abc\n"
        "no difference in workers, phases, decisions, synchronisations or names\n"
    )
    assert "No difference" in render_diff(NOTHING, "markdown", DiffOptions())


def test_markdown_folds_what_matters_less_and_marks_lines_for_colour() -> None:
    text = render_diff(FOUND, "markdown", DiffOptions())
    assert text.startswith("### specmap: `sglang==0.5.9` → `git:abc`\n")
    head, _, folded = text.partition("<details>")
    assert "- draft: graph or eager -> eager" in head
    assert "\n!   a == self.a" in folded
    assert text.count("<details>") == text.count("</details>") == 4
    assert text.count("```") % 2 == 0


@pytest.mark.parametrize("everything", [False, True])
def test_json_holds_everything(everything: bool) -> None:
    content = json.loads(render_diff(FOUND, "json", DiffOptions(everything=everything)))
    assert len(content["syncs"]) == SHOWN + 3
    assert content["decisions"][0]["terms"][0]["error"] == {
        "file": RUNNER, "line": 9, "end_line": 9,
    }  # fmt: skip
