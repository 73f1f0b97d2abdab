from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from specmap.codemap.finding import FindingStatus, LintReport, Match
from specmap.codemap.rule import Needs, Rule, Severity
from specmap.codemap.source import SourceFile, Span
from specmap.errors import SpecmapError
from specmap.lint.engine import Choice, choose, lint_map
from specmap.lint.rulebook import MALFORMED, UNUSED, load_folder
from specmap.scan.vocabulary import rules_folder
from tests.lint import samples
from tests.lint.samples import FILE, match, rule
from tests.small_map import small_map


@pytest.fixture(autouse=True)
def found() -> Iterator[list[Match]]:
    samples.FOUND.clear()
    yield samples.FOUND
    samples.FOUND.clear()


def lint(*rules: Rule, text: str = "") -> LintReport:
    return lint_map(small_map(), rules, source=lambda _file: text, known=rules)


def test_a_fingerprint_does_not_depend_on_the_line_or_the_file(found: list[Match]) -> None:
    found[:] = [match(line=3)]
    (before,) = lint(rule()).findings
    found[:] = [match(line=70, file="sglang/srt/speculative/moved.py")]
    (after,) = lint(rule()).findings
    assert before.fingerprint == after.fingerprint
    assert len(before.fingerprint) == 32


def test_matches_that_are_alike_have_different_fingerprints(found: list[Match]) -> None:
    found[:] = [match(line=9), match(line=3), match(line=3, holder="EAGLEWorker.draft")]
    fingerprints = [finding.fingerprint for finding in lint(rule()).findings]
    assert len(set(fingerprints)) == 3
    found[:] = [match(line=30), match(line=90)]
    assert [f.fingerprint for f in lint(rule()).findings] == [fingerprints[1], fingerprints[2]]


def test_a_rule_that_fails_is_named_with_its_file_and_the_others_run(found: list[Match]) -> None:
    found[:] = [match()]
    report = lint(rule("SPM902", "broken-rule", "broken"), rule())
    (crash,) = report.crashes
    assert crash.rule == "SPM902"
    assert crash.place.startswith("tests/lint/samples.py:")
    assert crash.message == "ZeroDivisionError: division by zero"
    assert [finding.rule.id for finding in report.findings] == ["SPM901"]


def test_a_rule_without_its_detector_is_a_crash() -> None:
    (crash,) = lint(rule(detector="nothing")).crashes
    assert (crash.rule, crash.place) == ("SPM901", "tests.lint.samples:nothing")


@pytest.mark.parametrize(
    ("first", "last", "runs"),
    [(None, None, True), ("0.5.9", "0.5.9", True), ("0.5.10", None, False), (None, "0.5.8", False)],
)
def test_a_rule_runs_on_its_releases_only(
    found: list[Match], first: str | None, last: str | None, runs: bool
) -> None:
    """The small map is of 0.5.9."""
    found[:] = [match()]
    report = lint(replace(rule(), first_release=first, last_release=last))
    assert bool(report.findings) is runs


def test_what_needs_a_running_server_does_not_run_on_source(found: list[Match]) -> None:
    found[:] = [match()]
    assert lint(replace(rule(), needs=Needs.OBSERVED), rule("SPM902", "both")).findings != ()
    assert lint(replace(rule(), needs=Needs.BOTH)).findings == ()


def test_parameters_are_checked_before_the_detector_runs() -> None:
    wrong = replace(rule(detector="choosy"), parameters={"words": ["a"], "limit": "b", "x": 1})
    (crash,) = lint(wrong).crashes
    assert "limit: must be a whole number, not 'b'" in crash.message
    assert "x: unknown key; allowed: words, limit" in crash.message
    right = replace(rule(detector="choosy"), parameters={"words": ["a"], "limit": 2})
    (finding,) = lint(right).findings
    assert finding.match.message == "['a'] 2"


def test_findings_stand_in_the_order_of_the_source(found: list[Match]) -> None:
    found[:] = [match(line=9, anchor="b"), match(line=3, anchor="c"), match(line=9, anchor="a")]
    lines = [(f.match.span.line, f.match.anchor) for f in lint(rule()).findings]
    assert [line for line, _ in lines] == [3, 9, 9]


COMMENT_RULES = tuple(r for r in load_folder(rules_folder()) if r.id in (UNUSED, MALFORMED))
RULES = (
    *COMMENT_RULES,
    rule("SPM901", "one"),
    rule("SPM911", "two"),
    replace(rule("XYZ901", "three"), topic="t"),
)


@pytest.mark.parametrize(
    ("select", "ignore", "left"),
    [
        ((), (), ["SPM001", "SPM002", "SPM901", "SPM911", "XYZ901"]),
        (("SPM9",), (), ["SPM901", "SPM911"]),
        (("one", "t"), (), ["SPM901", "XYZ901"]),
        (("SPM",), ("SPM0", "two"), ["SPM901"]),
        (("SPM901",), ("one",), []),
    ],
)
def test_selectors(select: tuple[str, ...], ignore: tuple[str, ...], left: list[str]) -> None:
    chosen = choose(RULES, Choice(select=select, ignore=ignore))
    assert [one.id for one in chosen] == left


def test_a_selector_that_names_nothing_is_an_error() -> None:
    with pytest.raises(SpecmapError, match="no rule 'SPM7'; 'specmap rules' lists"):
        choose(RULES, Choice(ignore=("SPM7",)))


def test_severity_and_parameters_can_be_set() -> None:
    given = Choice(severity={"SPM901": Severity.NOTE}, parameters={"SPM901": {"limit": 3}})
    first = next(one for one in choose(RULES, given) if one.id == "SPM901")
    assert (first.severity, dict(first.parameters)) == (Severity.NOTE, {"limit": 3})


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("\n\nx.item()  # specmap: allow long-method -- measured\n", FindingStatus.SUPPRESSED),
        ("\n\nx.item()  # specmap: allow SPM901 -- measured\n", FindingStatus.SUPPRESSED),
        ("\n# specmap: allow long-method -- measured\nx.item()\n", FindingStatus.SUPPRESSED),
        ("# specmap: allow long-method -- measured\n\nx.item()\n", FindingStatus.NEW),
        ("\n\nx.item()  # specmap: allow long-method\n", FindingStatus.NEW),
        ("\n\nx.item()  # specmap: allow other -- measured\n", FindingStatus.NEW),
        ("\n\nf('# specmap: allow long-method -- measured')\n", FindingStatus.NEW),
    ],
)
def test_a_comment_accepts_the_finding_at_its_line(
    found: list[Match], text: str, status: FindingStatus
) -> None:
    found[:] = [match(line=3)]
    report = lint(rule(), text=text)
    finding = next(f for f in report.findings if f.rule.id == "SPM901")
    assert finding.status is status
    assert finding.reason == ("measured" if status is FindingStatus.SUPPRESSED else "")


def test_a_comment_at_the_end_of_a_call_over_many_lines(found: list[Match]) -> None:
    found[:] = [replace(match(), span=Span(FILE, 1, 3))]
    text = "f(\n  a,\n)  # specmap: allow long-method -- measured\n"
    assert lint(rule(), text=text).new == ()


def comments(text: str, *rules: Rule) -> list[tuple[str, int, str]]:
    """Return what is said about the comments of a file: rule, line, message."""
    chosen = choose((*COMMENT_RULES, *rules), Choice())
    codemap = replace(small_map(), files=(SourceFile(FILE, "0" * 64),))
    report = lint_map(codemap, chosen, source=lambda _file: text, known=chosen)
    return [(f.rule.id, f.match.span.line, f.match.message) for f in report.findings]


def test_a_comment_of_no_use_is_reported() -> None:
    text = "# specmap: allow long-method -- measured\nx = 1\n"
    ((id, line, message),) = comments(text, rule())
    assert (id, line) == ("SPM001", 1)
    assert "nothing here is 'long-method'" in message


def test_a_comment_about_a_rule_that_did_not_run_is_left_alone() -> None:
    text = "# specmap: allow long-method -- measured\nx = 1\n"
    assert comments(text, replace(rule(), first_release="0.6")) == []


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# specmap: allow long-method", "gives no reason"),
        ("# specmap: allow long-method --", "gives no reason"),
        ("# specmap: allow -- measured", "names no rule"),
        ("# specmap: allow short-method -- measured", "no rule 'short-method'"),
    ],
)
def test_a_comment_that_cannot_be_used_is_reported(comment: str, said: str) -> None:
    ((id, line, message),) = comments(f"x = 1  {comment}\n", rule())
    assert (id, line) == ("SPM002", 1)
    assert said in message
