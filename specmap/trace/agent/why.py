"""Rewriting a decision so that it keeps which conjunct was false.

``A and B`` becomes ``(B' if (v := A) else why(1, v))``: every part is evaluated as often and in
the same order as before, no truth is asked more often (that of a tensor is a synchronisation),
and nothing is called while all is true. The last part's truth is the caller's question, so it
is only compared with False and None by identity. Local names are looked through: what is
assigned to them keeps its own false conjunct in a hidden local name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from .guards import Guard, guard_of, negated
from .reasons import KEPT, NOTE, WHY, Reasons, site_of

_VALUE = "_specmap_value"
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Emit = Callable[[ast.expr, "Guard | None"], ast.expr]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Asked:
    """What to rewrite for one decision: its ``expressions``, or every return without any."""

    target: int
    expressions: tuple[tuple[int, ...], ...] = ()


def rewrite(function: Function, asked: list[Asked], reasons: Reasons) -> list[int]:
    """Rewrite a function's tree in place; return the targets of which nothing was found."""
    return _Rewrite(function, reasons).run(asked)


class _Rewrite:
    def __init__(self, function: Function, reasons: Reasons) -> None:
        self.function, self.reasons = function, reasons
        self.parents = {
            child: node for node in own_nodes(function) for child in ast.iter_child_nodes(node)
        }
        self.assigned = _assigned(function)
        self.sought: set[str] = set()

    def run(self, asked: list[Asked]) -> list[int]:
        """Return the targets of which nothing was found."""
        found = [(one.target, self._places(one)) for one in asked]
        places = {id(node): target for target, nodes in found for node in nodes}
        for _, nodes in found:
            for node in nodes:
                self._seek(node)
        for name in self.sought:
            for assignment in self.assigned[name]:
                places.setdefault(id(assignment.value), 0)
        _Replace(places, self._replacement).visit(self.function)
        return [target for target, nodes in found if not nodes]

    def _places(self, asked: Asked) -> list[ast.expr]:
        if asked.expressions:
            every = [_at(self.function, span) for span in asked.expressions]
            return [node for node in every if node is not None]
        returns = (node for node in own_nodes(self.function) if isinstance(node, ast.Return))
        return [node.value for node in returns if node.value is not None]

    def _seek(self, node: ast.expr | None) -> None:
        """Note the local names whose falseness an expression passes on."""
        if node is None:
            return
        for part in _parts(node):
            name = part.id if isinstance(part, ast.Name) else ""
            if isinstance(part, ast.Constant) and not part.value:
                guard = guard_of(node, self.parents)
                name = guard.name if guard else ""
            if name in self.assigned and name not in self.sought:
                self.sought.add(name)
                for assignment in self.assigned[name]:
                    self._seek(assignment.value)

    def _replacement(self, node: ast.expr, target: int) -> ast.expr:
        guard, parent = guard_of(node, self.parents), self.parents[node]
        if target:
            asked = isinstance(parent, (ast.If, ast.While))

            def asks(value: ast.expr, inner: Guard | None) -> ast.expr:
                call = self._asks(WHY, target, value, inner)
                return _item([call, ast.Constant(False)], 1) if asked else call

            return self._part(node, guard, asks, asked)
        assert isinstance(parent, (ast.Assign, ast.AnnAssign))
        return self._part(node, guard, lambda *one: self._keeps(_target(parent), *one), False)

    def _part(self, node: ast.expr, guard: Guard | None, emit: _Emit, asked: bool) -> ast.expr:
        """Return an expression that calls ``emit`` where it is false.

        ``asked``: a statement asks for its truth, so that its value is of no interest.
        """
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            *others, last = _flat(node)
            result = self._part(last, guard, emit, asked)
            for value in reversed(others):
                result = ast.IfExp(_held(value), result, emit(value, None))
            return result
        if isinstance(node, ast.IfExp):
            then = self._part(node.body, Guard(node.test, True), emit, asked)
            other = self._part(node.orelse, Guard(node.test, False), emit, asked)
            return ast.IfExp(node.test, then, other)
        if _is_bool(node):
            assert isinstance(node, ast.Call)
            return ast.Call(node.func, [self._part(node.args[0], guard, emit, False)], [])
        if isinstance(node, ast.Constant):
            return emit(node, guard) if node.value is False or node.value is None else node
        if asked:
            return ast.IfExp(_held(node), ast.Constant(True), emit(node, None))
        test: ast.expr = ast.Compare(_named(node), [ast.IsNot()], [ast.Constant(False)])
        if not isinstance(node, ast.Compare):
            not_none = ast.Compare(_value(), [ast.IsNot()], [ast.Constant(None)])
            test = ast.BoolOp(ast.And(), [test, not_none])
        return ast.IfExp(test, _value(), emit(node, None))

    def _asks(self, function: str, target: int, node: ast.expr, guard: Guard | None) -> ast.expr:
        """Return the call of ``function`` with the number of a new site and the value."""
        if isinstance(node, ast.Constant):
            value: ast.expr = node
            if guard is not None:
                text = negated(guard.test) if guard.holds else ast.unparse(guard.test)
                name = guard.name if guard.name in self.sought else ""
                site = site_of(guard.test, target, guard.test.lineno, text, name)
            else:
                site = site_of(node, target, node.lineno, f"return {ast.unparse(node)}")
        else:
            value = _value()
            name = node.id if isinstance(node, ast.Name) and node.id in self.sought else ""
            site = site_of(node, target, node.lineno, "", name)
        number = ast.Constant(self.reasons.add(site))
        return ast.Call(ast.Name(function, ast.Load()), [number, value], [])

    def _keeps(self, name: str, node: ast.expr, guard: Guard | None) -> ast.expr:
        kept = ast.Name(KEPT + name, ast.Store())
        return ast.Subscript(
            ast.NamedExpr(kept, self._asks(NOTE, 0, node, guard)), ast.Constant(1), ast.Load()
        )


class _Replace(ast.NodeTransformer):
    """Replaces the marked expressions; nested scopes are left alone."""

    def __init__(
        self, places: dict[int, int], replacement: Callable[[ast.expr, int], ast.expr]
    ) -> None:
        self.places, self.replacement = places, replacement
        self.top = True

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node, or what stands for it."""
        if isinstance(node, (*_NESTED, *_COMPREHENSIONS)) and not self.top:
            return node
        self.top = False
        self.generic_visit(node)
        if isinstance(node, ast.expr) and id(node) in self.places:
            new = self.replacement(node, self.places[id(node)])
            return ast.copy_location(new, node)
        return node


def own_nodes(function: ast.AST) -> list[ast.AST]:
    """Return a function's nodes in source order, without those of nested scopes."""
    found, waiting = [], [function]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if node is function or not isinstance(node, (*_NESTED, *_COMPREHENSIONS)):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


def _at(function: ast.AST, span: tuple[int, ...]) -> ast.expr | None:
    """Return the longest expression that starts and ends in these lines (and column)."""
    best: ast.expr | None = None
    for node in own_nodes(function):
        if not isinstance(node, ast.expr) or (node.lineno, node.end_lineno) != span[:2]:
            continue
        if isinstance(getattr(node, "ctx", None), ast.Store):
            continue
        if len(span) > 2 and node.col_offset != span[2]:
            continue
        if best is None or _width(node) > _width(best):
            best = node
    return best


def _width(node: ast.expr) -> int:
    return (node.end_col_offset or 0) - node.col_offset


def _assigned(function: ast.AST) -> dict[str, list[ast.Assign | ast.AnnAssign]]:
    """Return the plain assignments of local names that are bound in no other way."""
    plain: dict[str, list[ast.Assign | ast.AnnAssign]] = {}
    bound: dict[str, int] = {}
    for node in own_nodes(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and _target(node):
            if node.value is not None:
                plain.setdefault(_target(node), []).append(node)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound[node.id] = bound.get(node.id, 0) + 1
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            bound.update(dict.fromkeys(node.names, 1 << 20))
    return {name: every for name, every in plain.items() if bound.get(name) == len(every)}


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the conjuncts that ``_part`` would tell apart."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [*_flat(node)[:-1], *_parts(_flat(node)[-1])]
    if isinstance(node, ast.IfExp):
        return [*_parts(node.body), *_parts(node.orelse)]
    if _is_bool(node):
        assert isinstance(node, ast.Call)
        return _parts(node.args[0])
    return [node]


def _is_bool(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "bool"
        and len(node.args) == 1
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
    )


def _value() -> ast.Name:
    return ast.Name(_VALUE, ast.Load())


def _named(node: ast.expr) -> ast.expr:
    return ast.NamedExpr(ast.Name(_VALUE, ast.Store()), node)


def _held(node: ast.expr) -> ast.expr:
    """Return a test whose value, where it is false, is kept; no truth is asked twice."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return ast.BoolOp(node.op, [_held(value) for value in node.values])
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(node.op, [*node.values[:-1], _held(node.values[-1])])
    if isinstance(node, ast.IfExp):
        return ast.IfExp(node.test, _held(node.body), _held(node.orelse))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.BoolOp(ast.Or(), [node, _named(ast.Constant(False))])
    return _named(node)


def _flat(node: ast.expr) -> list[ast.expr]:
    """Return the conjuncts of nested ``and``."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _flat(value)]
    return [node]


def _item(values: list[ast.expr], number: int) -> ast.expr:
    return ast.Subscript(ast.Tuple(values, ast.Load()), ast.Constant(number), ast.Load())
