"""Calls of Python's own functions whose answer the source tells."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from specmap.codemap.condition import FALSE, AtomKind, any_of
from specmap.scan.truths import is_test, strongest
from specmap.scan.values import (
    NONE,
    Arm,
    Arms,
    ClassRef,
    Const,
    External,
    Frame,
    Instance,
    Opaque,
    Scope,
    Sequence,
    Super,
    Truth,
    is_known,
    only,
    optional,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver


_BOOLEANS = (Const(True), Const(False))


def _bool(resolver: Resolver, node: ast.Call, scope: Scope) -> Arms:
    return only(Truth(resolver.truth(node.args[0], scope)))


def _isinstance(resolver: Resolver, node: ast.Call, scope: Scope) -> Arms:
    return only(Truth(resolver.comparisons.is_instance(node, scope)))


def _getattr(resolver: Resolver, node: ast.Call, scope: Scope) -> Arms:
    name = node.args[1] if len(node.args) > 1 else None
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return ()
    attribute = ast.copy_location(ast.Attribute(node.args[0], name.value, ast.Load()), node)
    default = resolver.evaluate(node.args[2], scope) if len(node.args) > 2 else ()
    groups = []
    lack: set[bool] = set()
    for arm in resolver.evaluate(node.args[0], scope):
        member = resolver.member(arm.value, attribute, scope)
        if default and isinstance(arm.value, Instance):
            lacks = not is_known(member)
            member = default if lacks else member
            lack |= {lacks} if arm.value.rule == "annotation" else set()
        groups.append(under(member, arm.condition))
    found = unite(*groups)
    if len(lack) > 1:  # which of the declared classes it is decides, and nobody knows
        if all(arm.value == NONE for arm in default):
            return optional(found)
        if all(is_test(arm.value) for arm in found):
            return resolver.expressions.opaque(node, scope)
    asker = scope.frame.function
    flag = all(arm.value in _BOOLEANS for arm in default)
    if default and flag and asker and asker.name in resolver.vocabulary.decisions:
        return _told_here(resolver, node, name.value, found, default, scope) or default
    if not is_known(found) and is_known(default):
        return default
    return found if is_known(found) else ()


def _hasattr(resolver: Resolver, node: ast.Call, scope: Scope) -> Arms:
    name = node.args[1] if len(node.args) > 1 else None
    parts = []
    for arm in resolver.evaluate(node.args[0], scope):
        text = name.value if isinstance(name, ast.Constant) else None
        has = resolver.members.has(arm.value, text) if isinstance(text, str) else None
        if has is None:
            return only(External("builtins.hasattr()"))
        parts.append(arm.condition if has else FALSE)
    return only(Truth(any_of(*parts)))


def _told_here(
    resolver: Resolver, node: ast.Call, name: str, found: Arms, default: Arms, scope: Scope
) -> Arms:
    """Settle, or name by the call itself, what objects that nobody can tell have."""
    unknown = [arm for arm in found if isinstance(arm.value, Opaque) and not arm.value.plugin]
    if not unknown:
        return found
    told = tuple(arm for arm in found if arm not in unknown)
    values = {arm.value for arm in (*told, *default)}
    given = resolver.members.given(name)
    if len(values) == 1 and given is not None and given <= values:
        return default
    module = scope.frame.module
    text = module.text(node) if hasattr(node, "lineno") else ast.unparse(node)
    kind = resolver.kind_of(text)
    if kind is AtomKind.UNKNOWN:
        kind = strongest({arm.value.kind for arm in unknown if isinstance(arm.value, Opaque)})
    here = Opaque(text, kind, module.span(node))
    return unite(told, tuple(Arm(here, arm.condition) for arm in unknown))


def _type(resolver: Resolver, node: ast.Call, scope: Scope) -> Arms:
    found = [
        Arm(ClassRef(arm.value.cls), arm.condition)
        for arm in resolver.evaluate(node.args[0], scope)
        if isinstance(arm.value, Instance)
    ]
    return tuple(found)


def _super(resolver: Resolver, node: ast.Call, scope: Scope) -> Arms:
    frame: Frame | None = scope.frame
    while frame is not None and (frame.function is None or frame.function.owner is None):
        frame = frame.closure.frame if frame.closure else None
    if frame is None or frame.function is None or frame.function.owner is None:
        return ()
    owner = frame.function.owner
    this = frame.self_value or resolver.any_instance(owner)
    return only(Super(owner, this))


def _enumerate(resolver: Resolver, node: ast.Call, scope: Scope) -> Arms:
    element = resolver.pick(resolver.evaluate(node.args[0], scope), (None,))
    return only(Sequence(None, only(Sequence((only(External("builtins.int()")), element)))))


def _zip(resolver: Resolver, node: ast.Call, scope: Scope) -> Arms:
    parts = tuple(resolver.pick(resolver.evaluate(a, scope), (None,)) for a in node.args)
    return only(Sequence(None, only(Sequence(parts))))


def _next(resolver: Resolver, node: ast.Call, scope: Scope) -> Arms:
    return resolver.pick(resolver.evaluate(node.args[0], scope), (None,))


BUILTINS: dict[str, Callable[[Resolver, ast.Call, Scope], Arms]] = {
    "bool": _bool,
    "isinstance": _isinstance,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "type": _type,
    "super": _super,
    "enumerate": _enumerate,
    "zip": _zip,
    "next": _next,
}
