"""Attributes that hold another value for a while: ``x.a = None``, a pass, ``x.a = saved``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from specmap.scan.guards import Store
from specmap.scan.storeorder import is_restored
from specmap.scan.values import Const, Facts, Instance

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver


def after_store(resolver: Resolver, store: Store, facts: Facts) -> Facts:
    """Return what a walk knows after a store, which may begin such a while or end it."""
    function, name = store.scope.frame.function, store.target.attr
    if store.item or function is None or name not in function.facts.twice:
        return facts
    receiver = resolver.evaluate(store.target.value, store.scope)
    keys = [(arm.value, name) for arm in receiver if isinstance(arm.value, Instance)]
    if is_restored(store):
        # What a context manager restores, it restores when its block ends.
        over = [] if function.is_context_manager else [key for key in keys if key in facts]
        return {key: value for key, value in facts.items() if key not in over} if over else facts
    held = resolver.pick(resolver.evaluate(store.value, store.scope), store.index)
    if len(held) != 1 or not isinstance(held[0].value, Const) or not _ends(resolver, store):
        return facts
    resolver.windows.add(name)
    return {**facts, **dict.fromkeys(keys, held[0].value)}


def left(facts: Facts, before: Facts) -> Facts:
    """Return what a walk knows after a block, without what held only in it."""
    if all(isinstance(key, str) or key in before for key in facts):
        return facts
    return {key: value for key, value in facts.items() if isinstance(key, str) or key in before}


def _ends(resolver: Resolver, store: Store) -> bool:
    later = resolver.attributes.execution(store.scope.frame).stores
    return any(
        other.target.lineno > store.target.lineno
        and ast.dump(other.target) == ast.dump(store.target)
        and is_restored(other)
        for other in later
    )
