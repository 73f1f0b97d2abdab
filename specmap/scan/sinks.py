"""Where a pass ends: a graph's replay or the eager model forward."""

from __future__ import annotations

import ast

from specmap.codemap.condition import TRUE, AtomKind, Condition, all_of, any_of, leaf
from specmap.codemap.verdict import MAY_REPLAY, SinkKind
from specmap.scan.guards import Bound
from specmap.scan.module import ClassInfo
from specmap.scan.nodes import arguments_of
from specmap.scan.resolver import Resolver
from specmap.scan.values import (
    External,
    Frame,
    FunctionRef,
    Instance,
    Opaque,
    Partial,
    Scope,
    Value,
)

# Builtins that call nothing of what they are given.
_ONLY_ASK = frozenset(
    f"builtins.{name}"
    for name in ("bool", "callable", "hasattr", "id", "isinstance", "print", "repr")
)


class Sinks:
    """Recognises sinks by what is called, not by who calls."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._vocabulary = resolver.vocabulary

    def kind(self, node: ast.Call, scope: Scope, frames: list[Frame]) -> SinkKind | None:
        """Return the kind of sink a call is, or ``None``."""
        if self._is_replay(node, scope):
            if self._runs_in(frames[-1:], self._vocabulary.auxiliary):
                return None
            return SinkKind.PIECEWISE if self._in_pieces(frames) else SinkKind.GRAPH
        if self._is_model_forward(node, scope):
            return SinkKind.PIECEWISE if self._in_pieces(frames) else SinkKind.EAGER
        return None

    def doubt(self, node: ast.Call, scope: Scope, frame: Frame) -> Condition | None:
        """Return "this replays a graph" for a call of which nobody can tell whether it does.

        It is a replay on something that is nowhere made in the tree, a method of a runner
        that is looked up by a name which is not written there, or a call of code that nobody
        reads and that is handed the replay. ``None`` replays nothing.
        """
        function, scope = _written(node.func, scope)
        if isinstance(function, ast.Attribute) and function.attr in self._vocabulary.graph_calls:
            arms = self._resolver.evaluate(function.value, scope)
            if any(isinstance(arm.value, Instance) for arm in arms):
                return None
            unknown = [a.condition for a in arms if isinstance(a.value, External | Opaque)]
        else:
            held = _looked_up_on(function)
            arms = self._resolver.evaluate(held, scope) if held is not None else ()
            unknown = [arm.condition for arm in arms if self._is_runner(arm.value)]
            unknown += [TRUE] if self._is_handed(node, scope) else []
        if not unknown or self._runs_in([frame], self._vocabulary.auxiliary):
            return None
        module = scope.frame.module
        text = f"{module.text(function)} {MAY_REPLAY}"
        return all_of(any_of(*unknown), leaf(text, AtomKind.UNKNOWN, module.span(function)))

    def _is_handed(self, node: ast.Call, scope: Scope) -> bool:
        """Whether code that nobody reads gets a runner's replay, or calls it on a runner.

        ``wrap(runner.replay, batch)`` and ``methodcaller("replay", batch)(runner)``.
        """
        of_made, resolver = isinstance(node.func, ast.Call), self._resolver
        names = self._vocabulary.graph_calls | (resolver.runner_names if of_made else set())
        given = [one for one in arguments_of(node) if getattr(one, "attr", "") in names]
        if not given or any(function for _, function in resolver.calls.targets(node, scope)):
            return False
        if any(isinstance(arm.value, Partial) for arm in resolver.evaluate(node, scope)):
            return False
        called = [arm.value for arm in resolver.evaluate(node.func, scope)]
        if all(isinstance(v, External) and v.name in _ONLY_ASK for v in called):
            return False
        values = [arm.value for one in given for arm in resolver.evaluate(one, scope)]
        return any(isinstance(v, FunctionRef) or self._is_runner(v) for v in values)

    def _is_runner(self, value: Value) -> bool:
        """Whether a value is a model runner or a graph runner."""
        return isinstance(value, Instance) and (
            self._named(value.cls, self._vocabulary.model_runner)
            or any(self._resolver.types.method(value.cls, n) for n in self._vocabulary.decisions)
        )

    def on(self, node: ast.Call, scope: Scope) -> tuple[Instance, ...]:
        """Return the objects that a sink's call is made on: the innermost that are known.

        ``self.target.runner.graphs[key].replay()`` is made on the runner.
        """
        receiver = node.func
        while isinstance(receiver, ast.Attribute | ast.Subscript):
            receiver = receiver.value
            arms = self._resolver.evaluate(receiver, scope)
            found = tuple(arm.value for arm in arms if isinstance(arm.value, Instance))
            if found:
                return found
        return ()

    def _in_pieces(self, frames: list[Frame]) -> bool:
        return self._runs_in(frames, self._vocabulary.piecewise)

    def _runs_in(self, frames: list[Frame], names: frozenset[str]) -> bool:
        for frame in frames:
            this = frame.self_value
            if isinstance(this, Instance) and self._named(this.cls, names):
                return True
        return False

    def _named(self, cls: ClassInfo, names: frozenset[str]) -> bool:
        return any(base.name in names for base in self._resolver.types.mro(cls))

    def _is_replay(self, node: ast.Call, scope: Scope) -> bool:
        function = node.func
        if not isinstance(function, ast.Attribute):
            return False
        if function.attr not in self._vocabulary.graph_calls:
            return False
        receiver = function.value
        for arm in self._resolver.evaluate(receiver, scope):
            value = arm.value
            if isinstance(value, External):
                name = value.name.removesuffix("()").removesuffix("[]").removesuffix("()")
                if name in self._vocabulary.graph_types:
                    return True
            elif isinstance(value, Instance):
                if self._named(value.cls, self._vocabulary.graph_types):
                    return True
        return self._from_graph_table(receiver)

    def _from_graph_table(self, receiver: ast.expr) -> bool:
        """``self.graphs[key].replay()``: the table's name says what it holds."""
        if not isinstance(receiver, ast.Subscript):
            return False
        table = receiver.value
        return isinstance(table, ast.Attribute) and table.attr in self._vocabulary.graph_call_names

    def _is_model_forward(self, node: ast.Call, scope: Scope) -> bool:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr.startswith("forward"):
            if self._is_model(function.value, scope):
                return True
        return self._is_model(function, scope)

    def _is_model(self, node: ast.expr, scope: Scope) -> bool:
        if not isinstance(node, ast.Attribute):
            return False
        if node.attr != self._vocabulary.model_attribute:
            return False
        for arm in self._resolver.evaluate(node.value, scope):
            if isinstance(arm.value, Instance):
                if self._named(arm.value.cls, self._vocabulary.model_runner):
                    return True
        return False


def _written(function: ast.expr, scope: Scope) -> tuple[ast.expr, Scope]:
    """Return what is called, where a local name stands for it."""
    bound = scope.env.get(function.id) if isinstance(function, ast.Name) else None
    if isinstance(bound, Bound) and not bound.index:
        return bound.node, bound.scope
    return function, scope


def _looked_up_on(node: ast.expr) -> ast.expr | None:
    """Return ``x`` of ``getattr(x, name)`` where the name is not written there."""
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "getattr":
        return None
    written = len(node.args) < 2 or isinstance(node.args[1], ast.Constant)
    return None if written else node.args[0]
