"""Tests that a fork makes of the batch size: ``batch_size <= 2``, ``batch_size % 2 == 0``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container

from specmap.codemap.source import canonical

Computed = int | str | tuple[object, ...]
"""A test of the batch size: a number, ``bs``, or an operator with what it is applied to.

It is the same on the page, where tuples are arrays.
"""

SIZE = "bs"
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_APPLIED: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def read(
    text: str, names: Container[str], number: Callable[[str], int | None]
) -> tuple[object, ...] | None:
    """Return a test of the batch size, or None for any other test.

    ``names`` stand for the batch size. ``number`` gives the value of what else is compared with
    it, None where that is not known.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    found: tuple[object, ...] | None = None
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        if word := _COMPARISONS.get(type(node.ops[0])):
            found = _applied(word, node.left, node.comparators[0], names, number)
    elif isinstance(node, ast.BinOp):
        rest = _expression(node, names, number)
        found = None if rest is None else ("!=", rest, 0)
    return found if found is not None and SIZE in _words(found) else None


def of_size(text: str, names: Container[str]) -> str:
    """Return a comparison with ``bs`` for what stands for the batch size on its left."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return text
    if isinstance(node, ast.Compare) and ast.unparse(node.left) in names:
        node.left = ast.Name(SIZE, ast.Load())
    return canonical(ast.unparse(node))


def holds(test: object, size: int) -> bool | None:
    """Return whether a test holds for a batch of a size; None where it would raise."""
    found = _value(test, size)
    return None if found is None else bool(found)


def repeats(test: object) -> bool:
    """Whether a test may go on changing however large the batch is."""
    return bool({"%", "//"} & set(_words(test)))


def numbers(test: object) -> list[int]:
    """Return the numbers that a test names."""
    return [word for word in _words(test) if isinstance(word, int)]


def _words(test: object) -> list[object]:
    return [w for part in test for w in _words(part)] if isinstance(test, tuple) else [test]


def _value(test: object, size: int) -> int | None:
    if not isinstance(test, tuple):
        return size if test == SIZE else test if isinstance(test, int) else None
    word, first, second = test
    left, right = _value(first, size), _value(second, size)
    if left is None or right is None or (word in ("//", "%") and not right):
        return None
    return _APPLIED[str(word)](left, right)


def _applied(
    word: str,
    left: ast.expr,
    right: ast.expr,
    names: Container[str],
    number: Callable[[str], int | None],
) -> tuple[object, ...] | None:
    first, second = (_expression(part, names, number) for part in (left, right))
    return None if first is None or second is None else (word, first, second)


def _expression(
    node: ast.expr, names: Container[str], number: Callable[[str], int | None]
) -> Computed | None:
    text = ast.unparse(node)
    if text in names:
        return SIZE
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.BinOp) and (word := _ARITHMETIC.get(type(node.op))):
        return _applied(word, node.left, node.right, names, number)
    return number(text)
