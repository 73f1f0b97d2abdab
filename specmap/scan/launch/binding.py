"""Assigning values to targets."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import (
    Module,
    Raised,
    Scope,
    Unknown,
    reasons_of,
)


class Binding:
    """Assigns values to names, attributes, elements and tuples of them, on one machine."""

    def __init__(self, machine: Machine, builtin: Callable[[str], object]) -> None:
        self.machine = machine
        self.builtin = builtin

    def bind(self, target: ast.expr, value: object, scope: Scope) -> None:
        """Assign a value to a target."""
        machine = self.machine
        if isinstance(target, ast.Name):
            machine.heap.store(_home(scope, target.id), target.id, value)
        elif isinstance(target, ast.Attribute):
            machine.assign_attribute(machine.evaluate(target.value, scope), target.attr, value)
        elif isinstance(target, ast.Subscript):
            container = machine.evaluate(target.value, scope)
            key = machine.evaluate(target.slice, scope)
            machine.invoke(self.builtin("__setitem__"), [container, key, value], {})
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, value, scope)

    def _unpack(self, targets: Sequence[ast.expr], value: object, scope: Scope) -> None:
        items = self.machine.invoke(self.builtin("__iter__"), [value], {})
        starred = any(isinstance(t, ast.Starred) for t in targets)
        if not isinstance(items, tuple) or starred:
            for target in targets:
                inner = target.value if isinstance(target, ast.Starred) else target
                self.bind(inner, Unknown(reasons_of(items) or ("an unpacked value",)), scope)
            return
        if len(items) != len(targets):
            raise Raised("ValueError", f"expected {len(targets)} values, got {len(items)}")
        for target, item in zip(targets, items, strict=True):
            self.bind(target, item, scope)


def _home(scope: Scope, name: str) -> Scope:
    """Return the scope that an assignment to a name writes."""
    if name not in scope.nonlocals:
        return scope
    current = scope.parent
    while current is not None and name not in current.slots and not isinstance(current, Module):
        current = current.parent
    return current or scope
