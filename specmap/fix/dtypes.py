"""The dtype of a tensor, where everything that can be stored under its name has the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from specmap.fix.facts import Facts
from specmap.fix.scope import DEPTH, Scope, deeper, is_self, parameters

_FIXED = re.compile(r"torch\.\w+")
_Value = tuple[ast.expr, int]
"""What is stored: an expression, and the element of it that counts; -1 for the whole."""


def dtype_of(text: str, scope: Scope, facts: Facts) -> str:
    """Return the dtype of a local name or an attribute of ``self`` as written: ``torch.int32``.

    Empty where one of its values does not say. A slice has the dtype of what it is cut from, and
    a call the one of what the function returns.
    """
    found = _Kinds(facts).of(ast.parse(text, mode="eval").body, -1, scope)
    return found.pop() if len(found) == 1 else ""


class _Kinds:
    """Collects dtypes; a name that is made of itself adds nothing."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._seen: set[tuple[str, str]] = set()

    def of(self, node: ast.expr, index: int, scope: Scope) -> set[str]:
        """Return the dtypes that an expression can have; one is empty where that is not known."""
        if scope.depth > DEPTH:
            return {""}
        if isinstance(node, ast.Tuple) and 0 <= index < len(node.elts):
            return self.of(node.elts[index], -1, scope)
        if isinstance(node, ast.Subscript) and index < 0:
            return self.of(node.value, -1, deeper(scope))
        if isinstance(node, ast.Call):
            named = [ast.unparse(k.value) for k in node.keywords if k.arg == "dtype"]
            if named and index < 0:
                return {named[0] if _FIXED.fullmatch(named[0]) else ""}
            return self._returned(node, index, scope)
        own = isinstance(node, ast.Attribute) and is_self(node.value)
        if index >= 0 or not (own or isinstance(node, ast.Name)):
            return {""}
        name = ast.unparse(node)
        if (scope.symbol, name) in self._seen:
            return set()
        self._seen.add((scope.symbol, name))
        values = list(_stored(name, scope, self._facts)) or [(ast.Constant(None), -1)]
        return set().union(*(self.of(v, i, deeper(scope)) for v, i in values))

    def _returned(self, call: ast.Call, index: int, scope: Scope) -> set[str]:
        """The dtypes that a function of the tree can return; an argument keeps its own."""
        inside = self._facts.inside(call, scope)
        if inside is None or inside.function is None:
            return {""}
        function = inside.function
        names = parameters(function, inside.owner is not None)
        given = dict(zip(names, call.args, strict=False))
        given |= {k.arg: k.value for k in call.keywords if k.arg}
        found = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Return):
                value = node.value or ast.Constant(None)
                if isinstance(value, ast.Tuple) and 0 <= index < len(value.elts):
                    value = value.elts[index]
                name = value.id if isinstance(value, ast.Name) else ""
                kept = name in given and not list(_stores(function, name))
                where = (given[name], deeper(scope)) if kept else (value, inside)
                found |= self.of(where[0], -1, where[1])
        return found


def _stored(name: str, scope: Scope, facts: Facts) -> Iterator[_Value]:
    """Every value that a function stores under a local name, or a class under an attribute."""
    function = scope.function
    around: ast.AST | None = function
    if name.startswith("self."):
        around, attribute = scope.owner, name.removeprefix("self.")
        others = re.compile(rf"(?<!\bself)\.{attribute}(, [\w.]+)* *[-+|&]?=[^=]")
        if any(others.search(facts.tree.text(file)) for file in facts.tree.files):
            yield ast.Constant(None), -1
    elif function is not None and name in (a.arg for a in function.args.args):
        yield ast.Constant(None), -1
    yield from _stores(around, name) if around is not None else ()


def _stores(around: ast.AST, name: str) -> Iterator[_Value]:
    known = set()
    for node in ast.walk(around):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                several = target.elts if isinstance(target, ast.Tuple | ast.List) else []
                for index, one in enumerate(several or [target]):
                    if ast.unparse(one) == name:
                        known.add(id(one))
                        yield node.value, index if several else -1
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            known.add(id(node.target))
            yield node.value or ast.Constant(None), -1
    for node in ast.walk(around):
        stored = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
        if stored and id(node) not in known and ast.unparse(node) == name:
            yield ast.Constant(None), -1
