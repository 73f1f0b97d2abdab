"""What context managers change, in a walk, where a ``with`` enters and leaves them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from specmap.codemap.condition import TRUE, Condition, all_of, negate
from specmap.scan import windows
from specmap.scan.guards import Binding, Bound, Choice, Path
from specmap.scan.values import Arm, Facts, FunctionRef, Instance, Scope
from specmap.scan.walked import Activation

if TYPE_CHECKING:
    from specmap.scan.walk import Walk


class Manager(NamedTuple):
    """What a context manager changes where its block begins and ends, if it is the one."""

    begin: windows.Changes
    end: windows.Changes
    when: Condition


class Managers:
    """The context managers of one walk.

    A call of a generator that ``with`` runs in two halves does nothing yet: what it does is
    kept until it is entered, maybe under a name, or as one of two.
    """

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._called: dict[ast.Call, Manager] = {}

    def suspend(self, node: ast.Call, before: Facts, inside: Facts) -> None:
        """Take back what was changed since ``before``, and keep it."""
        self._called[node] = self._between(before, inside)

    def entered(
        self, node: ast.expr, scope: Scope, path: Path, activation: Activation
    ) -> Iterator[Manager]:
        """Yield the context managers that an expression can be, walking those of classes."""
        for part, held_in, when in self._ways(node, scope, TRUE):
            if isinstance(part, ast.Call) and part in self._called:
                yield self._called[part]._replace(when=when)
                continue
            for arm in self._walk.resolver.evaluate(part, held_in):
                if isinstance(arm.value, Instance):
                    bound = Arm(arm.value, all_of(when, arm.condition))
                    found = self._of_object(bound, part, held_in, path, activation)
                    if found is not None:
                        yield found

    def _ways(
        self, node: ast.expr, scope: Scope, when: Condition
    ) -> Iterator[tuple[ast.expr, Scope, Condition]]:
        """Yield the calls behind a name or a choice, each with its condition."""
        if isinstance(node, ast.IfExp):
            test = self._walk.resolver.truth(node.test, scope)
            yield from self._ways(node.body, scope, all_of(when, test))
            yield from self._ways(node.orelse, scope, all_of(when, negate(test)))
        elif isinstance(node, ast.Name) and node.id in scope.env:
            yield from self._bound(scope.env[node.id], when)
        else:
            yield node, scope, when

    def _bound(
        self, binding: Binding | None, when: Condition
    ) -> Iterator[tuple[ast.expr, Scope, Condition]]:
        if isinstance(binding, Bound) and not binding.index:
            yield from self._ways(binding.node, binding.scope, when)
        elif isinstance(binding, Choice):
            taken = self._walk.resolver.truths.taken(binding.path)
            yield from self._bound(binding.then, all_of(when, taken))
            yield from self._bound(binding.other, all_of(when, negate(taken)))

    def _of_object(
        self, arm: Arm, node: ast.expr, scope: Scope, path: Path, activation: Activation
    ) -> Manager | None:
        assert isinstance(arm.value, Instance)
        before, states = self._walk.facts, []
        for name in ("__enter__", "__exit__"):
            method = self._walk.resolver.types.method(arm.value.cls, name)
            if method is None or self._walk.kind == "capture":
                return None
            call = ast.copy_location(ast.Call(node, [], []), node)
            bound = Arm(FunctionRef(method, arm.value), arm.condition)
            self._walk.follow(bound, method, call, scope, path, activation)
            states.append(self._walk.facts)
        return self._between(before, states[0])._replace(when=arm.condition)

    def _between(self, before: Facts, inside: Facts) -> Manager:
        """Take back what was changed since ``before``; return it in two halves."""
        begin = windows.difference(before, inside)
        end = {**windows.unchanged(before, begin), **windows.difference(before, self._walk.facts)}
        self._walk.facts = windows.either(self._walk.facts, [(TRUE, before)])
        return Manager(begin, end, TRUE)
