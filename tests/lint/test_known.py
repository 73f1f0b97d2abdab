"""What counts as new: by meaning, not by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from specmap.codemap.finding import Finding, FindingStatus, LintReport, Match, fingerprint
from specmap.codemap.verdict import PhaseName
from specmap.compare.renames import Renames
from specmap.errors import SpecmapError
from specmap.lint import baseline
from specmap.lint.known import Before, accept, known_of
from tests.lint.samples import match, rule

HERE = frozenset({"EAGLEWorker.verify", "EAGLEWorker.draft"})


def report(*matches: Match) -> LintReport:
    findings = tuple(Finding(rule(), m, fingerprint("SPM901", m)) for m in matches)
    return LintReport("path:sglang-0.5.9", "0.5.9", (rule(),), findings)


def new_since(
    old: Sequence[Match],
    new: Sequence[Match],
    renames: Renames | None = None,
    before: frozenset[str] | None = HERE,
    now: frozenset[str] = HERE,
) -> list[tuple[str, int]]:
    """Return anchor and line of what counts as new."""
    known = Before(known_of(report(*old)), renames or Renames(), before)
    found = accept(report(*new), known, "in the base", now)
    return [(finding.match.anchor, finding.match.span.line) for finding in found.new]


def test_the_same_on_another_line_or_in_another_file_is_not_new() -> None:
    assert new_since([match(line=3)], [match(line=90)]) == []
    assert new_since([match()], [match(file="sglang/srt/speculative/other.py")]) == []


def test_code_that_moved_to_another_function_is_not_new() -> None:
    assert new_since([match()], [match(holder="EAGLEWorker.draft", line=50)]) == []


def test_one_more_of_the_same_is_new() -> None:
    assert new_since([match(line=3)], [match(line=3), match(line=8)]) == [("x.item()", 8)]
    other = match(line=50, holder="EAGLEWorker.draft")
    assert new_since([match(line=3)], [match(line=3), other]) == [("x.item()", 50)]


def test_another_operation_is_new() -> None:
    assert new_since([match("x.item()")], [match("x.tolist()")]) == [("x.tolist()", 3)]


def test_a_renamed_local_is_not_new() -> None:
    assert new_since([match("int(lens.max())")], [match("int(lengths.max())", line=7)]) == []
    assert new_since([match("int(lens.max())")], [match("int(lens.min())")]) != []
    assert new_since([match("out.can_run_graph")], [match("result.can_run_graph")]) == []
    assert new_since([match("out.can_run_graph")], [match("out.logits")]) != []


def test_another_attribute_in_the_same_function_is_new() -> None:
    assert new_since([match("self.a.item()")], [match("self.b.item()")]) == [("self.b.item()", 3)]


def test_a_renamed_class_or_method_is_not_new() -> None:
    renames = Renames(
        {"EAGLEWorker": "TreeWorker"}, {"EAGLEWorker.verify": "TreeWorker.check"},
        {"EAGLEWorker": "TreeWorker", "verify": "check"},
    )  # fmt: skip
    old = [match("self.verify(x).item()")]
    new = [match("self.check(y).item()", holder="TreeWorker.check")]
    now = frozenset({"TreeWorker.check", "TreeWorker.draft"})
    assert new_since(old, new, renames, now=now) == []
    assert new_since(old, new) == [("self.check(y).item()", 3)]


def test_code_extracted_into_a_new_method_with_new_locals_is_not_new() -> None:
    extracted = match("int(values.max())", holder="EAGLEWorker._longest")
    now = HERE | {"EAGLEWorker._longest"}
    assert new_since([match("int(lens.max())")], [extracted], now=now) == []


def test_alike_code_in_another_old_function_is_new() -> None:
    """Both functions were there before: nothing says that one was extracted from the other."""
    other = match("int(values.max())", holder="EAGLEWorker.draft")
    assert new_since([match("int(lens.max())")], [other]) != []


def test_code_that_moved_onto_another_phase_is_new() -> None:
    prefill = replace(match(holder="EAGLEWorker.draft"), phases=(PhaseName.TARGET_PREFILL,))
    assert new_since([prefill], [match()]) == [("x.item()", 3)]


def test_text_that_is_not_code_must_be_the_same() -> None:
    assert new_since([match("argument one")], [match("argument two")]) != []


def test_what_was_accepted_says_so_and_what_is_gone_is_named() -> None:
    known = Before(known_of(report(match("a.item()"), match("b.tolist()"))))
    found = accept(report(match("a.item()")), known, "in baseline.json")
    assert [(f.status, f.reason) for f in found.findings] == [
        (FindingStatus.BASELINED, "in baseline.json")
    ]
    assert [(k.rule, k.anchor) for k in found.gone] == [(found.rules[0].id, "b.tolist()")]


def test_a_comment_stands_above_the_baseline() -> None:
    given = report(match())
    allowed = replace(given.findings[0], status=FindingStatus.SUPPRESSED, reason="measured")
    given = replace(given, findings=(allowed,))
    found = accept(given, Before(known_of(given)), "in baseline.json")
    assert [f.status for f in found.findings] == [FindingStatus.SUPPRESSED]
    assert found.gone == ()


def test_a_baseline_file_gives_back_what_was_written(tmp_path: Path) -> None:
    given = report(match("b.item()"), match("a.item()"))
    text = baseline.dumps(given)
    assert baseline.dumps(report(match("a.item()"), match("b.item()"))) == text
    path = tmp_path / "baseline.json"
    path.write_text(text, "utf-8")
    assert set(baseline.load(path)) == set(known_of(given))


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"specmap_baseline": 2}', '{"specmap_baseline": 1, "findings": [{}]}'],
)
def test_another_file_is_no_baseline(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text, "utf-8")
    with pytest.raises(SpecmapError, match=r"is not a baseline: .*--update-baseline"):
        baseline.load(path)


def test_a_missing_baseline_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(SpecmapError, match=r"cannot read the baseline .*--update-baseline"):
        baseline.load(tmp_path / "none.json")


def test_formatting_is_not_new() -> None:
    before = "torch.tensor( lens, dtype=torch.int32, )"
    after = "torch.tensor(lens,\n    dtype=torch.int32)"
    assert new_since([match(before)], [match(after)]) == []
    first, second = report(match(before)).findings[0], report(match(after)).findings[0]
    assert first.fingerprint == second.fingerprint


def test_a_value_used_once_more_is_not_new() -> None:
    """One line that slices twice by a tensor became two lines."""
    assert new_since([match("first")], [match("first"), match("first", line=4)]) == []
    assert new_since([match("first")], [match("first"), match("last", line=4)]) != []
