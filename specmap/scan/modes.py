"""For which forward modes a test holds, by the mode enum's own methods."""

from __future__ import annotations

import ast

from specmap.scan.enums import methods_of
from specmap.scan.module import last_name
from specmap.scan.resolver import Resolver


class ModeTable:
    """Evaluates tests of the forward mode; ``None`` where one is about something else."""

    def __init__(self, resolver: Resolver) -> None:
        self._attributes = resolver.vocabulary.mode_attribute
        names = sorted(resolver.vocabulary.mode_enum)
        self._enum = next((c for n in names for c in resolver.tree.classes_named(n)), None)
        self.members = tuple(self._enum.assigns) if self._enum else ()
        self._methods = methods_of(self._enum.node) if self._enum else {}

    def predicate(self, test: ast.expr) -> str:
        """Return the name of the enum's method that a test calls on a forward mode."""
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute):
            if test.func.attr in self._methods:
                return test.func.attr
        return ""

    def true_for(self, test: ast.expr) -> frozenset[str] | None:
        """Return the members for which a test holds."""
        if isinstance(test, ast.Call) and self._is_mode(test):
            return self._methods[self.predicate(test)]
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
