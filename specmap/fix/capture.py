"""Which modes a graph runner captures, where it keeps them under a name of its own.

The map knows the attribute by its name in SGLang. A fork that calls it otherwise still hands it
to the batch that it captures: ``ForwardBatch(forward_mode=self.recorded_mode)``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Returned = Callable[[ast.Call], Sequence[ast.expr] | None]


@dataclass(frozen=True)
class Store:
    """A store of the captured mode: the method, the statement, and where the value stands.

    ``index`` is the place of the mode among several targets, -1 for one target alone;
    ``method`` the method of the class that returns the value, if one does.
    """

    holder: str
    statement: ast.Assign
    attribute: str
    index: int = -1
    method: str = ""


def attributes(owner: ast.ClassDef, keywords: Sequence[str]) -> set[str]:
    """Return the attributes of a class that it gives a batch as its mode."""
    return {
        keyword.value.attr
        for node in ast.walk(owner)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg in keywords and isinstance(keyword.value, ast.Attribute)
        and _of_self(keyword.value)
    }  # fmt: skip


def stores(owner: ast.ClassDef, names: set[str]) -> Iterator[Store]:
    """Yield where a class stores one of its attributes."""
    functions = [f for f in owner.body if isinstance(f, ast.FunctionDef)]
    for function, node in ((f, n) for f in functions for n in ast.walk(f)):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        method = ""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            method = value.func.attr if _of_self(value.func) else ""
        several = target.elts if isinstance(target, ast.Tuple) else []
        for index, one in enumerate(several or [target]):
            if isinstance(one, ast.Attribute) and _of_self(one) and one.attr in names:
                place = index if several else -1
                yield Store(function.name, node, one.attr, place, method)


def modes(
    store: Store, enums: frozenset[str], returned: Callable[[Store], Sequence[ast.expr] | None]
) -> set[str] | None:
    """Return the modes that a store can leave; ``None`` where that is not known.

    ``returned`` says what the method of a store can return.
    """
    values: Sequence[ast.expr] | None = [store.statement.value]
    if store.method:
        values = returned(store)
    found = set()
    for value in values or ():
        one = value
        if store.index >= 0 and isinstance(value, ast.Tuple) and store.index < len(value.elts):
            one = value.elts[store.index]
        if not isinstance(one, ast.Attribute) or ast.unparse(one.value) not in enums:
            return None
        found.add(one.attr)
    return found or None


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"
