"""Takes terms, disjuncts and statements out of a decision, as text changes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Change
from specmap.fix.tree import Source


def unwrapped(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what stands inside ``bool(...)``, or the node."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and len(node.args) == 1:
        if node.func.value == "bool" and node.args[0].keyword is None:
            return node.args[0].value
    return node


def operands(
    node: cst.BaseExpression, operator: type[cst.BaseBooleanOp]
) -> list[cst.BaseExpression]:
    """Return the operands of a chain of one operator, from left to right."""
    if not isinstance(node, cst.BooleanOperation) or not isinstance(node.operator, operator):
        return [node]
    left = node.left
    inner = operands(left, operator) if not left.lpar else [left]
    right = operands(node.right, operator) if not node.right.lpar else [node.right]
    return [*inner, *right]


def required(node: cst.BaseExpression, holds: bool = True) -> Iterator[cst.BaseExpression]:
    """Yield the parts of a test that take part in it as they are, where it shall hold or not.

    What a ``not`` turns round is left out: where that is false, the test is true.
    """
    node = unwrapped(node)
    if isinstance(node, cst.BooleanOperation):
        yield from required(node.left, holds)
        yield from required(node.right, holds)
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        yield from required(node.expression, not holds)
    elif isinstance(node, cst.IfExp):
        yield from required(node.body, holds)
        yield from required(node.orelse, holds)
    elif (nothing := _compared_with_none(node)) is not None:
        yield from required(nothing.left, holds is _differs(nothing))
    elif holds:
        yield node


def _compared_with_none(node: cst.BaseExpression) -> cst.Comparison | None:
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return None
    other = node.comparisons[0].comparator
    return node if isinstance(other, cst.Name) and other.value == "None" else None


def _differs(node: cst.Comparison) -> bool:
    return isinstance(node.comparisons[0].operator, cst.IsNot)


def without(source: Source, chain: list[cst.BaseExpression], index: int) -> Change:
    """Return the change that takes one operand out of a chain of two or more."""
    here = source.extent(chain[index])
    if index:
        return Change(source.file, source.extent(chain[index - 1])[1], here[1], "")
    return Change(source.file, here[0], source.extent(chain[1])[0], "")


def chains(
    node: cst.BaseExpression, operator: type[cst.BaseBooleanOp]
) -> Iterator[list[cst.BaseExpression]]:
    """Yield the chain that an expression is, and those that are its operands."""
    chain = operands(unwrapped(node), operator)
    if len(chain) > 1:
        yield chain
    for operand in chain:
        inner = unwrapped(operand)
        if isinstance(inner, cst.BooleanOperation) and isinstance(inner.operator, operator):
            if operand is not node and len(chain) > 1:
                yield from chains(inner, operator)
