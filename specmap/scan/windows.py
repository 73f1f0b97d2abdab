"""What attributes hold from a store on, in a walk: a runner that is taken away for a while.

An attribute that holds a runner, and one that gets its old value back in the same function,
is followed from store to store. What a walk knows of it are *arms*: the values that a store
put there, each with its condition. Where no arm holds, the attribute has what the stores of
its class give it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from specmap.codemap.condition import (
    FALSE,
    TRUE,
    AtomKind,
    Condition,
    any_of,
    leaf,
    negate,
    simplify,
)
from specmap.scan.guards import Store
from specmap.scan.module import ClassInfo
from specmap.scan.storeorder import is_passing, is_restored, saved_in
from specmap.scan.values import (
    NONE,
    Arms,
    Const,
    Facts,
    Held,
    Instance,
    Value,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

_Key = tuple[Instance, str]
# What a block changes: what an attribute holds then; None = what its class gives it.
Changes = Mapping[_Key, Held | None]


def after_store(resolver: Resolver, store: Store, facts: Facts) -> Facts:
    """Return what a walk knows after a store."""
    name = store.target.attr
    function = store.scope.frame.function
    if store.item or function is None or function.name in resolver.vocabulary.swaps:
        return facts
    receiver = resolver.evaluate(store.target.value, store.scope)
    objects = [arm for arm in receiver if isinstance(arm.value, Instance)]
    for arm in objects:
        assert isinstance(arm.value, Instance)
        taken = _taken(resolver, store, arm.value)
        if taken is None:
            continue
        resolver.windows.add(name)
        which = arm.condition
        if which == TRUE and len(objects) > 1:
            module = store.scope.frame.module
            text = f"{ast.unparse(store.target.value)} is this {arm.value.cls.name}"
            which = leaf(text, AtomKind.UNKNOWN, module.span(store.target))
        facts = changed(facts, {(arm.value, name): Held(taken) if taken else None}, which)
    return facts


def _taken(resolver: Resolver, store: Store, instance: Instance) -> Arms | None:
    """Return what a store puts in place of what the class gives; None = not to be followed."""
    if store.target.attr not in resolver.runner_names:
        return _for_a_while(resolver, store)
    saved = saved_in(store)
    if saved is not None:
        return _arms(saved.facts.get((instance, store.target.attr)))
    usual = resolver.members.named(instance, store.target.attr)
    known = {arm.value for arm in usual if arm.value != NONE}
    held = {value.cls for value in known if isinstance(value, Instance)}
    new = resolver.pick(resolver.evaluate(store.value, store.scope), store.index)
    if set(new) == set(usual):
        return ()
    return tuple(arm for arm in new if arm.value not in known and _is_other(arm.value, held))


def _is_other(value: Value, held: set[ClassInfo]) -> bool:
    """Whether a value is no runner of a kind held so far, or one whose making is known."""
    return not isinstance(value, Instance) or value.cls not in held or value.origin is not None


def _for_a_while(resolver: Resolver, store: Store) -> Arms | None:
    """Return the constant that an attribute without a runner holds until it is restored."""
    function, name = store.scope.frame.function, store.target.attr
    if function is None or name not in function.facts.twice:
        return None
    if is_restored(store):
        return ()
    new = resolver.pick(resolver.evaluate(store.value, store.scope), store.index)
    constant = len(new) == 1 and isinstance(new[0].value, Const)
    ends = is_passing(store, resolver.attributes.execution(store.scope.frame).stores)
    return new if constant and ends else None


def is_known(facts: Facts) -> bool:
    """Return whether a store of the walk is among what is known."""
    return any(isinstance(key, tuple) for key in facts)


def held(value: Instance, name: str, facts: Facts, usual: Arms) -> Arms:
    """Return what an attribute holds by the stores of a walk, else as usual."""
    found = facts.get((value, name))
    if not isinstance(found, Held):
        return usual
    rest = negate(any_of(*(arm.condition for arm in found.arms)))
    return unite(found.arms, under(usual, rest))


def changed(facts: Facts, changes: Changes, when: Condition) -> Facts:
    """Return what is known after a change that happens under a condition."""
    found = dict(facts)
    for key, now in changes.items():
        before = facts.get(key)
        arms = unite(under(_arms(now), when), under(_arms(before), negate(when)))
        arms = tuple(a for a in arms if when is TRUE or simplify(a.condition) != FALSE)
        found.pop(key, None)
        if arms:
            found[key] = Held(arms)
    return found if found != facts else facts


def ended(facts: Facts, end: Changes, when: Condition, before: Facts, inside: Facts) -> Facts:
    """Return what is known after a block that gives back what it took, or changes it anew."""
    back = {key for key, now in end.items() if _held(before, key) == now}
    back = {key for key in back if _held(facts, key) == _held(inside, key)}
    facts = changed(facts, {key: _held(before, key) for key in back}, TRUE)
    return changed(facts, {key: now for key, now in end.items() if key not in back}, when)


def maybe(before: Facts, after: Facts, when: Condition) -> Facts:
    """Return what is known after code that only ran under a condition."""
    changes = difference(before, after) if when is not TRUE else None
    return changed(either(after, [(TRUE, before)]), changes, when) if changes else after


def difference(before: Facts, after: Facts) -> Changes:
    """Return what attributes hold after, where that is not what they held before."""
    if before is after:
        return {}
    keys = dict.fromkeys(k for facts in (before, after) for k in facts if isinstance(k, tuple))
    return {key: _held(after, key) for key in keys if before.get(key) != after.get(key)}


def unchanged(before: Facts, changes: Changes) -> Changes:
    """Return what takes some changes back."""
    return {key: _held(before, key) for key in changes}


def either(facts: Facts, ways: Sequence[tuple[Condition, Facts]]) -> Facts:
    """Return what is known where one of several ways was taken, each with its condition."""
    keys = dict.fromkeys(k for _, way in ways for k in way if isinstance(k, tuple))
    found = dict(facts.items())
    for key in facts:
        if isinstance(key, tuple):
            del found[key]
    if not keys and len(found) == len(facts):
        return facts
    for key in keys:
        same = len({way.get(key) for _, way in ways}) == 1
        groups = [under(_arms(way.get(key)), TRUE if same else when) for when, way in ways]
        if arms := unite(*groups):
            found[key] = Held(arms)
    return found


def _held(facts: Facts, key: _Key) -> Held | None:
    found = facts.get(key)
    return found if isinstance(found, Held) else None


def _arms(value: object) -> Arms:
    return value.arms if isinstance(value, Held) else ()
