"""What an unknown test says about the values it tests, inside its arms."""

from __future__ import annotations

import ast

from specmap.scan.launch.comparing import truth_of
from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import Choice, Either, Holder, Instance, Member, Scope, View, same


def narrow(machine: Machine, test: ast.expr, scope: Scope, holds: bool) -> None:
    """Drop the alternatives of a name or attribute that a test rules out."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        narrow(machine, test.operand, scope, not holds)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is holds:
            for value in test.values:
                narrow(machine, value, scope, holds)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _compared(machine, test, scope, holds)
    elif isinstance(test, ast.Name | ast.Attribute):
        place = _place(test, scope)
        if place is not None:
            _keep(machine, place, lambda value: truth_of(machine, value) is holds)


def _compared(machine: Machine, test: ast.Compare, scope: Scope, holds: bool) -> None:
    right = test.comparators[0]
    place = _place(test.left, scope)
    if place is None or not isinstance(right, ast.Constant):
        return
    if not isinstance(test.ops[0], ast.Is | ast.Eq | ast.IsNot | ast.NotEq):
        return
    equal = isinstance(test.ops[0], ast.Is | ast.Eq) is holds
    constant = right.value
    if isinstance(test.ops[0], ast.Is | ast.IsNot):
        _keep(machine, place, lambda value: same(value, constant) is equal)
    else:
        _keep(machine, place, lambda v: isinstance(v, Member) or (v == constant) is equal)


def _place(node: ast.expr, scope: Scope) -> tuple[Holder, str] | None:
    """Return the slot that a name or an attribute of a name reads."""
    if isinstance(node, ast.Name):
        return (scope, node.id) if node.id in scope.slots else None
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return None
    current: Scope | None = scope
    while current is not None and node.value.id not in current.slots:
        current = current.parent
    owner = current.slots[node.value.id] if current is not None else None
    if isinstance(owner, View) and owner.snapshot is None:
        return (owner.overlay, node.attr)
    return (owner, node.attr) if isinstance(owner, Instance) else None


def _keep(machine: Machine, place: tuple[Holder, str], test: object) -> None:
    holder, slot = place
    if holder is machine.record and slot not in machine.declared.slots:
        _keep(machine, (machine.overlay, slot), test)
    value = holder.slots.get(slot)
    if isinstance(value, Choice | Either) and callable(test):
        kept = [v for v in value.values if test(v)]
        if kept:
            machine.heap.store(holder, slot, machine.heap.join_values(kept, value.reasons))
