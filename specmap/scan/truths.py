"""When a test, a value or a whole path is true."""

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
    atoms_of,
    leaf,
    negate,
)
from specmap.scan.absence import is_there, settle_absence
from specmap.scan.guards import Exit, Path, Test, Unseen
from specmap.scan.memo import NEVER
from specmap.scan.values import (
    Arms,
    Const,
    External,
    Opaque,
    Scope,
    Sequence,
    Table,
    Truth,
    Value,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver


class Truths:
    """Turns tests into conditions."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def truth(self, node: ast.expr, scope: Scope) -> Condition:
        """Return the condition under which a test is true."""
        if scope.truths is not None and node in scope.truths:
            return scope.truths[node]
        memo = self._resolver.memo
        outer, memo.lowest = memo.lowest, NEVER
        found = self._truth(node, scope)
        if memo.lowest == NEVER:
            if scope.truths is None:
                scope.truths = {}
            scope.truths[node] = found
        memo.lowest = min(outer, memo.lowest)
        return found

    def _truth(self, node: ast.expr, scope: Scope) -> Condition:
        if isinstance(node, ast.BoolOp):
            parts: list[Condition] = []
            stop = FALSE if isinstance(node.op, ast.And) else TRUE
            for value in node.values:
                part = self.truth(value, scope)
                parts.append(part)
                if part == stop:
                    break
            return all_of(*parts) if isinstance(node.op, ast.And) else any_of(*parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return negate(self.truth(node.operand, scope))
        found = self.arms_truth(self._resolver.evaluate(node, scope))
        return settle_absence(found, negate(self._resolver.comparisons.leaf(node, scope)))

    def arms_truth(self, arms: Arms) -> Condition:
        """Return when a value with these arms is true.

        Of values under one condition nobody knows which it is: the asking test tells.
        """
        ways: dict[Condition, list[Condition]] = {}
        for arm in arms:
            ways.setdefault(arm.condition, []).append(self.value_truth(arm.value))
        return any_of(*(all_of(when, _one_of(truths)) for when, truths in ways.items()))

    def value_truth(self, value: Value) -> Condition:
        """Return when one value is true."""
        if isinstance(value, Truth):
            return value.condition
        if isinstance(value, Const):
            return TRUE if value.value else FALSE
        if isinstance(value, Opaque):
            return leaf(value.text, value.kind, value.span)
        if isinstance(value, External):
            return self._external_truth(value)
        if isinstance(value, Sequence) and value.items is not None and not value.grows:
            return TRUE if value.items else FALSE
        return is_there() if isinstance(value, Sequence | Table) else TRUE

    def _external_truth(self, value: External) -> Condition:
        if value.source is None:
            return leaf(value.name, AtomKind.UNKNOWN)
        module, node = value.source
        text = module.text(node)
        return leaf(text, self._resolver.kind_of(text), module.span(node))

    def taken(self, path: Path) -> Condition:
        """Return when a path is taken; what no test tells (an exception) is a term too."""
        return all_of(self.condition(path), *map(self._unseen, path))

    def _unseen(self, item: Test | Exit | Unseen) -> Condition:
        if not isinstance(item, Unseen):
            return TRUE
        module, node, text = item.scope.frame.module, item.node, item.text
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = Unseen(node.operand, item.scope, module.text(node.operand))
            return negate(self._unseen(inner))
        return leaf(text, self._resolver.kind_of(text), module.span(node))

    def condition(self, path: Path) -> Condition:
        """Return the conjunction of the tests on a path."""
        parts: list[Condition] = []
        for item in path:
            if isinstance(item, Test):
                truth = self.truth(item.node, item.scope)
                parts.append(truth if item.branch else negate(truth))
            elif isinstance(item, Exit):
                parts.append(negate(self.condition(item.path)))
        return all_of(*parts)


def _one_of(truths: list[Condition]) -> Condition:
    some = any_of(*truths)
    return some if len(truths) == 1 else any_of(all_of(*truths), all_of(some, is_there()))


def is_test(value: Value) -> bool:
    """Whether a value only says yes or no."""
    if isinstance(value, External):
        return value.name == "builtins.bool()"
    return isinstance(value, Truth | Const | Opaque)


def strongest(kinds: set[AtomKind]) -> AtomKind:
    """Return the kind of a value made of several: any batch fact makes it one."""
    for kind in (AtomKind.BATCH, AtomKind.LAUNCH, AtomKind.STATE):
        if kind in kinds:
            return kind
    return AtomKind.UNKNOWN


def kinds_in(condition: Condition) -> set[AtomKind]:
    """Return the kinds of all atoms of a condition."""
    return {atom.kind for atom in atoms_of(condition)}
