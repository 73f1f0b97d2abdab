"""A rule pack's own examples, as other people would test theirs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from specmap.codemap.rule import parameters_of
from specmap.config import read_config
from specmap.errors import RulesError
from specmap.pipeline import PLATFORMS
from specmap.report.findings import FINDING_FORMATS
from specmap.review import all_rules
from specmap.testing import check_example, check_rule, examples
from tests.review_tree import LAST_LINE, SYNC, VERIFY, edit, plant, scan

DECLARATION = """
id = "ABC101"
name = "no-waiting"
summary = "The host waits"
topic = "samples"
severity = "warning"
confidence = "high"
needs = "static"
detector = "tests.test_testing:waits"
"""


def waits(codemap, parameters):  # type: ignore[no-untyped-def]
    """Find every explicit synchronisation."""
    from specmap.codemap.finding import Match
    from specmap.codemap.graph import SyncKind

    for sync in codemap.syncs:
        if sync.kind is SyncKind.EXPLICIT:
            yield Match(sync.span, sync.holder, sync.operation, f"{sync.operation} waits")


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A pack with one rule; its examples replace the file that verifies."""
    place = tmp_path / "ABC101-no-waiting"
    for kind in ("valid", "invalid"):
        (place / kind).mkdir(parents=True)
    (place / "rule.toml").write_text(DECLARATION, "utf-8")
    (place / "README.md").write_text("# ABC101 no-waiting\n", "utf-8")
    return tmp_path


def write(pack: Path, kind: str, last: str, name: str = "one") -> None:
    text = (plant(pack.parent / f"{pack.name}-{kind}-{name}") / VERIFY).read_text("utf-8")
    content = f"# file: {VERIFY}\n{text.replace(LAST_LINE, last + LAST_LINE)}"
    (pack / "ABC101-no-waiting" / kind / f"{name}.py").write_text(content, "utf-8")


MARKED = SYNC.rstrip("\n") + "  # expect: ABC101\n"


def test_examples_that_hold(pack: Path) -> None:
    write(pack, "valid", "")
    write(pack, "invalid", MARKED)
    found = examples(pack)
    assert [str(example) for example in found] == ["ABC101/valid/one", "ABC101/invalid/one"]
    assert [example.expected for example in found] == [(), ((VERIFY, 11),)]
    for example in found:
        check_example(example)


FUNCTION = f"""\
# function: {VERIFY}::EagleVerify.verify
def verify(self, batch, draft_tokens):
    return batch.seq_lens.sum().item()  # expect: ABC101
"""


def test_an_example_that_replaces_one_function(pack: Path) -> None:
    (pack / "ABC101-no-waiting/invalid/one.py").write_text(FUNCTION, "utf-8")
    (example,) = examples(pack)
    assert example.expected == ((VERIFY, 8),)
    lines = example.files[VERIFY].splitlines()
    assert lines[5:8] == [
        "class EagleVerify:",
        "    def verify(self, batch, draft_tokens):",
        "        return batch.seq_lens.sum().item()",
    ]


def test_an_example_that_gives_a_class_one_more_function(pack: Path) -> None:
    content = FUNCTION.replace(".verify", ".check").replace("def verify", "def check")
    (pack / "ABC101-no-waiting/invalid/one.py").write_text(content, "utf-8")
    (example,) = examples(pack)
    lines = example.files[VERIFY].splitlines()
    assert lines[-2:] == [
        "    def check(self, batch, draft_tokens):",
        "        return batch.seq_lens.sum().item()",
    ]
    assert "    def verify(self, batch: ScheduleBatch, draft_tokens)" in example.files[VERIFY]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("EagleVerify.verify", "EagleCheck.verify", "no class of 'EagleCheck.verify'"),
        ("    return", "  if", f"{VERIFY}, line 8"),
    ],
)
def test_a_function_that_cannot_be_replaced(pack: Path, old: str, new: str, message: str) -> None:
    content = FUNCTION.replace(old, new)
    (pack / "ABC101-no-waiting/invalid/one.py").write_text(content, "utf-8")
    with pytest.raises(RulesError, match=message):
        examples(pack)


def test_a_finding_too_much_and_one_too_few(pack: Path) -> None:
    write(pack, "valid", SYNC)
    (example,) = examples(pack)
    with pytest.raises(AssertionError, match=f"not expected at {VERIFY}:11: .* waits"):
        check_example(example)
    (pack / "ABC101-no-waiting/valid/one.py").unlink()
    write(pack, "invalid", MARKED.replace(".sum().item()", ".cpu_sum"))
    (example,) = examples(pack)
    with pytest.raises(AssertionError, match=f"missing at {VERIFY}:11"):
        check_example(example)


def test_examples_that_contradict_their_folder(pack: Path) -> None:
    write(pack, "valid", MARKED)
    with pytest.raises(RulesError, match=r"valid/one\.py: expects a finding"):
        examples(pack)
    (pack / "ABC101-no-waiting/valid/one.py").unlink()
    write(pack, "invalid", SYNC)
    with pytest.raises(RulesError, match="expects none; mark it '# expect: ABC101'"):
        examples(pack)


def test_an_example_without_a_section(pack: Path) -> None:
    (pack / "ABC101-no-waiting/valid/one.py").write_text("x = 1\n", "utf-8")
    with pytest.raises(RulesError, match="no section; begin one with '# file: "):
        examples(pack)


def code_of(language: str) -> list[str]:
    """Return the code blocks of the page about lint."""
    page = (Path(__file__).parent.parent / "docs/lint.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_detector_of_the_documentation_finds(pack: Path) -> None:
    (block,) = [code for code in code_of("python") if "def detect" in code]
    defined: dict[str, Any] = {}
    exec(block, defined)
    assert parameters_of(defined["detect"]) == {"labels": list}
    tree = plant(pack / "tree")
    edit(tree, VERIFY, (LAST_LINE, SYNC + LAST_LINE))
    codemap = scan(tree)
    (found,) = defined["detect"](codemap, {"labels": ["removable"]})
    assert (found.span.file, found.span.line) == (VERIFY, 11)
    assert list(defined["detect"](codemap, {"labels": []})) == []


def test_the_settings_of_the_documentation_are_accepted() -> None:
    (block,) = [code for code in code_of("toml") if "[tool.specmap]" in code]
    table = tomllib.loads(block)["tool"]["specmap"]
    found = read_config(table, Path(), all_rules(), platforms=PLATFORMS, formats=FINDING_FORMATS)
    assert found.ignore == ("dropped-graph-flag",)


def test_a_rule_needs_three_examples_of_each_kind(pack: Path) -> None:
    for name in ("one", "two", "three"):
        write(pack, "valid", "", name)
        write(pack, "invalid", MARKED, name)
    found = examples(pack)
    check_rule(found[0].rule, found)
    with pytest.raises(AssertionError, match="ABC101: 2 valid examples, at least 3 are due"):
        check_rule(found[0].rule, found[1:])
