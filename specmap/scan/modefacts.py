"""What a walk knows of a batch's forward mode: one member, several under tests, or nothing."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from specmap.codemap.condition import FALSE, TRUE, AtomKind, Condition, negate
from specmap.scan.module import Module
from specmap.scan.values import (
    Arms,
    EnumMember,
    External,
    Held,
    Opaque,
    Scope,
    Value,
    only,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

_NOBODY = "a forward mode that nobody knows"


def new_mode(resolver: Resolver, node: ast.expr, scope: Scope) -> Value | None:
    """Return what an expression makes of a mode; ``None`` leaves the mode as it is.

    A rank that has nothing to do is not what a walk is about. Of several modes that no test
    of a worker tells apart the first stands for all.
    """
    arms = tuple(a for a in resolver.evaluate(node, scope) if a.condition != FALSE)
    members = tuple(arm for arm in arms if isinstance(arm.value, EnumMember))
    if members:
        busy = unite(tuple(arm for arm in members if not is_idle(resolver, arm.value)))
        told = len(busy) > 1 and all(arm.condition != TRUE for arm in busy)
        chosen = in_worker(resolver, scope.frame.module) or Held(busy) in scope.facts.values()
        return Held(busy) if told and chosen else members[0].value
    found = next((a.value for a in arms if getattr(a.value, "reason", "") == _NOBODY), None)
    if found is None and isinstance(node, ast.Call) and arms:
        if all(isinstance(arm.value, External | Opaque) for arm in arms):
            module = scope.frame.module
            text, span = module.text(node), module.span(node)
            return Opaque(text, AtomKind.UNKNOWN, span, reason=_NOBODY)
    return found


def either_mode(first: Value, second: Value, when: Condition) -> Value:
    """Return the mode that is the first under a condition, else the second."""
    arms = unite(under(modes_of(first), when), under(modes_of(second), negate(when)))
    return Held(arms) if len(arms) > 1 else arms[0].value


def modes_of(value: Value) -> Arms:
    """Return the modes that a walk knows of, each with its test."""
    return value.arms if isinstance(value, Held) else only(value)


def in_worker(resolver: Resolver, module: Module) -> bool:
    """Whether code is a worker's: what a batch does to itself below, to be padded, is one pass."""
    return module.file.startswith(f"{resolver.vocabulary.speculative}/")


def is_idle(resolver: Resolver, value: Value | None) -> bool:
    """Whether a mode leaves a rank nothing to do."""
    return isinstance(value, EnumMember) and value.name in resolver.vocabulary.modes["idle"]
