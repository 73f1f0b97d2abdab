"""For which members the methods of an enum hold, read from its class body."""

from __future__ import annotations

import ast
from collections.abc import Mapping

_DEPTH = 12


def methods_of(enum: ast.ClassDef) -> Mapping[str, frozenset[str]]:
    """Return the members for which each method of an enum holds.

    Only methods that are one return statement over comparisons with members are listed.
    """
    members = [
        target.id
        for statement in enum.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    ]
    methods = {d.name: d for d in enum.body if isinstance(d, ast.FunctionDef)}
    return {
        name: frozenset(m for m in members if _holds(methods, name, m, 0))
        for name in methods
        if all(_holds(methods, name, member, 0) is not None for member in members)
    }


def _holds(
    methods: Mapping[str, ast.FunctionDef], name: str, member: str, depth: int
) -> bool | None:
    """Whether a method of an enum that is one return statement holds for a member."""
    method = methods.get(name)
    body = [s for s in method.body if not _is_text(s)] if method is not None else []
    if depth > _DEPTH or len(body) != 1 or not isinstance(body[0], ast.Return):
        return None
    defaults = {}
    if method is not None and method.args.defaults:
        last = method.args.args[-len(method.args.defaults) :]
        defaults = {a.arg: d for a, d in zip(last, method.args.defaults, strict=True)}

    def value(node: ast.expr | None) -> bool | None:
        if isinstance(node, ast.BoolOp):
            results = [value(v) for v in node.values]
            absorbing = isinstance(node.op, ast.Or)
            return absorbing if absorbing in results else None if None in results else not absorbing
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = value(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.IfExp):
            test = value(node.test)
            return None if test is None else value(node.body if test else node.orelse)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return node.value
        if isinstance(node, ast.Name) and node.id in defaults:
            return value(defaults[node.id])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return _holds(methods, node.func.attr, member, depth + 1) if not node.args else None
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and _is_self(node.left):
            other = node.comparators[0]
            items = other.elts if isinstance(other, ast.Tuple | ast.List | ast.Set) else [other]
            among = member in {i.attr for i in items if isinstance(i, ast.Attribute)}
            return among is isinstance(node.ops[0], ast.Eq | ast.Is | ast.In)
        return None

    return value(body[0].value)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
