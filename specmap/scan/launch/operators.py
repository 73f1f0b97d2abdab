"""Arithmetic."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import (
    Box,
    External,
    Holder,
    Member,
    Unknown,
    View,
    reasons_of,
)

_BINARY: dict[type[ast.operator], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_UNARY: dict[type[ast.unaryop], Callable[..., object]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_LONGEST = 100_000


def binary(machine: Machine, op: ast.operator, left: object, right: object) -> object:
    """Return the result of a binary operator.

    Raises:
        Raised: the operands do not support it.
    """
    if isinstance(left, Box) or isinstance(right, Box):
        return _boxes(machine, op, left, right)
    left, right = (o.value if isinstance(o, Member) else o for o in (left, right))
    if isinstance(left, str) and isinstance(op, ast.Mod):
        return machine.unknown("a formatted text")
    if any(isinstance(o, Holder | External | View) for o in (left, right)):
        return machine.unknown(*reasons_of(left), *reasons_of(right))
    call = _BINARY.get(type(op))
    if call is None or _too_large(op, left, right):
        return machine.unsupported("an operator")
    return machine.lift(call, left, right)


def _too_large(op: ast.operator, left: object, right: object) -> bool:
    if isinstance(op, ast.Pow | ast.LShift):
        return isinstance(right, int) and right > 4096
    sizes = [o for o in (left, right) if isinstance(o, str | tuple)]
    counts = [o for o in (left, right) if isinstance(o, int)]
    return isinstance(op, ast.Mult) and bool(
        sizes and counts and counts[0] * len(sizes[0]) > _LONGEST
    )


def _boxes(machine: Machine, op: ast.operator, left: object, right: object) -> object:
    first = machine.content(left) if isinstance(left, Box) else left
    second = machine.content(right) if isinstance(right, Box) else right
    kind = left.kind if isinstance(left, Box) else right.kind if isinstance(right, Box) else "list"
    if isinstance(first, Unknown) or isinstance(second, Unknown):
        return machine.box(kind, Unknown((*reasons_of(first), *reasons_of(second))))
    call = _BINARY[type(op)]
    if isinstance(op, ast.Mult) and _too_large(op, first, second):
        return machine.unsupported("a long list")
    return machine.box(kind, machine.lift(call, first, second))


def unary(machine: Machine, op: ast.unaryop, value: object) -> object:
    """Return the result of ``-``, ``+`` or ``~``.

    Raises:
        Raised: the operand does not support it.
    """
    if isinstance(value, Holder | External | View):
        return machine.unknown("an operator on an object")
    return machine.lift(_UNARY[type(op)], value)
