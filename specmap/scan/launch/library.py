"""Syntax trees of the modules that an evaluation reaches, parsed once for all evaluations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
# ``x.attribute = ...`` in all its forms, and ``setattr(x, "attribute", ...)``.
_STORE = re.compile(
    r"\.(\w+)[ \t]*(?:(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)|:[^=\n]+=(?!=)|,[ \t]*\n"
    r"|[,)\[][^=\n]*=(?!=))|\bsetattr\([^,\n]*,\s*[\"'](\w+)[\"']"
)
_HEAD = re.compile(r"^class (\w+)(?:\(([^)]*)\))?:|^    (?:async )?def (\w+)\(", re.MULTILINE)


class Stored(NamedTuple):
    """A value that a constructor gives an attribute, whatever it is given."""

    module: str
    function: FunctionNode
    value: ast.expr


class Kept(NamedTuple):
    """What a class stores to an attribute, as source, and the tests that it stands under."""

    text: str
    line: int
    under: tuple[tuple[str, bool], ...] = ()


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
        self._stores: Mapping[str, str] | None = None

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

    def stored_in_class(self, name: str, line: int, attribute: str) -> list[Kept]:
        """Return what the class of a module that holds a line stores to ``self.attribute``.

        As source; a statement that changes it otherwise is given whole.
        """
        tree = self.tree(name)
        found: list[Kept] = []
        for cls in tree.body if tree is not None else ():
            if isinstance(cls, ast.ClassDef) and cls.lineno <= line <= (cls.end_lineno or 0):
                found += _kept_in(cls.body, attribute, ())
        return found

    def stored_once(self, folders: Iterable[str], name: str) -> Stored | None:
        """Return the one store to an attribute of this name, where a constructor makes it.

        None also where it hangs on a test, or another line in the folders stores the name.
        """
        if self._stores is None:
            self._stores = self._read_stores(folders)
        file = self._stores.get(name)
        module = file.removesuffix(".py").replace("/", ".") if file else ""
        tree = self.tree(module) if module else None
        for cls in tree.body if tree is not None else ():
            for method in cls.body if isinstance(cls, ast.ClassDef) else ():
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    for item in method.body:
                        if isinstance(item, ast.Assign) and _target(item) == f"self.{name}":
                            return Stored(module, method, item.value)
        return None

    def _read_stores(self, folders: Iterable[str]) -> dict[str, str]:
        """Return the file of each attribute that a single line in some folders stores."""
        found: dict[str, str | None] = {}
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*.py")):
                file = path.relative_to(self.root).as_posix()
                for plain, set_ in _STORE.findall(path.read_text("utf-8", errors="replace")):
                    name = plain or set_
                    found[name] = None if name in found else file
        return {name: file for name, file in found.items() if file is not None}

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


def _target(item: ast.Assign) -> str:
    return ast.unparse(item.targets[0]) if len(item.targets) == 1 else ""


def _kept_in(
    nodes: Iterable[ast.AST], attribute: str, under: tuple[tuple[str, bool], ...]
) -> Iterator[Kept]:
    for inner in nodes:
        if isinstance(inner, ast.If):
            test = ast.unparse(inner.test)
            for holds, block in ((True, inner.body), (False, inner.orelse)):
                yield from _kept_in(block, attribute, (*under, (test, holds)))
        elif isinstance(inner, ast.Assign) and _target(inner) == f"self.{attribute}":
            yield Kept(ast.unparse(inner.value), inner.lineno, under)
        elif _changes(inner, attribute):
            assert isinstance(inner, ast.stmt)
            yield Kept(ast.unparse(inner), inner.lineno, under)
        else:
            yield from _kept_in(ast.iter_child_nodes(inner), attribute, under)


def _changes(node: ast.AST, attribute: str) -> bool:
    """Whether a simple statement stores to an attribute, to parts of it, or calls its methods."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        return isinstance(function, ast.Attribute) and _names(function.value, attribute)
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete):
        return False
    places = (n for n in ast.walk(node) if isinstance(n, ast.Attribute | ast.Subscript))
    return any(
        not isinstance(place.ctx, ast.Load)
        and _names(place.value if isinstance(place, ast.Subscript) else place, attribute)
        for place in places
    )


def _names(node: ast.expr, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute
