"""Where a test stands, and what its names are bound to there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

DEPTH = 12
"""How many steps away from a test its values are looked for."""


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: a function, the class around it, and their file.

    ``given`` and ``modes`` say of parameters whether they hold, and which modes they name.
    ``made`` says that the expression is evaluated once, before there is a batch.
    """

    symbol: str = ""
    function: ast.FunctionDef | None = None
    owner: ast.ClassDef | None = None
    given: tuple[tuple[str, bool | None], ...] = ()
    depth: int = 0
    modes: tuple[tuple[str, frozenset[str]], ...] = ()
    made: bool = False

    def binding(self, name: str) -> ast.expr | None:
        """Return the value of a name that the function binds once and at its top level."""
        if self.function is None:
            return None
        stores = [n for n in ast.walk(self.function) if _stores(n, name)]
        plain = [
            s.value for s in self.function.body
            if isinstance(s, ast.Assign) and _is_name(s.targets, name)
        ]  # fmt: skip
        return plain[0] if len(stores) == len(plain) == 1 else None


def deeper(scope: Scope) -> Scope:
    """Return the scope with one more step behind it."""
    return replace(scope, depth=scope.depth + 1)


def parameters(function: ast.FunctionDef, of_class: bool) -> list[str]:
    """Return the parameters of a function that its callers fill."""
    static = any(ast.unparse(d) == "staticmethod" for d in function.decorator_list)
    return [a.arg for a in function.args.args[1 if of_class and not static else 0 :]]


def definitions(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """Yield the classes and functions of a body, those under ``if`` and ``try`` included."""
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            yield statement
        elif isinstance(statement, ast.If | ast.Try):
            yield from definitions([*statement.body, *statement.orelse])


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _is_name(targets: Sequence[ast.expr], name: str) -> bool:
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name


def is_self(node: ast.expr) -> bool:
    """Tell whether an expression is ``self``."""
    return isinstance(node, ast.Name) and node.id == "self"


def is_none(node: ast.expr) -> bool:
    """Tell whether an expression is ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


def asked(bound: ast.expr) -> ast.expr:
    """Return the call of what a name is bound to: a method, or one of two."""
    if isinstance(bound, ast.IfExp):
        return ast.IfExp(bound.test, asked(bound.body), asked(bound.orelse))
    return ast.Call(bound, [], [])
