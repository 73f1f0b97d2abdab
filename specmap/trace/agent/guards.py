"""The test under which a statement runs, and how to say that it went the other way."""

from __future__ import annotations

import ast
from dataclasses import dataclass

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Lt: ast.GtE, ast.GtE: ast.Lt,
    ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip


@dataclass(frozen=True)
class Guard:
    """A test and whether it held."""

    test: ast.expr
    holds: bool

    @property
    def name(self) -> str:
        """Return the local name that the test found false, if that is all it asks."""
        test, holds = self.test, self.holds
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        return test.id if isinstance(test, ast.Name) and not holds else ""


def guard_of(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Guard | None:
    """Return the innermost ``if`` around a node."""
    child, parent = node, parents.get(node)
    while parent is not None:
        if isinstance(parent, ast.If) and child is not parent.test:
            return Guard(parent.test, child in parent.body)
        child, parent = parent, parents.get(parent)
    return None


def negated(test: ast.expr) -> str:
    """Return the source text of the opposite of a test: what would have had to hold."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return ast.unparse(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        opposite = _OPPOSITE[type(test.ops[0])]()
        return ast.unparse(ast.Compare(test.left, [opposite], test.comparators))
    return ast.unparse(ast.UnaryOp(ast.Not(), test))
