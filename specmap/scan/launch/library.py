"""Syntax trees of the modules that an evaluation reaches, parsed once for all evaluations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_HEAD = re.compile(r"^class (\w+)(?:\(([^)]*)\))?:|^    (?:async )?def (\w+)\(", re.MULTILINE)


class Library:
    """The modules below one root, by dotted name."""

    def __init__(self, root: Path, package: str) -> None:
        self.root = root
        self.package = package
        self._trees: dict[str, ast.Module | None] = {}
        self._files: dict[str, str | None] = {}
        self.texts: dict[int, str] = {}
        self._functions: dict[str, list[FunctionNode]] = {}
        self._heads: dict[str, list[tuple[set[str], set[str]]]] = {}

    def file_of(self, name: str) -> str | None:
        """Return the file of a module, relative to the root, or None."""
        if name not in self._files:
            self._files[name] = self._find(name)
        return self._files[name]

    def _find(self, name: str) -> str | None:
        if name.partition(".")[0] != self.package:
            return None
        path = name.replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if (self.root / file).is_file():
                return file
        return None

    def tree(self, name: str) -> ast.Module | None:
        """Return the parsed module, or None if it is not there or cannot be parsed."""
        if name not in self._trees:
            self._trees[name] = self._parse(self.file_of(name))
        return self._trees[name]

    def _parse(self, file: str | None) -> ast.Module | None:
        if file is None:
            return None
        try:
            return ast.parse((self.root / file).read_bytes(), filename=file)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None

    def function_at(self, name: str, line: int) -> FunctionNode | None:
        """Return the innermost function of a module whose body holds a line."""
        tree = self.tree(name)
        if tree is None:
            return None
        if name not in self._functions:
            self._functions[name] = [n for n in ast.walk(tree) if isinstance(n, FunctionNode)]
        around = [
            node
            for node in self._functions[name]
            if node.body[0].lineno <= line <= (node.end_lineno or 0)
        ]
        return max(around, key=lambda node: node.lineno, default=None)

    def class_at(self, name: str, line: int) -> str:
        """Return the class of a module whose body holds a line, "" if none does."""
        tree = self.tree(name)
        for node in tree.body if tree is not None else ():
            if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0):
                return node.name
        return ""

    def is_overridden(self, folders: Iterable[str], cls: str, method: str) -> bool:
        """Whether a class below ``cls``, by the names of its bases, has a method of its own."""
        if not self._heads:
            self._read_heads(folders)
        below, new = {cls}, {cls}
        while new:
            new = {
                name
                for name, found in self._heads.items()
                if name not in below and any(bases & new for bases, _ in found)
            }
            below |= new
        return any(method in has for name in below - {cls} for _, has in self._heads[name])

    def _read_heads(self, folders: Iterable[str]) -> None:
        """Note the bases and methods of the classes in some folders, by text alone."""
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*.py")):
                methods: set[str] = set()
                for head in _HEAD.finditer(path.read_text("utf-8", errors="replace")):
                    name, bases, method = head.groups()
                    if method:
                        methods.add(method)
                        continue
                    methods = set()
                    named = set(re.findall(r"\w+", bases or ""))
                    self._heads.setdefault(name, []).append((named, methods))

    def text(self, node: ast.expr) -> str:
        """Return an expression as text, white space normalised."""
        found = self.texts.get(id(node))
        if found is None:
            found = self.texts[id(node)] = ast.unparse(node)
        return found
