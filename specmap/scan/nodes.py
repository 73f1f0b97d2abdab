"""The nodes of a syntax tree, several times faster than ``ast.walk``.

Load and store contexts and operators are left out: nothing here asks for them, and they are
a third of all nodes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

# Fields that never hold a node that matters.
_LEFT_OUT = frozenset(
    {"ctx", "op", "ops", "id", "attr", "kind", "type_comment", "level", "module", "asname"}
    | {"conversion", "is_async", "simple", "lineno", "type_ignores"}
)
_PARTS: dict[type[ast.AST], tuple[str, ...]] = {}


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly below one, in source order of their fields."""
    found: list[ast.AST] = []
    _add_children((node,), found)
    return found


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """Return what a call passes, by position and by name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def nodes_in(node: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it, breadth first as ``ast.walk`` does."""
    found = [node]
    _add_children(found, found)
    return found


def _add_children(nodes: Iterable[ast.AST], found: list[ast.AST]) -> None:
    """Add the children of each node; ``nodes`` may be the list that grows."""
    syntax = ast.AST
    for node in nodes:
        kind = type(node)
        if kind not in _PARTS:
            # The value of a constant is no node.
            left_out = node._fields if kind is ast.Constant else _LEFT_OUT
            _PARTS[kind] = tuple(f for f in node._fields if f not in left_out)
        for name in _PARTS[kind]:
            value = getattr(node, name, None)
            if not value:
                continue
            if type(value) is list:
                found += [part for part in value if isinstance(part, syntax)]
            elif isinstance(value, syntax):
                found.append(value)


def expressions_below(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions directly below one, through keywords, slices and f-strings."""
    for child in children(node):
        if isinstance(child, ast.keyword | ast.FormattedValue):
            yield child.value
        elif isinstance(child, ast.Slice):
            yield from (part for part in (child.lower, child.upper, child.step) if part)
        elif isinstance(child, ast.expr):
            yield child
