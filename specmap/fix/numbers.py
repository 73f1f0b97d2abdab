"""Comparisons of numbers that come out the same for every verify batch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from operator import add, eq, floordiv, ge, gt, le, lt, mod, mul, ne, sub

from specmap.fix.scope import DEPTH, Scope

_BATCHES = tuple((bs, width) for bs in (1, 2, 3, 8, 64) for width in (2, 3, 4, 5, 16))
_COMPARE = {ast.Eq: eq, ast.NotEq: ne, ast.Lt: lt, ast.LtE: le, ast.Gt: gt, ast.GtE: ge}
_COMPUTE = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.FloorDiv: floordiv, ast.Mod: mod}
Lookup = Callable[[ast.expr, Scope], tuple[ast.expr, Scope] | None]


class Numbers:
    """Computes with the numbers of a batch: ``known`` says which names are which.

    ``lookup`` returns what a name or an attribute holds, and where that expression stands.
    """

    def __init__(self, known: Mapping[str, str], lookup: Lookup) -> None:
        self.known = known
        self._lookup = lookup

    def compared(
        self, operator: ast.cmpop, left: ast.expr, right: ast.expr, scope: Scope
    ) -> bool | None:
        """Return the result of a comparison where it is the same for all batches tried."""
        compare = _COMPARE.get(type(operator))
        if compare is None:
            return None
        found: set[bool] = set()
        for bs, width in _BATCHES:
            one, other = (self._number(n, scope, bs, width) for n in (left, right))
            if one is None or other is None:
                return None
            found.add(compare(one, other))
        return found.pop() if len(found) == 1 else None

    def _number(self, node: ast.expr, scope: Scope, bs: int, width: int) -> int | None:
        text = ast.unparse(node)
        if isinstance(node, ast.Call) and text.startswith("len(") and len(node.args) == 1:
            text = f"{ast.unparse(node.args[0])}.numel()"
        for name, value in () if isinstance(node, ast.BinOp) else self.known.items():
            if text == name or text.endswith(f".{name}"):
                of_batch = {} if scope.made else {"bs": bs, "bs * width": bs * width}
                return {**of_batch, "width": width}.get(value)
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTE:
            one, other = (self._number(n, scope, bs, width) for n in (node.left, node.right))
            if one is None or other is None:
                return None
            if other == 0 and isinstance(node.op, ast.FloorDiv | ast.Mod):
                return None
            return int(_COMPUTE[type(node.op)](one, other))
        bound = self._lookup(node, scope) if scope.depth <= DEPTH else None
        return None if bound is None else self._number(*bound, bs, width)
