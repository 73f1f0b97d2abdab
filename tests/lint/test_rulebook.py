from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specmap.codemap.rule import Confidence, Needs, Severity
from specmap.errors import RulesError
from specmap.lint import rulebook

GOOD = """
id = "ABC101"
name = "long-method"
summary = "A method is long"
topic = "samples"
severity = "warning"
confidence = "high"
needs = "static"
detector = "tests.lint.samples:choosy"

[parameters]
words = ["a"]
limit = 3

[releases]
first = "0.5.9"
"""


def declare(folder: Path, name: str, text: str = GOOD) -> Path:
    place = folder / name
    place.mkdir(parents=True)
    (place / "rule.toml").write_text(text, "utf-8")
    return place


def test_a_declaration_becomes_a_rule(tmp_path: Path) -> None:
    place = declare(tmp_path, "ABC101-long-method")
    (place / "README.md").write_text("# ABC101 long-method\n", "utf-8")
    (place / "invalid").mkdir()
    (found,) = rulebook.load_folder(tmp_path, "pack")
    assert (found.id, found.name, found.origin) == ("ABC101", "long-method", "pack")
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert found.needs is Needs.STATIC
    assert dict(found.parameters) == {"words": ["a"], "limit": 3}
    assert (found.first_release, found.last_release) == ("0.5.9", None)
    assert found.explanation == "# ABC101 long-method\n"
    assert not found.fixable
    assert rulebook.check_parameters(found, found.parameters) == []
    (place / "invalid/one.fixed.py").write_text("", "utf-8")
    assert rulebook.load_folder(tmp_path)[0].fixable


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    declare(tmp_path, "ABC101-long-method", GOOD.replace('"warning"', '"fatal"') + "more = 1\n")
    declare(tmp_path, "ABC102-short", GOOD.replace('needs = "static"\n', ""))
    declare(tmp_path, "ABC103-other")
    declare(tmp_path, "ABC104-broken", "id = ")
    with pytest.raises(RulesError) as caught:
        rulebook.load_folder(tmp_path)
    said = str(caught.value)
    for part in (
        "ABC101-long-method/rule.toml: severity: 'fatal' is not allowed; must be one of error,",
        "ABC102-short/rule.toml: needs: missing; must be one of static, observed, both",
        "ABC103-other/rule.toml: id and name: the folder must be called ID-name",
        "ABC104-broken/rule.toml: ",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ('detector = "tests.lint.samples"', "detector: must be 'module:function'"),
        ("", "detector: must be 'module:function'"),
        ('detector = "a:b"\n[releases]\nfirst = "new"', "releases.first: 'new' is not a release"),
        ('detector = "a:b"\n[releases]\nafter = "0.5"', "releases.after: unknown key"),
    ],
)
def test_contradictions(tmp_path: Path, wrong: str, said: str) -> None:
    head = GOOD.partition("detector")[0]
    declare(tmp_path, "ABC101-long-method", head + wrong)
    with pytest.raises(RulesError, match=said):
        rulebook.load_folder(tmp_path)


def test_two_rules_cannot_share_an_id_or_a_name(tmp_path: Path) -> None:
    declare(tmp_path, "ABC101-long-method")
    declare(tmp_path, "ABC102-long-method", GOOD.replace("ABC101", "ABC102"))
    with pytest.raises(RulesError, match="long-method: declared by specmap and by specmap"):
        rulebook.load_folder(tmp_path)


PACK = "specmap_sample_pack"


def install(folder: Path, value: str) -> None:
    """Put a rule pack, as an installer leaves it, into ``folder``."""
    declare(folder / PACK, "ABC101-long-method")
    (folder / PACK / "__init__.py").write_text("", "utf-8")
    info = folder / "sample_pack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[specmap.rules]\nsample = {value}\n")


def test_an_installed_pack_brings_its_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, PACK)
    monkeypatch.syspath_prepend(str(tmp_path))
    rules = {rule.id: rule for rule in rulebook.load()}
    assert rules["ABC101"].origin == "sample-pack"
    assert rules["SPM101"].origin == "specmap"
    sys.modules.pop(PACK)


def test_a_pack_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "specmap_no_such_pack")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RulesError, match="sample-pack: entry point sample: ModuleNotFoundError"):
        rulebook.load()
