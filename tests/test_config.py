from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.rule import Severity
from specmap.config import Config, find_config
from specmap.errors import SpecmapError
from tests.lint.samples import rule

RULES = (rule("SPM901", "long-method"), rule("SPM902", "short-method"))


def config(folder: Path) -> Config:
    return find_config(folder, RULES, platforms=("cuda", "hip"), formats=("full", "json"))


def write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, "utf-8")


def test_everything_that_can_be_set(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        [tool.specmap]
        platform = "hip"
        output-format = "json"
        baseline = "lint/known.json"
        select = ["SPM9"]
        ignore = ["short-method"]

        [tool.specmap.rules.long-method]
        severity = "note"
        parameters = { limit = 3 }
        """,
    )
    found = config(tmp_path)
    assert found.platform == "hip"
    assert found.output_format == "json"
    assert found.baseline == tmp_path / "lint/known.json"
    assert (found.select, found.ignore) == (("SPM9",), ("short-method",))
    assert found.severity == {"SPM901": Severity.NOTE}
    assert found.parameters == {"SPM901": {"limit": 3}}


def test_all_errors_at_once_with_key_and_allowed_values(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        [tool.specmap]
        platform = "gpu"
        baselin = "x"
        select = "SPM9"
        ignore = ["SPM7"]

        [tool.specmap.rules.long-method]
        severity = "fatal"

        [tool.specmap.rules.tall-method]
        severity = "note"
        """,
    )
    with pytest.raises(SpecmapError) as caught:
        config(tmp_path)
    said = str(caught.value)
    assert said.startswith("pyproject.toml: [tool.specmap]: ")
    for part in (
        "platform: 'gpu' is not allowed; must be one of cuda, hip",
        "baselin: unknown key; did you mean baseline?",
        "select: must be a list of strings, not 'SPM9'",
        "ignore: no rule 'SPM7'",
        "rules.long-method.severity: 'fatal' is not allowed; must be one of error, warning, note",
        "rules.tall-method: no such rule",
    ):
        assert part in said


def test_the_nearest_table_counts_and_a_file_without_one_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, '[tool.specmap]\nplatform = "hip"\n')
    write(tmp_path / "python", '[project]\nname = "sglang"\n')
    assert config(tmp_path / "python").platform == "hip"
    write(tmp_path / "python", '[tool.specmap]\nplatform = "cuda"\n')
    assert config(tmp_path / "python").platform == "cuda"


def test_the_search_ends_at_the_top_of_the_repository(tmp_path: Path) -> None:
    write(tmp_path, '[tool.specmap]\nplatform = "hip"\n')
    (tmp_path / "fork/.git").mkdir(parents=True)
    assert config(tmp_path / "fork") == Config()


def test_a_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    write(tmp_path / "fork", "[tool.specmap\n")
    with pytest.raises(SpecmapError, match=r"pyproject\.toml in 'fork' cannot be read"):
        config(tmp_path / "fork")
