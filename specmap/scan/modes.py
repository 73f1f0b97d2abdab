"""For which forward modes a test holds, by the mode enum's own methods."""

from __future__ import annotations

import ast

from specmap.scan.module import ClassInfo, last_name
from specmap.scan.resolver import Resolver

_DEPTH = 6


class ModeTable:
    """Evaluates tests of the forward mode; ``None`` where one is about something else."""

    def __init__(self, resolver: Resolver) -> None:
        self._attributes = resolver.vocabulary.mode_attribute
        names = sorted(resolver.vocabulary.mode_enum)
        self._enum = next((c for n in names for c in resolver.tree.classes_named(n)), None)
        self.members = tuple(self._enum.assigns) if self._enum else ()

    def predicate(self, test: ast.expr) -> str:
        """Return the name of the enum's method that a test calls on a forward mode."""
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute):
            if self._enum is not None and test.func.attr in self._enum.methods:
                return test.func.attr
        return ""

    def true_for(self, test: ast.expr) -> frozenset[str] | None:
        """Return the members for which a test holds."""
        if isinstance(test, ast.Call) and self._is_mode(test):
            method = self.predicate(test)
            return frozenset(m for m in self.members if self._holds(method, m, 0) is True)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            if isinstance(test.ops[0], ast.Eq | ast.Is) and self._names_mode(test.left):
                return self._member(test.comparators[0])
        return None

    def _is_mode(self, test: ast.Call) -> bool:
        if not self.predicate(test) or not isinstance(test.func, ast.Attribute):
            return False
        return self._names_mode(test.func.value)

    def _names_mode(self, node: ast.expr) -> bool:
        name = last_name(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        return name in self._attributes or name in ("mode", "fm")

    def _member(self, node: ast.expr) -> frozenset[str] | None:
        name = last_name(node) if isinstance(node, ast.Attribute) else ""
        return frozenset({name}) if name in self.members else None

    def _holds(self, method: str, member: str, depth: int) -> bool | None:
        cls: ClassInfo | None = self._enum
        function = cls.methods.get(method) if cls else None
        if function is None or depth > _DEPTH:
            return None
        returned = function.facts.returned
        return self._value(returned[0], member, depth) if len(returned) == 1 else None

    def _value(self, node: ast.expr, member: str, depth: int) -> bool | None:
        if isinstance(node, ast.BoolOp):
            values = [self._value(v, member, depth) for v in node.values]
            absorbing = isinstance(node.op, ast.Or)
            if absorbing in values:
                return absorbing
            # A parameter that a plain call leaves at its default is taken as false.
            return None if None in values and not absorbing else not absorbing
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._value(node.operand, member, depth)
            return None if inner is None else not inner
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            right = node.comparators[0]
            items = right.elts if isinstance(right, ast.Tuple | ast.Set | ast.List) else [right]
            inside = member in {last_name(item) for item in items}
            return inside if isinstance(node.ops[0], ast.Eq | ast.In | ast.Is) else not inside
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self._holds(node.func.attr, member, depth + 1)
        if isinstance(node, ast.Constant):
            return bool(node.value)
        return False if isinstance(node, ast.Name) else None
