"""Graph flags that are lost: a call returns one, and its caller never reads nor returns it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specmap.codemap.graph import Flag, FlagStatus
from specmap.scan.bodies import Assigned, FunctionNode
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.resolver import Resolver
from specmap.scan.values import FunctionRef, Instance, Scope
from specmap.scan.walked import Activation


class Drops:
    """Tells whether an assignment of a call's result loses a flag; ``results`` names those."""

    def __init__(self, resolver: Resolver, results: frozenset[str]) -> None:
        self._resolver = resolver
        self._results = results

    def by(
        self, target: ast.expr, statement: Assigned, scope: Scope, activation: Activation
    ) -> Flag | None:
        """Return the flag that one target of an assignment drops, without phase and guards."""
        if isinstance(target, ast.Name):
            return self._record_dropped(statement, target.id, (), scope, activation)
        if isinstance(target, ast.Tuple):
            return self._position_dropped(
                statement, target, scope, activation
            ) or self._part_dropped(statement, target, scope, activation)
        return None

    def _part_dropped(
        self, statement: Assigned, target: ast.Tuple, scope: Scope, activation: Activation
    ) -> Flag | None:
        """``record, logits = run_pass(...)`` where the record holds a flag."""
        names = [item.id if isinstance(item, ast.Name) else "" for item in target.elts]
        if self._results.intersection(names):
            return None
        parts = (
            self._record_dropped(statement, name, (index,), scope, activation)
            for index, name in enumerate(names)
            if name.strip("_")
        )
        return next(filter(None, parts), None)

    def _record_dropped(
        self,
        statement: Assigned,
        name: str,
        index: tuple[int, ...],
        scope: Scope,
        activation: Activation,
    ) -> Flag | None:
        field = self._flag_field(statement.value, index, scope)
        if field is None:
            return None
        following = _following(activation.function.node, statement.node)
        first = _first_partial_read(following, name, field)
        if first is None:
            return None
        return self._drop_record(f"{name}.{field}", field, first, statement.value, activation)

    def _position_dropped(
        self, statement: Assigned, target: ast.Tuple, scope: Scope, activation: Activation
    ) -> Flag | None:
        """``batch, _ = prepare(...)`` where the callee returns a flag at that position."""
        assert isinstance(statement.value, ast.Call)
        for arm in self._resolver.evaluate(statement.value.func, scope):
            if not isinstance(arm.value, FunctionRef):
                continue
            for index, item in enumerate(target.elts):
                if not (isinstance(item, ast.Name) and item.id.startswith("_")):
                    continue
                name = self._returned_name(arm.value.function, index)
                if name is not None:
                    return self._drop_record(
                        name, name, statement.node, statement.value, activation
                    )
        return None

    def _returned_name(self, function: FunctionInfo, index: int) -> str | None:
        for value in function.facts.returned:
            if isinstance(value, ast.Tuple):
                if index < len(value.elts):
                    name = last_name(value.elts[index])
                    if name in self._results:
                        return name
        return None

    def _drop_record(
        self, text: str, field: str, at: ast.stmt, call: ast.expr, activation: Activation
    ) -> Flag:
        module = activation.function.module
        result = next(reports(activation.function, self._results), None)
        source = None
        if result is not None and isinstance(result.value, ast.Name):
            source = _assigned_line(activation.function, result.value.id)
        return Flag(
            name=field,
            span=module.span(at),
            holder=activation.function.id,
            status=FlagStatus.DROPPED,
            phase="",
            decides=False,
            text=text,
            source_line=call.lineno,
            result_line=result.lineno if result is not None else None,
            result_source_line=source,
        )

    def _flag_field(self, node: ast.expr, index: tuple[int, ...], scope: Scope) -> str | None:
        for arm in self._resolver.pick(self._resolver.evaluate(node, scope), index):
            value = arm.value
            if isinstance(value, Instance):
                for cls in self._resolver.types.mro(value.cls):
                    for name in cls.fields:
                        if name in self._results:
                            return name
        return None


def reports(function: FunctionInfo, results: frozenset[str]) -> Iterator[ast.keyword]:
    """Yield the keywords with which a function reports its flag in the returned record."""
    for call in function.facts.calls:
        for keyword in call.keywords:
            if keyword.arg in results and not isinstance(keyword.value, ast.Constant):
                yield keyword


def _assigned_line(function: FunctionInfo, name: str) -> int | None:
    for node in nodes_in(function.node):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return node.lineno
    return None


def _following(function: FunctionNode, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that can run after one: none after a block that ends in a return."""
    parents: dict[int, tuple[ast.AST, list[ast.stmt]]] = {}
    for node in nodes_in(function):
        if isinstance(node, ast.expr):
            continue
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                parents.update({id(s): (node, block) for s in block})
    found: list[ast.stmt] = []
    current: ast.AST = statement
    while id(current) in parents:
        parent, block = parents[id(current)]
        assert isinstance(current, ast.stmt)
        found += block[block.index(current) + 1 :]
        if isinstance(block[-1], ast.Return | ast.Raise):
            break
        if isinstance(parent, ast.For | ast.While):
            found += block
        current = parent
    return found


def _first_partial_read(statements: list[ast.stmt], name: str, field: str) -> ast.stmt | None:
    """The first statement that takes the record apart; ``None`` when its flag is read or
    the record goes on whole."""
    nodes = [node for statement in statements for node in nodes_in(statement)]
    attributes: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == name:
                if node.attr == field:
                    return None
                attributes.add(id(node.value))
    for node in nodes:
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            if id(node) not in attributes:
                return None
    simple = ast.Assign | ast.AnnAssign | ast.Expr | ast.Return | ast.AugAssign
    readers = [
        node
        for node in nodes
        if isinstance(node, simple) and any(id(n) in attributes for n in nodes_in(node))
    ]
    return min(readers, key=lambda reader: reader.lineno, default=None)
