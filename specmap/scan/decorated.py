"""What stands in place of a method that decides: what decorators and stores make of it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from specmap.codemap.condition import AtomKind
from specmap.scan.module import FunctionInfo
from specmap.scan.replaced import Replaced
from specmap.scan.values import (
    Arms,
    External,
    Frame,
    FunctionRef,
    Instance,
    Opaque,
    Scope,
    only,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

# Decorators of these leave a function's answer as it is.
_LEAVE = ("abc.", "builtins.", "functools.", "torch.", "typing.", "typing_extensions.")


class Decorated:
    """The methods of runners that decide, as an object has them."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._replaced = Replaced(resolver)

    def bound(self, value: Instance, method: FunctionInfo) -> Arms:
        """Return what ``value.method`` is."""
        name = method.name
        if name not in self._resolver.vocabulary.decisions:
            return only(FunctionRef(method, value))
        for found in self._resolver.attributes.stores_over(value, name):
            reason = f"line {found.store.target.lineno} of {found.function.module.file} stores it"
            text = f"{value.cls.name}.{name}"
            span = found.function.module.span(found.store.target)
            return only(Opaque(text, AtomKind.UNKNOWN, span, reason=reason))
        if reason := self._replaced.by_name(value.cls, method):
            text = f"{value.cls.name}.{name}"
            return only(Opaque(text, AtomKind.UNKNOWN, method.span, reason=reason))
        arms = only(FunctionRef(method))
        for node in reversed(getattr(method.node, "decorator_list", ())):
            arms = self._applied(node, method, arms)
        groups = []
        for arm in arms:
            function = arm.value
            if isinstance(function, FunctionRef) and function.self_value is None:
                function = replace(function, self_value=value)
            groups.append(under(only(function), arm.condition))
        return unite(*groups)

    def _applied(self, node: ast.expr, method: FunctionInfo, inner: Arms) -> Arms:
        """Return what a decorator makes of a function."""
        groups = []
        for arm in self._resolver.evaluate(node, Scope(Frame(None, method.module))):
            made = self._made(arm.value, node, method, inner)
            groups.append(under(made, arm.condition))
        return unite(*groups)

    def _made(self, decorator: object, node: ast.expr, method: FunctionInfo, inner: Arms) -> Arms:
        if isinstance(decorator, External) and decorator.name.startswith(_LEAVE):
            return inner
        if isinstance(decorator, FunctionRef) and decorator.function.parameters:
            function = decorator.function
            given = {function.parameters[0].arg: inner}
            frame = Frame(function, function.module, closure=decorator.closure, extra=given)
            return self._resolver.calls.returned(frame)
        text = method.module.text(node)
        reason = f"what @{text} makes of {method.qualname} is not known"
        return only(Opaque(f"@{text}", AtomKind.UNKNOWN, method.module.span(node), reason=reason))
