"""Which stores of a constructor are in force when it is done."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from specmap.codemap.condition import TRUE
from specmap.scan.guards import Store
from specmap.scan.values import Instance

if TYPE_CHECKING:
    from specmap.scan.attributes import FoundStore
    from specmap.scan.module import FunctionInfo
    from specmap.scan.resolver import Resolver


class StoreOrder:
    """Follows the order of the stores of constructors."""

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
            scope.frame.function is init and call.lineno < line for call, scope in sites
        )

    def left(self, instance: Instance, line: float = float("inf")) -> dict[str, bool]:
        """Return the launch settings that a constructor changed for good before a line."""
        if instance not in self._left:
            self._left[instance] = {}
            self._left[instance] = self._find_left(instance)
        return {name: value for name, (at, value) in self._left[instance].items() if at < line}

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


def _line(store: Store) -> int:
    return store.target.lineno
