"""What a function of plain tests and returns can return, and the same of its local names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

NOTHING = ast.Constant(None)
"""What a function returns at its end."""


def returned(
    body: Sequence[ast.stmt], truth: Callable[[ast.expr], bool | None]
) -> list[ast.expr] | None:
    """Return the values of the ``return`` statements that can be reached.

    ``truth`` says of a test whether it holds; where that is not known both ways are gone.
    ``None`` where a statement is anything but an assignment, a test, a ``return``, a ``raise`` or
    a text.
    """
    found: list[ast.expr] = []
    ends = _walked(body, truth, found)
    if ends is None:
        return None
    return [*found, NOTHING] if ends else found


def _walked(
    body: Sequence[ast.stmt], truth: Callable[[ast.expr], bool | None], found: list[ast.expr]
) -> bool | None:
    """Collect what a body returns; tell whether its end is reached, ``None`` if not known."""
    for statement in body:
        if isinstance(statement, ast.Return):
            found.append(statement.value or NOTHING)
            return False
        if isinstance(statement, ast.Raise):
            return False
        if isinstance(statement, ast.If):
            test = truth(statement.test)
            arms = [statement.body] * (test is not False) + [statement.orelse] * (test is not True)
            ends = [_walked(arm, truth, found) for arm in arms]
            if None in ends:
                return None
            if not any(ends):
                return False
        elif not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Pass | ast.Assert):
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                return None
    return True
