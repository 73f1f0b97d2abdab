"""What an attribute of an object can hold, from every store that can reach it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specmap.codemap.condition import FALSE, TRUE, AtomKind, Condition, any_of, leaf, negate
from specmap.scan.executor import Executor
from specmap.scan.guards import Execution, Store
from specmap.scan.module import ClassInfo, FunctionInfo, is_wrapped, same_place
from specmap.scan.storeorder import StoreOrder, is_restored, stored_before
from specmap.scan.values import (
    NONE,
    Arm,
    Arms,
    Const,
    EnumMember,
    Frame,
    Instance,
    Opaque,
    Scope,
    Sequence,
    Table,
    Truth,
    is_known,
    optional,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

# An attribute name that so many functions store to from outside is data, not structure.
_MAX_OUTSIDE = 8
_CONSTRUCTORS = ("__init__", "__new__")
_PLAIN = (Const, EnumMember, Truth, Opaque)


@dataclass(frozen=True, slots=True)
class FoundStore:
    """A store that applies to one object, with the method frame it was seen in."""

    store: Store
    function: FunctionInfo
    outside: bool


class Attributes:
    """Attribute stores, by object."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._wrapped: dict[tuple[Instance, ast.Attribute], Arms | None] = {}
        self._values: dict[tuple[Instance, str], Arms] = {}
        self._stores: dict[tuple[Instance, str], list[FoundStore]] = {}
        self._frames: dict[tuple[Instance | None, FunctionInfo], Frame] = {}
        self._runs: dict[Frame, Execution] = {}
        self._overrides: dict[Instance, dict[str, Arms]] = {}
        self._order = StoreOrder(resolver)

    def frame(self, instance: Instance | None, function: FunctionInfo) -> Frame:
        """Return the frame in which a method is looked at without one caller."""
        key = (instance, function)
        if key not in self._frames:
            self._frames[key] = Frame(function, function.module, instance)
        return self._frames[key]

    def execution(self, frame: Frame) -> Execution:
        """Return the noted run of a frame's body."""
        if frame not in self._runs:
            assert frame.function is not None
            self._runs[frame] = Executor(frame).run(frame.function)
        return self._runs[frame]

    def is_live(self, instance: Instance, method: FunctionInfo) -> bool:
        """Whether a method can run on this object: not overridden, or called by super()."""
        current = self._resolver.types.method(instance.cls, method.name)
        for _ in range(len(self._resolver.types.mro(instance.cls))):
            if current is method or current is None:
                return current is method
            following = self._delegate(instance, current)
            if following is None or following is current:
                return False
            current = following
        return False

    def _delegate(self, instance: Instance, method: FunctionInfo) -> FunctionInfo | None:
        call = method.parent_call
        return None if call is None else self._parent_method(instance, method, call)

    def _parent_method(
        self, instance: Instance, method: FunctionInfo, call: ast.Call
    ) -> FunctionInfo | None:
        assert isinstance(call.func, ast.Attribute)
        receiver = call.func.value
        if isinstance(receiver, ast.Call):
            return self._resolver.types.method(instance.cls, method.name, after=method.owner)
        for arm in self._resolver.evaluate(receiver, Scope(Frame(None, method.module))):
            cls = getattr(arm.value, "cls", None)
            if isinstance(cls, ClassInfo):
                return self._resolver.types.method(cls, method.name)
        return None

    def stores(self, instance: Instance, name: str) -> list[FoundStore]:
        """Return the stores to ``name`` that can reach this object."""
        return self._resolver.memo.get(
            self._stores, (instance, name), lambda: self._find_stores(instance, name), []
        )

    def _find_stores(self, instance: Instance, name: str) -> list[FoundStore]:
        own = list(self._own_stores(instance, name))
        return own + (list(self._outside_stores(instance, name)) if own else [])

    def _own_stores(self, instance: Instance, name: str) -> Iterator[FoundStore]:
        for cls in self._resolver.types.mro(instance.cls):
            for method in cls.stores.get(name, ()):
                if not self.is_live(instance, method):
                    continue
                run = self.execution(self.frame(instance, method))
                first = method.parameters[0].arg if method.parameters else "self"
                for store in run.stores:
                    receiver = store.target.value
                    if store.target.attr == name and isinstance(receiver, ast.Name):
                        if receiver.id == first:
                            yield FoundStore(store, method, False)

    def _outside_stores(self, instance: Instance, name: str) -> Iterator[FoundStore]:
        candidates = self._resolver.outside_functions(name)
        if len(candidates) > _MAX_OUTSIDE:
            return
        for function in candidates:
            this = self._holder(instance, function)
            run = self.execution(self.frame(this, function))
            for store in run.stores:
                receiver = store.target.value
                if store.target.attr != name:
                    continue
                if isinstance(receiver, ast.Name) and receiver.id == "self":
                    continue
                if self._may_be(receiver, store.scope, instance):
                    yield FoundStore(store, function, True)

    def _holder(self, instance: Instance, function: FunctionInfo) -> Instance | None:
        """The object a method outside runs on: an owner of the instance, else any."""
        if function.owner is None:
            return None
        owner = instance.owner
        while owner is not None:
            if function.owner in self._resolver.types.mro(owner.cls):
                return owner
            owner = owner.owner
        return self._resolver.any_instance(function.owner)

    def _may_be(self, receiver: ast.expr, scope: Scope, instance: Instance) -> bool:
        for arm in self._resolver.evaluate(receiver, scope):
            value = arm.value
            if value == instance:
                return True
            if isinstance(value, Instance) and value.cls is instance.cls:
                if value.owner is None or value.owner.rule == "annotation":
                    return True
        return False

    def value(self, instance: Instance, name: str) -> Arms:
        """Return what the attribute holds by its stores; ``()`` when there is none."""
        return self._resolver.memo.get(
            self._values, (instance, name), lambda: self._value(instance, name), ()
        )

    def wrapped(self, instance: Instance, node: ast.Attribute, scope: Scope) -> Arms | None:
        """Return what ``x.a`` holds inside ``x.a = Wrapper(x.a)``, or None elsewhere."""
        function = scope.frame.function
        if function is None or node.attr not in function.facts.wrapped:
            return None
        key = (instance, node)
        if key not in self._wrapped:
            before = stored_before(self.stores(instance, node.attr), node, function)
            self._wrapped[key] = None if before is None else self._held(instance, node.attr, before)
        return self._wrapped[key]

    def _value(self, instance: Instance, name: str) -> Arms:
        return self._held(instance, name, self.stores(instance, name))

    def _held(self, instance: Instance, name: str, stores: list[FoundStore]) -> Arms:
        whole: list[tuple[FunctionInfo | None, Arms]] = []
        items: list[Arms] = []
        entries: list[tuple[object, Arms]] = []
        # What only swaps comes last: it adds to what the other stores hold.
        stores = self._order.in_force(instance, stores)
        stores = sorted(stores, key=_is_swap)
        if not any(found.function.name in _CONSTRUCTORS for found in stores):
            whole += [(None, self._resolver.members.initial(instance, name))] if stores else []
        for found in stores:
            store = found.store
            condition = self._resolver.condition(store.path)
            if condition == FALSE or is_restored(store):
                continue
            arms = under(self._stored(store), condition)
            if found.outside:
                arms = under(arms, self._switched(found.function))
                arms = _unseen(arms, [group for _, group in whole])
            elif _is_swap(found):
                arms = _swapped(arms, [group for _, group in whole])
            if not store.item:
                left = _overwritten(whole, found, condition)
                whole = [*left, (found.function, arms)]
                continue
            items.append(arms)
            if isinstance(store.key, ast.Constant):
                entries.append((store.key.value, arms))
        base = _set_later(self._joined(name, whole))
        return base if not items else _filled(base, unite(*items), entries)

    def _switched(self, function: FunctionInfo) -> Condition:
        """When a method that swaps objects of a running server is used at all."""
        switch = self._resolver.vocabulary.swaps.get(function.name)
        return TRUE if switch is None else leaf(switch, AtomKind.LAUNCH, function.span)

    def _joined(self, name: str, groups: list[tuple[FunctionInfo | None, Arms]]) -> Arms:
        """Join all stores; the walks keep track of forward modes themselves."""
        words = self._resolver.vocabulary
        if name in words.mode_attribute or name in words.capture_mode:
            return unite(*(arms for _, arms in groups))
        return _last_store_unknown(name, groups)

    def _stored(self, store: Store) -> Arms:
        value = self._resolver.pick(self._resolver.evaluate(store.value, store.scope), store.index)
        if store.annotation is None or is_known(value):
            return value
        return unite(value, self._resolver.types.annotation(store.annotation, store.scope))

    def overrides(self, instance: Instance) -> dict[str, Arms]:
        """Return settings that hold only while this object is built.

        A method may set a shared setting, build a child, and restore the setting after:
        then the child saw the temporary value, and everything built inside it did.
        """
        known = self._overrides.get(instance)
        if known is not None:
            return known
        if instance.owner is None:
            return {}
        return self._resolver.memo.get(
            self._overrides, instance, lambda: self._find_overrides(instance), {}
        )

    def _find_overrides(self, instance: Instance) -> dict[str, Arms]:
        assert instance.owner is not None
        return self.overrides(instance.owner) | self._order.window(instance.owner, instance)

    def override_of(self, scope: Scope, receiver: Arms, name: str) -> Arms | None:
        """Return the temporary value of a setting for code that builds an object."""
        frame: Frame | None = scope.frame
        while frame is not None:
            this = frame.self_value
            if isinstance(this, Instance) and not frame.path:
                found = self.overrides(this).get(name)
                found = self._order.left_of(this, name) or found
                if found and any(isinstance(a.value, Instance | Opaque) for a in receiver):
                    return found
            frame = frame.caller.frame if frame.caller else None
        return None


def _overwritten(
    groups: list[tuple[FunctionInfo | None, Arms]], found: FoundStore, condition: Condition
) -> list[tuple[FunctionInfo | None, Arms]]:
    """What earlier stores of the same method leave, where a later one has run."""
    left, wrapped = negate(condition), is_wrapped(found.store.target, found.store.value)
    return [
        (where, under(arms, left))
        if where is found.function and (wrapped or _is_plain(arms))
        else (where, arms)
        for where, arms in groups
    ]


def _is_plain(arms: Arms) -> bool:
    """Whether the values say nothing but themselves: no objects, no None."""
    return all(isinstance(arm.value, _PLAIN) and arm.value != NONE for arm in arms)


def _last_store_unknown(name: str, groups: list[tuple[FunctionInfo | None, Arms]]) -> Arms:
    """Join the stores; where several methods store plain values, nobody knows which ran last."""
    found = unite(*(arms for _, arms in groups))
    plain = {arm.value for arm in found if isinstance(arm.value, _PLAIN) and arm.value != NONE}
    methods = {where for where, arms in groups if any(a.value in plain for a in arms)}
    if all(isinstance(v, Opaque) for v in plain):
        return found
    if len(plain) < 2 or len(methods) < 2:
        return found
    others = tuple(arm for arm in found if arm.value not in plain)
    return (*others, Arm(Opaque(name, AtomKind.STATE)))


def _unseen(arms: Arms, known: list[Arms]) -> Arms:
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


def _is_swap(found: FoundStore) -> bool:
    """Whether a method takes over the same attribute of another object: ``self.x = other.x``."""
    value = found.store.value
    return (
        found.function.name not in _CONSTRUCTORS
        and not found.store.index
        and isinstance(value, ast.Attribute)
        and value.attr == found.store.target.attr
        and not same_place(value.value, found.store.target.value)
    )


def _swapped(arms: Arms, known: list[Arms]) -> Arms:
    """What a swap adds: where an object is held, nothing but objects of another class."""
    classes = {a.value.cls for group in known for a in group if isinstance(a.value, Instance)}
    if not classes:
        return arms
    return tuple(
        arm
        for arm in arms
        if not isinstance(arm.value, Opaque) and getattr(arm.value, "cls", None) not in classes
    )


def _set_later(arms: Arms) -> Arms:
    """``None`` is what an attribute holds as long as no other store has run."""
    others = [arm for arm in arms if arm.value != NONE]
    if not others or len(others) == len(arms):
        return arms
    stored = any_of(*(arm.condition for arm in others))
    if stored == TRUE:
        return optional(arms)
    unset = any_of(*(arm.condition for arm in arms if arm.value == NONE))
    return (*others, Arm(NONE, negate(stored) if unset == TRUE else unset))


def _filled(base: Arms, items: Arms, entries: list[tuple[object, Arms]]) -> Arms:
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
