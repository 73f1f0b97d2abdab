"""The one store to an attribute: only then is what a constructor gives it what it holds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from specmap.scan.launch.library import Library
from tests.scan.trees import plant

FOLDER = "sglang/srt/speculative"
MADE = "class Runner:\n    def __init__(self, on):\n        {}\n"


@pytest.mark.parametrize(
    ("line", "elsewhere", "value"),
    [
        ("self.limit = 2", "", "2"),
        ("self.limit = 2", "x = runner.limit == 3\n", "2"),
        ("self.limit = 2 if on else 3", "", "2 if on else 3"),
        ("self.limit = 2", "runner.limit = 3\n", None),
        ("self.limit = 2", "runner.limit += 3\n", None),
        ("self.limit = 2", "runner.limit, x = 3, 4\n", None),
        ("self.limit = 2", "runner.limit[0] = 3\n", None),
        ("self.limit = 2", "setattr(runner, 'limit', 3)\n", None),
        ("self.limit = 2", MADE.format("self.limit = 4"), None),
        ("if on: self.limit = 2", "", None),
        ("pass", "", None),
    ],
)
def test_the_one_store(tmp_path: Path, line: str, elsewhere: str, value: str | None) -> None:
    files = {f"{FOLDER}/runner.py": MADE.format(line), f"{FOLDER}/other.py": elsewhere}
    plant(tmp_path, {"sglang/__init__.py": "", **files})
    found = Library(tmp_path, "sglang").stored_once((FOLDER,), "limit")
    assert (ast.unparse(found.value) if found else None) == value


def test_what_the_class_around_a_line_stores(tmp_path: Path) -> None:
    source = (
        "class One:\n"
        "    def __init__(self):\n"
        "        self.top = max(self.sizes)\n"
        "    def ask(self, size):\n"
        "        return size <= self.top\n"
        "class Two:\n"
        "    def __init__(self):\n"
        "        self.top, self.low = 2, 1\n"
        "        self.low += 1\n"
    )
    plant(tmp_path, {f"{FOLDER}/m.py": source})
    library = Library(tmp_path, "sglang")
    module = f"{FOLDER}/m".replace("/", ".")
    assert library.stored_in_class(module, 5, "top") == ["max(self.sizes)"]
    assert library.stored_in_class(module, 7, "top") == ["self.top, self.low = (2, 1)"]
    assert library.stored_in_class(module, 7, "low") == [
        "self.top, self.low = (2, 1)",
        "self.low += 1",
    ]
    assert library.stored_in_class(module, 5, "low") == []
