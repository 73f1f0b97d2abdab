"""Names that hold one value for good: of a module, of a class, of its objects."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from specmap.codemap.source import file_of, symbol_id
from specmap.fix.scope import definitions
from specmap.fix.tree import Tree

_PROPERTIES = frozenset({"property", "cached_property"})
_KEEPING = _PROPERTIES | {"staticmethod", "classmethod", "cache", "lru_cache"}
_HOPS = 4
_COPIES = frozenset({"replace", "_replace", "evolve"})


@dataclass(frozen=True)
class Stored:
    """The one value of a name, and where it is stored: a function, a class or a module."""

    value: ast.expr
    symbol: str


class Constants:
    """Looks for names that the files of a tree store once; each is looked for once.

    ``module`` returns the syntax tree of a file.
    """

    def __init__(self, tree: Tree, module: Callable[[str], ast.Module]) -> None:
        self._tree = tree
        self._module = module
        self._known: dict[tuple[str, str], Stored | None] = {}
        self._imported: dict[str, dict[str, set[tuple[str, str]]]] = {}
        self._files = frozenset(tree.files)

    def of_module(self, symbol: str, function: ast.FunctionDef | None, name: str) -> Stored | None:
        """Return what a module's name holds as a function reads it, if that is a constant."""
        own = function is not None and any(_binds(node, name) for node in ast.walk(function))
        if own or not symbol:
            return None
        place = self.defined(file_of(symbol), name)
        if place not in self._known:
            self._known[place] = self._of_module(*place)
        return self._known[place]

    def _of_module(self, file: str, name: str) -> Stored | None:
        module = self._module(file)
        if any(isinstance(n, ast.Global) and name in n.names for n in ast.walk(module)):
            return None
        value = _only(module.body, name)
        if value is None or self._stores(rf"\w\.{name} *[-+|&:]?=[^=]"):
            return None
        return Stored(value, symbol_id(file, ""))

    def of_object(self, symbol: str, owner: ast.ClassDef, name: str) -> Stored | None:
        """Return what ``self.name`` holds, stored once: by a method, or in the class body.

        A value that is no literal counts where the object stores it as it is made.
        """
        kind = symbol.rpartition(".")[0]
        if (kind, name) not in self._known:
            self._known[kind, name] = self._of_object(kind, owner, name)
        return self._known[kind, name]

    def _of_object(self, kind: str, owner: ast.ClassDef, name: str) -> Stored | None:
        file = file_of(kind)
        if not re.search(rf"\b{name}\b[^=\n]*=", self._tree.text(file)):
            return None
        stores = [
            (d.name, n.value)
            for d in definitions(owner.body)
            for n in ast.walk(d)
            if isinstance(n, ast.Assign | ast.AnnAssign) and f"self.{name}" in _targets(n)
        ]
        own = None if stores else _only(owner.body, name)
        if len(stores) > 1 or (not stores and own is None):
            return None
        outside = self._stores(rf"\w\.{name}(: *[\w.\[\]| ]+)? *[-+|&]?=[^=]")
        if len(stores) == outside == 1:
            holder, value = stores[0]
            made = value is not None and (holder == "__init__" or isinstance(value, ast.Constant))
            return Stored(value, f"{kind}.{holder}") if made and value is not None else None
        if own is None or outside or self._another(owner, name):
            return None
        return Stored(own, kind)

    def _another(self, owner: ast.ClassDef, name: str) -> bool:
        """Whether an object may have another value than the class: of a subclass, or given.

        A decorator or a base may have made a constructor of the annotated fields.
        """
        fields = [_targets(s)[0] for s in owner.body if isinstance(s, ast.AnnAssign)]
        built = any(d.name == "__init__" for d in definitions(owner.body))
        made = name in fields and not built and (owner.decorator_list or owner.bases)
        place = fields.index(name) if made and not owner.bases else 0
        own = {id(node) for node in ast.walk(owner)}
        for file in self._tree.files:
            known = owner.name in (text := self._tree.text(file))
            for node in ast.walk(self._module(file)) if known or f"{name}=" in text else ():
                if isinstance(node, ast.ClassDef) and _inherits(node, owner.name):
                    if any(_binds(n, name) for s in node.body for n in ast.walk(s)):
                        return True
                if made and isinstance(node, ast.Call):
                    kinds = {owner.name, "cls"} if id(node) in own else {owner.name}
                    if _gives(node, kinds, {name, None} if known else {name}, place):
                        return True
        return False

    def function(
        self, symbol: str, around: ast.FunctionDef | None, name: str
    ) -> tuple[str, ast.FunctionDef] | None:
        """Return the function of a module that a name means inside a function."""
        if around is not None and any(_binds(node, name) for node in ast.walk(around)):
            return None
        file, name = self.defined(file_of(symbol), name)
        found = [d for d in definitions(self._module(file).body) if d.name == name]
        plain = [d for d in found if isinstance(d, ast.FunctionDef) and _is_plain(d)]
        return (symbol_id(file, name), plain[0]) if len(found) == len(plain) == 1 else None

    def method(self, owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
        """Return a method of a class, if no subclass in the tree has one of its own."""
        found = [d for d in definitions(owner.body) if d.name == name]
        plain = [d for d in found if isinstance(d, ast.FunctionDef) and _is_plain(d)]
        if len(found) != 1 or not plain:
            return None
        below = re.compile(rf"^class \w+\([^)]*\b{owner.name}\b", re.MULTILINE)
        for file in self._tree.files:
            text = self._tree.text(file)
            if f"def {name}(" in text and below.search(text):
                for kind in definitions(self._module(file).body):
                    inherits = isinstance(kind, ast.ClassDef) and _inherits(kind, owner.name)
                    if inherits and any(d.name == name for d in definitions(kind.body)):
                        return None
        return plain[0]

    def defined(self, file: str, name: str) -> tuple[str, str]:
        """Return the file that defines a name of a module, and its name there."""
        for _ in range(_HOPS):
            found = self._imports(file).get(name, set())
            other = min(found, default=("", ""))
            if len(found) != 1 or other[0] not in self._files:
                break
            file, name = other
        return file, name

    def _imports(self, file: str) -> dict[str, set[tuple[str, str]]]:
        """What each name that a file imports is, and in which file."""
        if file not in self._imported:
            known = self._imported[file] = {}
            for node in ast.walk(self._module(file)):
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    for alias in node.names:
                        place = (f"{node.module.replace('.', '/')}.py", alias.name)
                        known.setdefault(alias.asname or alias.name, set()).add(place)
        return self._imported[file]

    def _stores(self, pattern: str) -> int:
        """How often a store stands in the files of the tree."""
        found = re.compile(pattern, re.MULTILINE)
        return sum(len(found.findall(self._tree.text(file))) for file in self._tree.files)


def _gives(call: ast.Call, kinds: set[str], names: set[str | None], place: int) -> bool:
    """Whether a call gives a field of a class, or hands the class on."""
    if any(isinstance(a, ast.Name) and a.id in kinds for a in call.args):
        return True
    called = ast.unparse(call.func).rpartition(".")[2]
    if called not in kinds | _COPIES:
        return False
    plain = [a for a in call.args if not isinstance(a, ast.Starred)]
    given = called in kinds and (len(plain) > place or plain != call.args)
    return given or any(k.arg in names for k in call.keywords)


def _inherits(node: ast.ClassDef, name: str) -> bool:
    return any(ast.unparse(base).rpartition(".")[2] == name for base in node.bases)


def _is_plain(function: ast.FunctionDef) -> bool:
    """Whether a call of a function gives what its body returns."""
    marks = (ast.unparse(m).partition("(")[0].rpartition(".")[2] for m in function.decorator_list)
    return _KEEPING.issuperset(marks)


def is_property(owner: ast.ClassDef, name: str) -> bool:
    """Tell whether a class has a property of this name."""
    return any(
        isinstance(d, ast.FunctionDef)
        and d.name == name
        and any(ast.unparse(m).rpartition(".")[2] in _PROPERTIES for m in d.decorator_list)
        for d in owner.body
    )


def _only(body: Sequence[ast.stmt], name: str) -> ast.expr | None:
    """The value of a name that a body binds once, at its top level."""
    stores = [s for s in _statements(body) if any(_binds(n, name) for n in ast.walk(s))]
    plain = [s for s in stores if isinstance(s, ast.Assign | ast.AnnAssign) and s in body]
    if len(stores) == len(plain) == 1 and _targets(plain[0]) == [name]:
        return plain[0].value
    return None


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body, without what functions and classes hold."""
    for statement in body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.arg):
        return node.arg == name
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [ast.unparse(target) for target in targets]
