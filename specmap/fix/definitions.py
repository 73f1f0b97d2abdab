"""Where the definitions of a tree stand, and which one a call means."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cached_property

from specmap.codemap.graph import EdgeStatus
from specmap.codemap.source import Span, canonical, file_of, qualname_of, symbol_id
from specmap.fix.constants import Constants
from specmap.fix.scope import Scope, definitions, is_self
from specmap.fix.tree import Tree


class Definitions:
    """The functions and classes of a tree, by their ids and by the calls that mean them."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._modules: dict[str, ast.Module] = {}
        kept = tree.kept.get("constants")
        self.constants = kept if isinstance(kept, Constants) else Constants(tree, self.module)
        tree.kept["constants"] = self.constants

    def module(self, file: str) -> ast.Module:
        """Return the syntax tree of a file; empty where it cannot be read."""
        if file not in self._modules:
            try:
                self._modules[file] = ast.parse(self.tree.text(file))
            except (SyntaxError, ValueError):
                self._modules[file] = ast.Module([], [])
        return self._modules[file]

    def scope(self, symbol: str) -> Scope:
        """Return the scope of a function."""
        owner, function = None, None
        body: Sequence[ast.stmt] = self.module(file_of(symbol)).body
        for name in symbol.rpartition("::")[2].split("."):
            found = next((d for d in definitions(body) if d.name == name), None)
            if isinstance(found, ast.ClassDef):
                owner = found
            elif isinstance(found, ast.FunctionDef):
                function = found
            else:
                return Scope(symbol)
            body = found.body
        return Scope(symbol, function, owner)

    def scope_at(self, span: Span | None) -> Scope:
        """Return the scope of the innermost method or function around a place."""
        for outer in definitions(self.module(span.file).body) if span is not None else ():
            inner = definitions(outer.body) if isinstance(outer, ast.ClassDef) else ()
            for found in (*inner, outer):
                end = found.end_lineno or found.lineno
                if span is not None and found.lineno <= span.line <= end:
                    name = found.name if found is outer else f"{outer.name}.{found.name}"
                    return self.scope(symbol_id(span.file, name))
        return Scope()

    def meant(
        self, function: ast.expr, scope: Scope
    ) -> tuple[str, ast.FunctionDef, ast.ClassDef | None] | None:
        """Return the one function of the tree that a call means.

        The map knows where it follows the call; elsewhere it is one of a module, or a method of
        the same class.
        """
        known = self._callees.get((scope.symbol, ast.unparse(function)))
        if known is not None:
            symbol = min(known) if len(known) == 1 else ""
            inside = self.scope(symbol) if symbol else Scope()
            owner, name = inside.owner, symbol.rpartition(".")[2]
            if inside.function is None or (owner and not self.constants.method(owner, name)):
                return None
            return symbol, inside.function, owner
        if isinstance(function, ast.Name) and scope.symbol:
            found = self.constants.function(scope.symbol, scope.function, function.id)
            return None if found is None else (*found, None)
        owner = scope.owner
        if owner is None or not isinstance(function, ast.Attribute) or not is_self(function.value):
            return None
        method = self.constants.method(owner, function.attr)
        if method is None:
            return None
        return f"{scope.symbol.rpartition('.')[0]}.{function.attr}", method, owner

    @cached_property
    def _callees(self) -> Mapping[tuple[str, str], set[str]]:
        """What each call of a function can mean by its name; empty where the map does not know.

        The edge of ``a.b().c()`` also holds what ``c`` means.
        """
        found: dict[tuple[str, str], set[str]] = {}
        for edge in self.tree.codemap.edges:
            known = edge.status is EdgeStatus.STATIC
            text = canonical(edge.text)
            name = text.rpartition(".")[2]
            meant = {c for c in edge.callees if known and qualname_of(c).rpartition(".")[2] == name}
            found.setdefault((edge.caller, text), set()).update(meant or {""})
        return found
