"""What an attribute of an object can hold, from every store that can reach it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from specmap.codemap.condition import FALSE, TRUE, AtomKind, Condition, all_of, leaf, negate
from specmap.scan.bodies import sets_unwritten
from specmap.scan.executor import Executor
from specmap.scan.guards import Execution, Store
from specmap.scan.module import ClassInfo, FunctionInfo
from specmap.scan.stored import (
    CONSTRUCTORS,
    FoundStore,
    Groups,
    apart,
    as_needed,
    filled,
    is_swap,
    last_store_unknown,
    only_renews,
    overwritten,
    set_later,
    swapped,
    unseen,
)
from specmap.scan.storeorder import (
    StoreOrder,
    has_run,
    is_passing,
    is_renewal,
    is_restored,
    stored_before,
)
from specmap.scan.values import (
    NONE,
    Arms,
    Frame,
    Instance,
    Opaque,
    Scope,
    is_known,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

# An attribute name that so many functions store to from outside is data, not structure.
_MAX_OUTSIDE = 8


class Attributes:
    """Attribute stores, by object."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._before: dict[tuple[Instance, ast.Attribute], Arms | None] = {}
        self._values: dict[tuple[Instance, str], Arms] = {}
        self._stores: dict[tuple[Instance, str], list[FoundStore]] = {}
        self._over: dict[tuple[Instance, str], list[FoundStore]] = {}
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

    def stores_over(self, instance: Instance, name: str) -> list[FoundStore]:
        """Return the stores to the name of a method, which hide it."""
        key = (instance, name)
        return self._resolver.memo.get(self._over, key, lambda: self._find_over(instance, name), [])

    def _find_over(self, instance: Instance, name: str) -> list[FoundStore]:
        return [*self._own_stores(instance, name), *self._outside_stores(instance, name)]

    def _find_stores(self, instance: Instance, name: str) -> list[FoundStore]:
        return self._find_over(instance, name) if any(self._own_stores(instance, name)) else []

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

        def held() -> Arms:
            arms = self._held(instance, name, self.stores(instance, name))
            if not arms or name not in self._resolver.runner_names:
                return arms
            return self._set_by_name(instance, name, arms)

        return self._resolver.memo.get(self._values, (instance, name), held, ())

    def _set_by_name(self, instance: Instance, name: str, arms: Arms) -> Arms:
        """Add the runners that a method sets by a name that is not written: it may be this one."""
        for cls in self._resolver.types.mro(instance.cls):
            for method in cls.methods.values():
                for call in self._resolver.calls_of(method, "setattr"):
                    on_self = sets_unwritten(call) and getattr(call.args[0], "id", "") == "self"
                    if not on_self or not self.is_live(instance, method):
                        continue
                    at = self.execution(self.frame(instance, method)).scope_of(call)
                    if at is None:
                        continue
                    runner = self._resolver.evaluate(call.args[2], at[0])
                    if self._resolver.is_runner(runner):
                        module = method.module
                        text = f"{module.text(call)} sets {name}"
                        so = leaf(text, AtomKind.UNKNOWN, module.span(call))
                        ran = all_of(self._resolver.condition(at[1]), so)
                        arms = unite(under(runner, ran), under(arms, negate(ran)))
        return arms

    def before(self, instance: Instance, node: ast.Attribute, scope: Scope) -> Arms | None:
        """Return what ``x.a`` holds inside ``x.a = f(x.a)``, or None elsewhere."""
        function = scope.frame.function
        if function is None or node.attr not in self._resolver.runner_names:
            return None
        key = (instance, node)
        if key not in self._before:
            before = stored_before(self.stores(instance, node.attr), node, function)
            self._before[key] = None if before is None else self._held(instance, node.attr, before)
        return self._before[key]

    def _held(self, instance: Instance, name: str, stores: list[FoundStore]) -> Arms:
        whole: Groups = []
        items: list[Arms] = []
        entries: list[tuple[object, Arms]] = []
        runs = name in self._resolver.runner_names
        stores = self._order.in_force(instance, stores)
        if runs:
            stores = self._order.as_run(instance, stores)
        # What only swaps or renews comes last: it adds to what the other stores hold.
        stores = sorted(stores, key=lambda found: (is_swap(found), only_renews(found, stores)))
        if not any(found.function.name in CONSTRUCTORS for found in stores):
            whole += [(None, self._resolver.members.initial(instance, name))] if stores else []
        for found in stores:
            store = found.store
            value = self._stored(store)
            condition = self._condition(instance, found, value)
            if condition == FALSE or is_restored(store):
                continue
            if runs and is_passing(store, self.execution(store.scope.frame).stores):
                continue  # walks follow it
            arms = under(apart(value), condition)
            if found.outside:
                arms = under(arms, self._switched(found.function))
                if not (runs and is_renewal(found)):
                    arms = unseen(arms, [group for _, group in whole])
            elif is_swap(found):
                arms = swapped(arms, [group for _, group in whole])
            if not store.item:
                if runs:
                    left, arms = self._in_order(instance, found, condition, whole, arms)
                else:
                    left = overwritten(whole, found, condition)
                whole = [*left, (found, arms)]
                continue
            items.append(arms)
            if isinstance(store.key, ast.Constant):
                entries.append((store.key.value, arms))
        base = set_later(self._joined(name, whole))
        return base if not items else filled(base, unite(*items), entries)

    def _condition(self, instance: Instance, found: FoundStore, value: Arms) -> Condition:
        """When a store is run; what it asks of its own attribute is no reason against it."""
        path, name = found.store.path, found.store.target.attr
        if path and name in self._resolver.runner_names:
            self._resolver.windows.add(name)
            gone = is_renewal(found) or all(arm.value == NONE for arm in value)
            path = as_needed(found.store, instance, gone)
        return self._resolver.condition(path)

    def _in_order(
        self, instance: Instance, found: FoundStore, ran: Condition, whole: Groups, arms: Arms
    ) -> tuple[Groups, Arms]:
        """Return what a store to a runner's attribute leaves of the others, and what it adds."""
        renews = is_renewal(found)
        if renews and not any(isinstance(a.value, Instance) or a.value == NONE for a in arms):
            # Nobody knows what was made of it: maybe something that asks it, and no more.
            module = found.function.module
            text = f"{module.text(found.store.value)} asks nothing else"
            doubt = leaf(text, AtomKind.UNKNOWN, module.span(found.store.value))
            arms = under(unite(*(group for _, group in whole)), all_of(ran, doubt))
        left: Groups = []
        for other, group in whole:
            after = self._order.after(instance, found, other) if other else None
            if after is None and renews and self._resolver.is_runner(group):
                after = has_run(found)
            if after is None and other:
                after = self._order.after_making(instance, found, other)
            if after is None:
                left.append((other, group))
                continue
            left.append((other, under(group, negate(all_of(ran, after)))))
            arms = under(arms, after)
        return left, arms

    def _switched(self, function: FunctionInfo) -> Condition:
        """When a method that swaps objects of a running server is used at all."""
        switch = self._resolver.vocabulary.swaps.get(function.name)
        return TRUE if switch is None else leaf(switch, AtomKind.LAUNCH, function.span)

    def _joined(self, name: str, groups: Groups) -> Arms:
        """Join all stores; the walks keep track of forward modes themselves."""
        words = self._resolver.vocabulary
        if name in words.mode_attribute or name in words.capture_mode:
            return unite(*(arms for _, arms in groups))
        return last_store_unknown(name, groups)

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
        if not any(isinstance(arm.value, Instance | Opaque) for arm in receiver):
            return None
        frame: Frame | None = scope.frame
        while frame is not None:
            this = frame.self_value
            if isinstance(this, Instance) and not frame.path:
                found = self.overrides(this).get(name)
                found = self._order.left_of(this, name) or found
                if found:
                    return found
            frame = frame.caller.frame if frame.caller else None
        return None
