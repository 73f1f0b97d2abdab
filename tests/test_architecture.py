from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import specmap

PACKAGE = Path(specmap.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
HEAVY = {"libcst", "torch", "networkx", "graphviz", "rich", "click", "sglang"}
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60


def loaded_after(code: str) -> set[str]:
    """Return the top-level modules that a fresh Python holds after ``code``."""
    report = f"{code}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    result = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


@pytest.mark.parametrize("module", ["specmap", "specmap.codemap.graph", "specmap.errors"])
def test_the_package_and_the_map_load_nothing_heavy(module: str) -> None:
    loaded = loaded_after(f"import {module}")
    assert "specmap" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_command_line_starts_without_the_parsers() -> None:
    loaded = loaded_after("import specmap.cli")
    assert loaded.isdisjoint(HEAVY - {"click"})


def test_the_public_names_are_there() -> None:
    assert dir(specmap) == sorted(specmap.__all__)
    for name in specmap.__all__:
        assert getattr(specmap, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'scan_trees'"):
        specmap.scan_trees  # noqa: B018


def test_imports_go_down_only() -> None:
    """The contracts in pyproject.toml, with the chain of imports in the failure's text."""
    result = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=PACKAGE.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MAX_MODULE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= MAX_FUNCTION_LINES, f"{node.name} has {lines} lines"


def calls_to_the_outside(path: Path) -> list[str]:
    """Return the calls that print to the terminal or end the process."""
    outside = {"print", "exit", "quit", "sys.exit", "os._exit", "click.echo", "click.secho"}
    called = (
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    )
    return [name for name in called if name in outside or name.startswith("sys.stdout.")]


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if path.name != "cli.py"],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_only_the_command_line_prints_and_exits(path: Path) -> None:
    assert calls_to_the_outside(path) == []
