"""The first layer of proof: the result parses, and no name lost its binding."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

_BUILTIN = frozenset(dir(builtins))


def broken(before: str, after: str) -> str:
    """Return what is wrong with the text of a changed module; empty if nothing is."""
    try:
        new = ast.parse(after)
    except (SyntaxError, ValueError) as error:
        return f"the result does not parse: {error}"
    old = dict(_functions(ast.parse(before), ""))
    known = _bound(new) | _BUILTIN
    for name, function in _functions(new, ""):
        was = _open(old[name], _BUILTIN) if name in old else set()
        lost = _open(function, known) - was
        if lost:
            return f"{name} reads {', '.join(sorted(lost))}, which nothing binds any more"
        early = _early(function) - (_early(old[name]) if name in old else set())
        if early:
            return f"{name} reads {', '.join(sorted(early))} before it is bound"
    return ""


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try):
            yield from _functions(child, prefix)


def _bound(node: ast.AST) -> set[str]:
    """Every name that is bound somewhere below: stores, arguments, imports, definitions."""
    found: set[str] = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
            found.add(child.id)
        elif isinstance(child, ast.arg):
            found.add(child.arg)
        elif isinstance(child, ast.FunctionDef | ast.ClassDef):
            found.add(child.name)
        elif isinstance(child, ast.Import | ast.ImportFrom):
            found |= {(a.asname or a.name).partition(".")[0] for a in child.names}
        elif isinstance(child, ast.ExceptHandler) and child.name:
            found.add(child.name)
    return found


def _open(function: ast.FunctionDef, known: set[str] | frozenset[str]) -> set[str]:
    loads = {
        n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }
    return loads - _bound(function) - known


def _early(function: ast.FunctionDef) -> set[str]:
    """Local names whose first reading stands above their first binding, loops left out."""
    if any(isinstance(n, ast.For | ast.While | ast.comprehension) for n in ast.walk(function)):
        return set()
    first: dict[tuple[str, bool], int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            key = (node.id, isinstance(node.ctx, ast.Load))
            first[key] = min(first.get(key, node.lineno), node.lineno)
    known = {n.arg for n in ast.walk(function) if isinstance(n, ast.arg)}
    # The test of ``x if (x := y) else z`` stands behind what it binds for.
    known |= {n.target.id for n in ast.walk(function) if isinstance(n, ast.NamedExpr)}
    return {
        name
        for (name, load), line in first.items()
        if load and name not in known and first.get((name, False), 0) > line
    }
