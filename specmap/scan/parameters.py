"""What a parameter can hold, from the calls that run its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from specmap.scan.guards import Path
from specmap.scan.module import FunctionInfo, passes_self
from specmap.scan.values import (
    NONE,
    Arms,
    Const,
    Frame,
    FunctionRef,
    Instance,
    Opaque,
    Scope,
    Table,
    is_known,
    only,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver


# A call with its scope, and the path that leads to it.
CallSite = tuple[ast.Call, Scope, Path]


class Parameters:
    """Parameters, by frame; and the calls that run a method on an object."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._sites: dict[tuple[Instance, FunctionInfo], list[CallSite]] = {}
        self._parameters: dict[tuple[Frame, str], Arms] = {}

    def value(self, frame: Frame, name: str) -> Arms:
        """Return what a parameter can be in a frame."""
        known = self._parameters.get((frame, name))
        if known:
            return known
        return self._resolver.memo.get(
            self._parameters, (frame, name), lambda: self._parameter(frame, name), ()
        ) or self._declared(frame, name)

    def _parameter(self, frame: Frame, name: str) -> Arms:
        function = frame.function
        assert function is not None
        if frame.call is not None and frame.caller is not None:
            passed = self.passed(function, frame.call, frame.caller, name, frame.self_value)
            if passed is not None:
                declared = self._declared(frame, name)
                told = is_known(passed) or passed == only(NONE) or not is_known(declared)
                return passed if told else declared
            return self._default(frame, name)
        found = self._from_sites(frame, name)
        if is_known(found):
            return found
        declared = self._declared(frame, name)
        if is_known(declared):
            return declared
        return found or self._fallback(frame, name)

    def _from_sites(self, frame: Frame, name: str) -> Arms:
        function, instance = frame.function, frame.self_value
        if function is None or not isinstance(instance, Instance):
            return ()
        groups = []
        for call, scope, path in self.sites(instance, function):
            passed = self.passed(function, call, scope, name, instance)
            groups.append((self._default(frame, name) if passed is None else passed, path))
        plain = {arm.value for arms, _ in groups for arm in arms}
        if len(plain) < 2 or not all(isinstance(value, Const) for value in plain):
            return unite(*(arms for arms, _ in groups))
        # Which constant it is depends on the call.
        return unite(*(under(arms, self._resolver.condition(path)) for arms, path in groups))

    def _default(self, frame: Frame, name: str) -> Arms:
        assert frame.function is not None
        default = frame.function.defaults.get(name)
        if default is None:
            return self._declared(frame, name) or self._fallback(frame, name)
        return self._resolver.evaluate(default, Scope(Frame(None, frame.module)))

    def _fallback(self, frame: Frame, name: str) -> Arms:
        return only(
            Opaque(name, self._resolver.kind_of(name), reason=f"parameter {name} is not annotated")
        )

    def _declared(self, frame: Frame, name: str) -> Arms:
        assert frame.function is not None
        for parameter in frame.function.parameters:
            if parameter.arg == name:
                scope = Scope(Frame(None, frame.module))
                return self._resolver.types.annotation(parameter.annotation, scope)
        return ()

    def passed(
        self, function: FunctionInfo, call: ast.Call, scope: Scope, name: str, this: object
    ) -> Arms | None:
        """Return the argument that a call passes for a parameter; ``None`` when it does not."""
        bound = this is not None and not function.is_static and not passes_self(call)
        node = argument(function, call, name, bound=bound)
        if node is not None:
            return self._resolver.evaluate(node, scope)
        for keyword in call.keywords:
            if keyword.arg is None:
                for arm in self._resolver.evaluate(keyword.value, scope):
                    if isinstance(arm.value, Table):
                        entries = dict(arm.value.entries)
                        if name in entries:
                            return entries[name]
        return None

    def sites(self, instance: Instance, function: FunctionInfo) -> list[CallSite]:
        """Return the calls that run this method on this object: its own, and its owners'."""
        return self._resolver.memo.get(
            self._sites,
            (instance, function),
            lambda: list(self._find_sites(instance, function)),
            [],
        )

    def _find_sites(self, instance: Instance, function: FunctionInfo) -> Iterator[CallSite]:
        if function.name == "__init__" and instance.origin is not None:
            if self._resolver.types.method(instance.cls, "__init__") is function:
                yield instance.origin.call, instance.origin.scope, ()
                return
        holder: Instance | None = instance
        while holder is not None:
            for cls in self._resolver.types.mro(holder.cls):
                callers = {caller for _, caller in cls.module.calls.get(function.name, ())}
                for method in filter(callers.__contains__, cls.methods.values()):
                    yield from self._calls_in(holder, method, instance, function)
            holder = holder.owner

    def _calls_in(
        self, holder: Instance, method: FunctionInfo, instance: Instance, function: FunctionInfo
    ) -> Iterator[CallSite]:
        calls = [
            call
            for call in self._resolver.calls_of(method, function.name)
            if isinstance(call.func, ast.Attribute)
        ]
        if (
            not calls
            or (method is function)
            or not self._resolver.attributes.is_live(holder, method)
        ):
            return
        run = self._resolver.attributes.execution(self._resolver.attributes.frame(holder, method))
        for call in calls:
            noted = run.scope_of(call)
            if noted is None:
                continue
            for arm in self._resolver.evaluate(call.func, noted[0]):
                target = arm.value
                if isinstance(target, FunctionRef) and target.function is function:
                    if target.self_value == instance or self._is_unbound(
                        call, target, instance, holder
                    ):
                        yield call, *noted
                        break

    def _is_unbound(
        self, call: ast.Call, target: FunctionRef, instance: Instance, holder: Instance
    ) -> bool:
        """``Base.method(self, ...)`` written inside a method of the same object."""
        return target.self_value is None and passes_self(call) and holder == instance


def argument(function: FunctionInfo, call: ast.Call, name: str, *, bound: bool) -> ast.expr | None:
    """Return the expression a call passes for a parameter by keyword or position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    args = function.node.args
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    names = positional[1 if bound else 0 :]
    if name in names:
        index = names.index(name)
        head = call.args[: index + 1]
        if len(head) > index and not any(isinstance(a, ast.Starred) for a in head):
            return call.args[index]
    return None
