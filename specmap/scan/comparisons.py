"""Comparisons: what equality, identity and membership say about known values."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from specmap.codemap.condition import (
    FALSE,
    TRUE,
    AtomKind,
    Condition,
    all_of,
    any_of,
    is_marked,
    leaf,
    negate,
)
from specmap.scan.absence import settle_absence
from specmap.scan.bodies import same_place
from specmap.scan.guards import Path, held
from specmap.scan.module import FunctionInfo
from specmap.scan.nodes import nodes_in
from specmap.scan.values import (
    NONE,
    Arms,
    Const,
    EnumMember,
    External,
    Instance,
    Opaque,
    Scope,
    Truth,
    Value,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver


class Comparisons:
    """Turns a comparison into a condition; what is not settled stays one atom."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def compare(self, node: ast.Compare, scope: Scope) -> Condition:
        """Return when a comparison holds."""
        if len(node.ops) != 1:
            return self.leaf(node, scope)
        operator, right = node.ops[0], node.comparators[0]
        if isinstance(operator, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            found = self._equality(node, node.left, right, scope)
        elif isinstance(operator, ast.In | ast.NotIn):
            found = self._membership(node, right, scope)
        else:
            found = None
        if found is None:
            return self.leaf(node, scope)
        return negate(found) if isinstance(operator, ast.IsNot | ast.NotEq | ast.NotIn) else found

    def leaf(self, node: ast.expr, scope: Scope) -> Condition:
        """Return a test as one atom."""
        module = scope.frame.module
        text = self._resolver.reduced_text(node, scope)
        same = self._resolver.vocabulary.same.get(text)
        if same is not None:
            found = leaf(same.removeprefix("not "), AtomKind.LAUNCH, module.span(node))
            return negate(found) if same.startswith("not ") else found
        return leaf(text, self._resolver.kind_of_node(node, scope), module.span(node))

    def _equality(
        self, node: ast.Compare, left: ast.expr, right: ast.expr, scope: Scope
    ) -> Condition | None:
        device = self._resolver.device_test(left, right)
        if device is not None:
            return TRUE if device else FALSE
        first = self._resolver.evaluate(left, scope)
        second = self._resolver.evaluate(right, scope)
        ways: dict[Condition, set[bool | None]] = {}
        itself = self.leaf(node, scope)
        same_ = negate(itself) if isinstance(node.ops[0], ast.IsNot | ast.NotEq) else itself
        for a in first:
            for b in second:
                when = all_of(a.condition, b.condition)
                ways.setdefault(when, set()).add(self._same(a.value, b.value))
        told = {when: same.pop() if len(same) == 1 else None for when, same in ways.items()}
        alone = [side for side in (first, second) if all(arm.value == NONE for arm in side)]
        lost = not alone and _may_lack(first) and _may_lack(second)
        if lost or all(same is None for same in told.values()):
            return None
        parts = [
            all_of(when, same_ if same is None else TRUE if same else FALSE)
            for when, same in told.items()
        ]
        # What equals None is absent; what equals anything else is there.
        return settle_absence(any_of(*parts), same_ if alone else negate(same_))

    def _same(self, a: Value, b: Value) -> bool | None:
        if isinstance(a, Const) and isinstance(b, Const):
            return a.value == b.value and type(a.value) is type(b.value)
        if isinstance(a, EnumMember) and isinstance(b, EnumMember):
            return a == b if a.cls is b.cls else None
        if NONE in (a, b):
            other = b if a == NONE else a
            if isinstance(other, Opaque):
                return False if other.plugin and other.kind is AtomKind.STATE else None
            if isinstance(other, Truth):
                return None
            if isinstance(other, External):
                return None
            return False
        return None

    def _membership(self, node: ast.Compare, right: ast.expr, scope: Scope) -> Condition | None:
        if not isinstance(right, ast.Tuple | ast.List | ast.Set):
            return None
        results = []
        for item in right.elts:
            device = self._resolver.device_test(node.left, item)
            if device is None:
                first = self._resolver.evaluate(node.left, scope)
                second = self._resolver.evaluate(item, scope)
                device = self._definite(first, second)
            results.append(device)
        if True in results:
            return TRUE
        return None if None in results else FALSE

    def _definite(self, first: Arms, second: Arms) -> bool | None:
        if len(first) == 1 and len(second) == 1:
            return self._same(first[0].value, second[0].value)
        return None

    def is_instance(self, node: ast.Call, scope: Scope) -> Condition:
        """Return when ``isinstance(value, classes)`` holds."""
        if len(node.args) != 2:
            return self.leaf(node, scope)
        values = self._resolver.evaluate(node.args[0], scope)
        classes = self._resolver.classes(node.args[1], scope)
        known = all(isinstance(arm.value, Instance | Const) for arm in values)
        if not known or classes is None or any(self._is_declared(a.value) for a in values):
            return self.leaf(node, scope)
        parts = []
        for arm in values:
            line = (
                self._resolver.types.mro(arm.value.cls) if isinstance(arm.value, Instance) else []
            )
            parts.append(arm.condition if set(line) & classes else FALSE)
        return any_of(*parts)

    def ruled_out(self, value: Value, node: ast.expr, path: Path) -> bool:
        """Whether an ``isinstance`` test on the path keeps ``node`` from being this object."""
        if not isinstance(value, Instance):
            return False
        for test in held(path):
            asked = test.node
            if not isinstance(asked, ast.Call) or getattr(asked.func, "id", "") != "isinstance":
                continue
            if len(asked.args) != 2 or not same_place(asked.args[0], node):
                continue
            classes = self._resolver.classes(asked.args[1], test.scope)
            if classes is None:
                continue
            is_one = bool(classes & set(self._resolver.types.mro(value.cls)))
            if is_one is not test.branch and (is_one or not self._is_declared(value)):
                return not _stored_between(test.scope.frame.function, asked, node)
        return False

    def _is_declared(self, value: Value) -> bool:
        return isinstance(value, Instance) and value.rule == "annotation"


def _may_lack(arms: Arms) -> bool:
    return any(is_marked(arm.condition) for arm in arms)


def _stored_between(function: FunctionInfo | None, first: ast.expr, last: ast.expr) -> bool:
    """Whether a function stores to what ``last`` reads after it has asked ``first``."""
    return function is not None and any(
        isinstance(node, ast.Name | ast.Attribute)
        and not isinstance(node.ctx, ast.Load)
        and first.lineno <= node.lineno <= last.lineno
        and same_place(node, last)
        for node in nodes_in(function.node)
    )
