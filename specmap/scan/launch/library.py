"""Syntax trees of the modules that an evaluation reaches, parsed once for all evaluations."""

from __future__ import annotations

import ast
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Library:
    """The modules below one root, by dotted name."""

    def __init__(self, root: Path, package: str) -> None:
        self.root = root
        self.package = package
        self._trees: dict[str, ast.Module | None] = {}
        self._files: dict[str, str | None] = {}
        self.texts: dict[int, str] = {}
        self._functions: dict[str, list[FunctionNode]] = {}

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

    def text(self, node: ast.expr) -> str:
        """Return an expression as text, white space normalised."""
        found = self.texts.get(id(node))
        if found is None:
            found = self.texts[id(node)] = ast.unparse(node)
        return found
