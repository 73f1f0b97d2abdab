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
