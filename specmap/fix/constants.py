"""Names that hold True or False for good: of a module, of a class, of its objects."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from specmap.codemap.source import file_of
from specmap.fix.tree import Tree

_PROPERTIES = frozenset({"property", "cached_property"})


class Constants:
    """Looks for names that are stored once in the files of a tree, as True or False.

    ``module`` returns the syntax tree of a file.
    """

    def __init__(self, tree: Tree, module: Callable[[str], ast.Module]) -> None:
        self._tree = tree
        self._module = module

    def of_module(self, symbol: str, function: ast.FunctionDef | None, name: str) -> bool | None:
        """Return the value of a module's name as a function reads it, if that is a constant."""
        module = self._module(file_of(symbol)) if symbol else ast.Module([], [])
        own = function is not None and any(_binds(node, name) for node in ast.walk(function))
        if own or any(isinstance(n, ast.Global) and name in n.names for n in ast.walk(module)):
            return None
        value = _only(module.body, name)
        return None if value is None or self._stores(rf"\w\.{name} *[-+|&:]?=[^=]") else value

    def of_object(self, symbol: str, owner: ast.ClassDef, name: str) -> bool | None:
        """Return the value of ``self.name``, stored once: by a method, or in the class body."""
        file = file_of(symbol)
        if not re.search(rf"\b{name}\b[^=\n]*=", self._tree.text(file)):
            return None
        stores = [
            n for n in ast.walk(owner)
            if isinstance(n, ast.Assign | ast.AnnAssign) and f"self.{name}" in _targets(n)
        ]  # fmt: skip
        outside = self._stores(rf"\w\.{name}(: *[\w.\[\]| ]+)? *[-+|&]?=[^=]")
        if len(stores) == outside == 1:
            return _bool(stores[0].value)
        inside = self._stores(rf"^ +{name}(: *[\w.\[\]| ]+)? *=[^=]")
        return _only(owner.body, name) if (outside, inside) == (0, 1) else None

    def _stores(self, pattern: str) -> int:
        """How often a store stands in the files of the tree."""
        found = re.compile(pattern, re.MULTILINE)
        return sum(len(found.findall(self._tree.text(file))) for file in self._tree.files)


def is_property(owner: ast.ClassDef, name: str) -> bool:
    """Tell whether a class has a property of this name."""
    return any(
        isinstance(d, ast.FunctionDef)
        and d.name == name
        and any(ast.unparse(m).rpartition(".")[2] in _PROPERTIES for m in d.decorator_list)
        for d in owner.body
    )


def _only(body: Sequence[ast.stmt], name: str) -> bool | None:
    """The value of a name that a body binds once, at its top level, to True or False."""
    stores = [s for s in _statements(body) if any(_binds(n, name) for n in ast.walk(s))]
    plain = [s for s in stores if isinstance(s, ast.Assign | ast.AnnAssign) and s in body]
    return _bool(plain[0].value) if len(stores) == len(plain) == 1 else None


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body, without what functions and classes hold."""
    for statement in body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.arg):
        return node.arg == name
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _bool(value: ast.expr | None) -> bool | None:
    known = isinstance(value, ast.Constant) and isinstance(value.value, bool)
    return bool(value.value) if known and isinstance(value, ast.Constant) else None


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [ast.unparse(target) for target in targets]
