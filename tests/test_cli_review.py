"""The verbs lint, rules, explain and diff on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specmap.lint import rulebook
from specmap.scan.vocabulary import rules_folder
from tests.lint.samples import rule
from tests.review_tree import VERIFY, Run


def test_no_finding_is_exit_code_0(run: Run) -> None:
    code, out, err = run("lint", "clean")
    assert (code, err) == (0, "")
    assert out == "path:sglang: no findings\n"


def test_a_finding_is_exit_code_1(run: Run) -> None:
    code, out, err = run("lint", "bad", "--output-format", "concise")
    assert (code, err) == (1, "")
    assert out.startswith(f"bad/{VERIFY}:11: SPM201 host-sync-on-cycle: ")


def test_a_rule_that_fails_is_exit_code_2_and_the_others_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = (*rulebook.load(), rule("SPM902", "broken-rule", "broken"))
    monkeypatch.setattr(rulebook, "load", lambda: rules)
    code, out, err = run("lint", "bad", "--output-format", "concise")
    assert code == 2
    assert "SPM201" in out
    assert err.startswith("specmap: rule SPM902 failed, tests/lint/samples.py:")


def test_selected_rules_and_counts(run: Run) -> None:
    assert run("lint", "bad", "--ignore", "host-sync,interfaces")[0] == 0
    code, out, _ = run("lint", "bad", "--select", "SPM201", "--statistics")
    assert code == 1
    assert "host-sync-on-cycle" in out


def test_counts_have_no_other_format(run: Run) -> None:
    code, out, err = run("lint", "bad", "--statistics", "--output-format", "sarif")
    assert (code, out) == (2, "")
    assert err == "specmap: --statistics is text for people; it cannot be written as sarif\n"


def test_findings_go_to_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "found").mkdir()
    code, out, _ = run("lint", "bad", "--output-format", "sarif", "-o", "found/specmap.sarif")
    assert (code, out) == (1, "")
    log = json.loads((tmp_path / "found/specmap.sarif").read_text("utf-8"))
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["SPM201"]


def test_update_baseline_writes_and_accepts(run: Run) -> None:
    code, _, err = run("lint", "bad", "--update-baseline", "--baseline", "known.json")
    assert (code, err) == (0, "specmap: wrote known.json\n")
    assert run("lint", "bad", "--baseline", "known.json")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lint", "nowhere"), "'nowhere': no such folder"),
        (("lint", "bad", "--select", "SPM7"), "no rule 'SPM7'; 'specmap rules' lists"),
        (("lint", "bad", "--base", "nonsense"), "git:nonsense: "),
        (("lint", "bad", "--baseline", "none.json"), "cannot read the baseline 'none.json'"),
        (("explain", "host-sync-on-cycl"), "did you mean host-sync-on-cycle"),
        (("explain", "spf101"), "it is a rewrite: 'specmap fix --explain SPF101' shows its page"),
        (("explain", "verify-excluded"), "'specmap fix --explain SPF101' shows its page"),
        (("explain", "SPF1011"), "did you mean SPF101"),
        (("diff", "bad", "nowhere"), "'nowhere': no such folder"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(
    run: Run, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("specmap: ")
    assert said in err
    assert err.count("\n") == 1


def test_rules_lists_every_rule(run: Run) -> None:
    code, out, _ = run("rules", "--json")
    assert code == 0
    ids = [record["id"] for record in json.loads(out)]
    assert ids == sorted(ids)
    assert {"SPM001", "SPM002", "SPM113", "SPM101", "SPM401"} <= set(ids)
    assert {path.name[:6] for path in rules_folder().glob("SPM*")} == set(ids)
    table = run("rules")[1]
    assert all(one.id in table for one in rulebook.load())


@pytest.mark.parametrize("name", ["SPM201", "spm201", "host-sync-on-cycle"])
def test_explain_shows_the_page_of_a_rule(run: Run, name: str) -> None:
    code, out, _ = run("explain", name)
    assert code == 0
    assert out.startswith("# SPM201 host-sync-on-cycle\n")
    assert "allow with: # specmap: allow host-sync-on-cycle -- reason" in out


def test_diff_says_what_changed(run: Run) -> None:
    assert run("diff", "clean", "clean")[0] == 0
    code, out, err = run("diff", "clean", "bad", "--format", "json")
    assert (code, err) == (1, "")
    (sync,) = json.loads(out)["syncs"]
    assert (sync["change"], sync["operation"]) == ("added", "batch.seq_lens.sum().item()")
