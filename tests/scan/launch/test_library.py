"""The one store to an attribute: only then is what a constructor gives it what it holds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from specmap.scan.launch.library import Kept, Library
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
    assert library.stored_in_class(module, 5, "top") == [Kept("max(self.sizes)", 3)]
    both = Kept("self.top, self.low = (2, 1)", 8)
    assert library.stored_in_class(module, 7, "top") == [both]
    assert library.stored_in_class(module, 7, "low") == [both, Kept("self.low += 1", 9)]
    assert library.stored_in_class(module, 5, "low") == []


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("self.top = f()", "f()"),
        ("del self.top[2:]", "del self.top[2:]"),
        ("self.top[1:] = [4]", "self.top[1:] = [4]"),
        ("self.top.pop()", "self.top.pop()"),
        ("self.other = self.top[:2]", ""),
        ("show(self.top)", ""),
        ("for self.low in self.top: pass", ""),
    ],
)
def test_what_changes_an_attribute_and_under_which_tests(
    tmp_path: Path, statement: str, kept: str
) -> None:
    source = (
        "class One:\n    def __init__(self):\n        if a:\n            pass\n"
        f"        elif b:\n            {statement}\n"
    )
    plant(tmp_path, {f"{FOLDER}/m.py": source})
    found = Library(tmp_path, "sglang").stored_in_class(f"{FOLDER}/m".replace("/", "."), 2, "top")
    assert found == ([Kept(kept, 6, (("a", False), ("b", True)))] if kept else [])
