"""What a worker's own set-up code gives an attribute: it is run, on an object without a past."""

from __future__ import annotations

from collections.abc import Mapping

from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import Carrier, Class, Lazy, Module, Unknown


class Building:
    """Runs set-up methods. ``methods`` says which attribute is set by which method."""

    def __init__(self, machine: Machine, methods: Mapping[str, str]) -> None:
        self.machine = machine
        self.methods = methods
        self._running: set[str] = set()

    def sets(self, name: str) -> bool:
        """Whether a set-up method gives this attribute that is not running now."""
        return name in self.methods and self.methods[name] not in self._running

    def attribute(self, module: Module | None, name: str) -> object:
        """Return what the set-up method of the module's class leaves in an attribute."""
        method = self.methods[name]
        owner = self._owner(module, method)
        if owner is None:
            return Unknown((f"self.{name}",))
        made = Carrier("self", owner)
        self._running.add(method)
        try:
            self.machine.invoke(self.machine.attribute(made, method), [], {})
        finally:
            self._running.discard(method)
        if name not in made.slots:
            return Unknown((f"self.{name}",))
        return self.machine.read(made, name)

    def _owner(self, module: Module | None, method: str) -> Class | None:
        """Return the one class of a module that defines the method."""
        if module is None:
            return None
        found = []
        for name, value in list(module.slots.items()):
            held = self.machine.read(module, name) if isinstance(value, Lazy) else value
            if isinstance(held, Class) and held.module is module and method in held.slots:
                found.append(held)
        return found[0] if len(found) == 1 else None
