"""Which stores are in force: when a constructor is done, and while it makes a child."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from specmap.codemap.condition import FALSE, TRUE, AtomKind, Condition, all_of, leaf
from specmap.scan.bodies import same_place
from specmap.scan.guards import Bound, Store
from specmap.scan.truths import is_test
from specmap.scan.values import Arms, Const, Instance, Scope, only

if TYPE_CHECKING:
    from specmap.scan.module import FunctionInfo
    from specmap.scan.resolver import Resolver
    from specmap.scan.stored import FoundStore


# So many calls lead to a store at most, for its place in the order to be looked for.
_FEW_CALLS = 6


class StoreOrder:
    """Follows the order of stores, in constructors and around a child that is made."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._left: dict[Instance, dict[str, tuple[int, bool]]] = {}

    def in_force(self, instance: Instance, stores: Sequence[FoundStore]) -> list[FoundStore]:
        """Leave out what a method stores that runs in the constructor only, before a later store.

        ``self.set_up()`` and then ``self.x = None``: what ``set_up`` stored to ``x`` is gone.
        """
        init = self._init(instance)
        last = max((_line(s.store) for s in stores if self._is_final(s, init)), default=0)
        if not last:
            return list(stores)
        return [s for s in stores if not self._ran_before(instance, s, init, last)]

    def _init(self, instance: Instance) -> FunctionInfo | None:
        return self._resolver.types.method(instance.cls, "__init__")

    def _is_final(self, found: FoundStore, init: FunctionInfo | None) -> bool:
        """Whether a store of the constructor itself always happens, to the whole attribute."""
        store = found.store
        own = found.function is init and not found.outside and not store.item
        return own and self._resolver.condition(store.path) == TRUE

    def _ran_before(
        self, instance: Instance, found: FoundStore, init: FunctionInfo | None, line: int
    ) -> bool:
        if found.function is init or found.outside:
            return False
        sites = self._resolver.parameters.sites(instance, found.function)
        return bool(sites) and all(
            scope.frame.function is init and call.lineno < line for call, scope, _ in sites
        )

    def as_run(self, instance: Instance, stores: list[FoundStore]) -> list[FoundStore]:
        """Return stores in the order in which they run, as far as that is known."""
        ordered: list[FoundStore] = []
        for found in stores:
            before = [self.after(instance, found, other) == FALSE for other in ordered]
            ordered.insert(before.index(True) if True in before else len(ordered), found)
        return ordered

    def after(self, instance: Instance, found: FoundStore, other: FoundStore) -> Condition | None:
        """Return when a store runs after another: never, always, or under the tests of calls.

        Calls tell, from the places where both methods are run, each from one place only.
        """
        if found.function is other.function:
            return TRUE if _line(found.store) >= _line(other.store) else FALSE
        theirs = {function: line for function, line, _ in self._callers(instance, other)}
        for function, line, condition in self._callers(instance, found):
            if function in theirs:
                return condition if line > theirs[function] else FALSE
        return None

    def after_making(
        self, instance: Instance, found: FoundStore, other: FoundStore
    ) -> Condition | None:
        """Return when a constructor's ``x.a = None`` on another object follows what that made.

        A constructor that is handed the object finds it made, and so does a method that it alone
        calls; of any other, which may give back what it takes, nobody knows.
        """
        this = found.store.scope.frame.self_value
        taker = this if isinstance(this, Instance) else None
        takes = found.outside and not _gives(found)
        ways = self._ways(taker, found.function, _line(found.store)) if takes else ()
        when = [condition for function, _, condition in ways if function.name == "__init__"]
        if not when or other.outside:
            return None
        own, pending = self._init(instance), [other.function]
        for function in pending:
            sites = self._resolver.parameters.sites(instance, function)
            frames = (scope.frame for _, scope, _ in sites)
            callers = (f.function for f in frames if f.self_value == instance and f.function)
            pending += [caller for caller in callers if caller not in pending]
        if own not in pending:
            return None
        stores = self._resolver.attributes.stores(instance, found.store.target.attr)
        others = (s for s in stores if s.outside and s.function is not found.function)
        return has_run(found) if any(map(_gives, others)) else when[0]

    def _callers(
        self, instance: Instance, found: FoundStore
    ) -> Iterator[tuple[FunctionInfo, int, Condition]]:
        """Yield the methods of the object that lead to a store: each with a line, and when."""
        if not found.outside:
            yield from self._ways(instance, found.function, _line(found.store))

    def _ways(
        self, instance: Instance | None, function: FunctionInfo, line: int
    ) -> Iterator[tuple[FunctionInfo, int, Condition]]:
        condition: Condition = TRUE
        for _ in range(_FEW_CALLS):
            yield function, line, condition
            sites = self._resolver.parameters.sites(instance, function) if instance else ()
            if len(sites) != 1 or sites[0][1].frame.self_value != instance:
                return
            call, scope, _ = sites[0]
            caller = scope.frame.function
            noted = self._resolver.attributes.execution(scope.frame).scope_of(call)
            if caller is None or noted is None:
                return
            function, line = caller, call.lineno
            condition = all_of(self._resolver.condition(noted[1]), condition)

    def window(self, owner: Instance, child: Instance) -> dict[str, Arms]:
        """Return the settings that the owner changed for the time in which it made a child."""
        init, origin = self._init(owner), child.origin
        function = origin.scope.frame.function if origin is not None else None
        if origin is None or function is None:
            return {}
        attributes = self._resolver.attributes
        found: dict[str, Arms] = {}
        if function is not init and owner == origin.scope.frame.self_value:
            stores = attributes.execution(origin.scope.frame).stores
            found = _between(self._resolver, stores, origin.call.lineno, found)
        # Else the child is made below the constructor of the parent class.
        call = origin.call if function is init else init.parent_call if init else None
        if init is None or call is None:
            return found
        stores = attributes.execution(attributes.frame(owner, init)).stores
        for name, (line, value) in self._lefts(owner).items():
            if line < call.lineno:
                found[name] = only(Const(value))
        return _between(self._resolver, stores, call.lineno, found)

    def left_of(self, instance: Instance, name: str) -> Arms | None:
        """Return what a constructor set a launch setting to for good."""
        found = self._lefts(instance).get(name)
        return None if found is None else only(Const(found[1]))

    def _lefts(self, instance: Instance) -> dict[str, tuple[int, bool]]:
        found = self._left.get(instance)
        if found is None:
            self._left[instance] = {}
            found = self._left[instance] = self._find_left(instance)
        return found

    def _find_left(self, instance: Instance) -> dict[str, tuple[int, bool]]:
        init, attributes = self._init(instance), self._resolver.attributes
        if init is None:
            return {}
        stores = attributes.execution(attributes.frame(instance, init)).stores
        found: dict[str, tuple[int, bool]] = {}
        for store in stores:
            same = [s for s in stores if s.target.attr == store.target.attr]
            value = store.value
            if len(same) == 1 and not store.path and isinstance(value, ast.Constant):
                if isinstance(value.value, bool) and self._is_setting(store):
                    found[store.target.attr] = (_line(store), value.value)
        return found

    def _is_setting(self, store: Store) -> bool:
        arms = self._resolver.evaluate(store.target.value, store.scope)
        return any(
            isinstance(a.value, Instance) and self._resolver.is_settings(a.value.cls.module.name)
            for a in arms
        )


def _between(
    resolver: Resolver, stores: Sequence[Store], line: int, found: dict[str, Arms]
) -> dict[str, Arms]:
    """Add what attributes hold on a line, where a later store gives them another value."""
    for name in dict.fromkeys(store.target.attr for store in stores):
        same = [store for store in stores if store.target.attr == name]
        before = [store for store in same if _line(store) < line]
        after = [store for store in same if _line(store) > line]
        if not before or not after or isinstance(after[0].value, ast.Constant):
            continue
        value = before[-1].value
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            found[name] = only(Const(value.value))
        elif is_restored(after[0]) and not before[-1].path and not before[-1].index:
            arms = resolver.evaluate(value, before[-1].scope)
            if arms and all(is_test(arm.value) for arm in arms):
                found[name] = arms
    return found


def stored_before(
    stores: Sequence[FoundStore], node: ast.Attribute, function: FunctionInfo
) -> list[FoundStore] | None:
    """Return the stores before ``x.a = f(x.a)`` whose ``x.a`` a node is, if it is one."""
    for renewal in function.facts.renewed.get(node.attr, ()):
        if any(read is node for read in renewal.reads):
            at = min(node.lineno, renewal.target.lineno)
            return [s for s in stores if s.function is not function or _line(s.store) < at]
    return None


def has_run(found: FoundStore) -> Condition:
    """Return the doubt whether a store has run."""
    store, module = found.store, found.function.module
    text = f"{module.text(store.target)} = {module.text(store.value)} has run"
    return leaf(text, AtomKind.UNKNOWN, module.span(store.target))


def _gives(found: FoundStore) -> bool:
    """Whether a store is none of ``x.a = None``."""
    value = found.store.value
    return not isinstance(value, ast.Constant) or value.value is not None


def is_renewal(found: FoundStore) -> bool:
    """Return whether a store is ``x.a = f(x.a)``."""
    target = found.store.target
    renewals = found.function.facts.renewed.get(target.attr, ())
    return any(renewal.target is target for renewal in renewals)


def saved_in(store: Store) -> Scope | None:
    """Return where a local name saved what a store gives back to the attribute, if it does."""
    node, index, scope = store.value, store.index, store.scope
    while isinstance(node, ast.Name) and isinstance(bound := scope.env.get(node.id), Bound):
        node, index, scope = bound.node, (*bound.index, *index), bound.scope
    while index and isinstance(node, ast.Tuple) and index[0] is not None:
        if index[0] >= len(node.elts):
            return None
        node, index = node.elts[index[0]], index[1:]
    restores = (
        node is not store.value
        and not index
        and isinstance(node, ast.Attribute)
        and node.attr == store.target.attr
        and same_place(node.value, store.target.value)
    )
    return scope if restores else None


def is_restored(store: Store) -> bool:
    """Return whether a store gives an attribute back what a local name saved of it before."""
    return saved_in(store) is not None


def is_passing(store: Store, stores: Sequence[Store]) -> bool:
    """Return whether a later one of a function's stores gives the attribute back."""
    return any(
        other.target.lineno > store.target.lineno
        and same_place(other.target, store.target)
        and is_restored(other)
        for other in stores
    )


def _line(store: Store) -> int:
    return store.target.lineno
