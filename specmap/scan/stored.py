"""How the values that several stores give one attribute come together."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from specmap.codemap.condition import (
    TRUE,
    AtomKind,
    Condition,
    all_of,
    any_of,
    is_marked,
    negate,
)
from specmap.scan.bodies import same_place
from specmap.scan.guards import Exit, Path, Store, Test, Unseen
from specmap.scan.module import FunctionInfo
from specmap.scan.nodes import nodes_in
from specmap.scan.storeorder import is_renewal
from specmap.scan.values import (
    NONE,
    Arm,
    Arms,
    Const,
    EnumMember,
    Facts,
    Held,
    Instance,
    Opaque,
    Scope,
    Sequence,
    Table,
    Truth,
    only,
    optional,
    under,
    unite,
)

CONSTRUCTORS = ("__init__", "__new__")
_PLAIN = (Const, EnumMember, Truth, Opaque)


@dataclass(frozen=True, slots=True)
class FoundStore:
    """A store that applies to one object, with the method frame it was seen in."""

    store: Store
    function: FunctionInfo
    outside: bool


# What each store gives the attribute; without a store: what it holds before.
Groups = list[tuple[FoundStore | None, Arms]]


def as_needed(store: Store, instance: Instance, gone: bool) -> Path:
    """Return the path of a store as it is where the store has something to do.

    ``if self.x is None: self.x = ...``: sooner or later it is None; one that takes ``x``
    away or makes another of it (``gone``) finds it there.
    """
    held: Facts = {(instance, store.target.attr): Held(only(Const(True) if gone else NONE))}
    return tuple(_as_held(item, store.target, held) for item in store.path)


def _as_held(
    item: Test | Exit | Unseen, target: ast.Attribute, held: Facts
) -> Test | Exit | Unseen:
    if isinstance(item, Exit):
        return Exit(tuple(_as_held(inner, target, held) for inner in item.path))
    if not isinstance(item, Test) or not _asks(item, target):
        return item
    scope = item.scope
    return replace(item, scope=Scope(scope.frame, scope.env, {**scope.facts, **held}))


def _asks(test: Test, target: ast.Attribute) -> bool:
    reads = (node for node in nodes_in(test.node) if isinstance(node, ast.Attribute))
    return any(same_place(read, target) for read in reads)


def overwritten(groups: Groups, found: FoundStore, condition: Condition) -> Groups:
    """What earlier stores of the same method leave, where a later one has run."""
    left = negate(condition)
    return [
        (other, under(arms, left))
        if other and other.function is found.function and is_plain(arms)
        else (other, arms)
        for other, arms in groups
    ]


def is_plain(arms: Arms) -> bool:
    """Whether the values say nothing but themselves: no objects, no None."""
    return all(isinstance(arm.value, _PLAIN) and arm.value != NONE for arm in arms)


def last_store_unknown(name: str, groups: Groups) -> Arms:
    """Join the stores; where several methods store plain values, nobody knows which ran last."""
    found = unite(*(arms for _, arms in groups))
    plain = {arm.value for arm in found if isinstance(arm.value, _PLAIN) and arm.value != NONE}
    storing = [other for other, arms in groups if any(a.value in plain for a in arms)]
    methods = {other and other.function for other in storing}
    if all(isinstance(v, Opaque) for v in plain):
        return found
    if len(plain) < 2 or len(methods) < 2:
        return found
    others = tuple(arm for arm in found if arm.value not in plain)
    return (*others, Arm(Opaque(name, AtomKind.STATE)))


def unseen(arms: Arms, known: list[Arms]) -> Arms:
    """What a store from outside adds: plain values, and objects of a class not held so far.

    Swapping one runner for another of its kind (adaptive speculation does) is recorded as
    a store; it does not change under which condition there is a runner.
    """
    classes = {a.value.cls for group in known for a in group if isinstance(a.value, Instance)}
    return tuple(
        arm
        for arm in arms
        if (isinstance(arm.value, Instance) and arm.value.cls not in classes)
        or isinstance(arm.value, Const | EnumMember)
    )


def is_swap(found: FoundStore) -> bool:
    """Whether a method takes over the same attribute of another object: ``self.x = other.x``."""
    value = found.store.value
    return (
        found.function.name not in CONSTRUCTORS
        and not found.store.index
        and isinstance(value, ast.Attribute)
        and value.attr == found.store.target.attr
        and not same_place(value.value, found.store.target.value)
    )


def only_renews(found: FoundStore, stores: list[FoundStore]) -> bool:
    """Whether a method stores nothing to the attribute but what it makes of it."""
    return all(is_renewal(other) for other in stores if other.function is found.function)


def swapped(arms: Arms, known: list[Arms]) -> Arms:
    """What a swap adds: where an object is held, nothing but objects of another class."""
    classes = {a.value.cls for group in known for a in group if isinstance(a.value, Instance)}
    if not classes:
        return arms
    return tuple(
        arm
        for arm in arms
        if not isinstance(arm.value, Opaque) and getattr(arm.value, "cls", None) not in classes
    )


def set_later(arms: Arms) -> Arms:
    """``None`` is what an attribute holds as long as no other store has run."""
    others = [arm for arm in arms if arm.value != NONE]
    if not others or len(others) == len(arms):
        return arms
    stored = any_of(*(arm.condition for arm in others))
    if stored == TRUE:
        return optional(arms)
    unset = any_of(*(arm.condition for arm in arms if arm.value == NONE))
    return (*others, Arm(NONE, negate(stored) if unset == TRUE else unset))


def apart(arms: Arms) -> Arms:
    """Take ``None`` out of what one store gives where it gives an object.

    Both hold where ``None`` is what an exception leaves, which no test tells.
    """
    objects = [arm.condition for arm in arms if isinstance(arm.value, Instance)]
    unset = [arm.condition for arm in arms if arm.value == NONE]
    if not objects or not unset or any(map(is_marked, (*objects, *unset))):
        return arms
    left = all_of(any_of(*unset), negate(any_of(*objects)))
    return (*(arm for arm in arms if arm.value != NONE), Arm(NONE, left))


def filled(base: Arms, items: Arms, entries: list[tuple[object, Arms]]) -> Arms:
    """Return a container with the elements that other statements put into it."""
    filled: list[Arm] = []
    for arm in base:
        value = arm.value
        if isinstance(value, Sequence):
            elements = unite(items, value.element, *(value.items or ()))
            filled.append(Arm(Sequence(None, elements, value.grows), arm.condition))
        elif value != NONE:
            known = value.entries if isinstance(value, Table) else ()
            filled.append(Arm(Table((*known, *entries), items), arm.condition))
        else:
            filled.append(arm)
    return tuple(filled)
