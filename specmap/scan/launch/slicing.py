"""What a local name holds at a line: the statements of its function that bind it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from specmap.scan.launch.library import FunctionNode

_GROWING = frozenset({"append", "extend", "insert", "add", "update"})


def binding(function: FunctionNode, name: str, line: int) -> list[ast.stmt] | None:
    """Return the statements before ``line`` that give a local name its value.

    Branches keep their tests. None: it is a parameter, or bound in a way that this does not
    follow (a loop, a ``with``, a ``try``), or not at all.
    """
    args = function.args
    named = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
    if any(arg is not None and arg.arg == name for arg in named):
        return None
    kept = _kept(function.body, name, line)
    return kept or None


def _kept(body: Sequence[ast.stmt], name: str, line: int) -> list[ast.stmt] | None:
    """Return the part of a body that binds a name; None where that cannot be told."""
    kept: list[ast.stmt] = []
    for item in body:
        if item.lineno >= line:
            break
        if isinstance(item, ast.If):
            inner, other = _kept(item.body, name, line), _kept(item.orelse, name, line)
            if inner is None or other is None:
                return None
            if inner or other:
                same = ast.copy_location(ast.If(item.test, inner or [ast.Pass()], other), item)
                kept.append(ast.fix_missing_locations(same))
        elif _binds(item, name):
            kept.append(item)
        elif _touches(item, name):
            return None
    return kept


def _binds(item: ast.stmt, name: str) -> bool:
    if isinstance(item, ast.Import | ast.ImportFrom):
        return any((a.asname or a.name.partition(".")[0]) == name for a in item.names)
    if isinstance(item, ast.Assign):
        return any(isinstance(t, ast.Name) and t.id == name for t in item.targets)
    if isinstance(item, ast.AnnAssign | ast.AugAssign):
        return isinstance(item.target, ast.Name) and item.target.id == name
    call = item.value if isinstance(item, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return _is(call.func.value, name) and call.func.attr in _GROWING
    return False


def _touches(item: ast.stmt, name: str) -> bool:
    """Whether a statement may change what a name holds in a way that is not followed."""
    for node in ast.walk(item):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) == name:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _is(node.func.value, name) and node.func.attr in _GROWING:
                return True
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if _is(node.value, name):
                return True
    return False


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
