"""Built-in functions that ask objects for their attributes and types."""

from __future__ import annotations

from collections.abc import Callable

from specmap.scan.launch.containers import Containers
from specmap.scan.launch.machine import Machine
from specmap.scan.launch.typetests import is_data
from specmap.scan.launch.values import (
    Bound,
    Box,
    Carrier,
    Choice,
    Class,
    External,
    Function,
    Instance,
    Maybe,
    Member,
    Native,
    Unknown,
    View,
    reasons_of,
)


class Objects(Containers):
    """Attribute and type questions on one machine.

    ``attribute_or`` finds an attribute or gives ``missing``; ``absent`` says whether it is
    surely missing.
    """

    def __init__(
        self,
        machine: Machine,
        attribute_or: Callable[[object, str], object],
        missing: object,
        absent: Callable[[object, str], object],
    ) -> None:
        super().__init__(machine)
        self.attribute_or = attribute_or
        self.missing = missing
        self.absent = absent
        self._natives: dict[str, Native] = {}

    def _isinstance(self, p: list[object], k: object) -> object:
        return self.machine.invoke(External("builtins.isinstance"), p, {})

    def _issubclass(self, p: list[object], k: object) -> object:
        left, right = p
        if isinstance(left, Class) and isinstance(right, Class):
            if right in left.mro():
                return True
            return self.machine.unknown("issubclass()") if left.outside() else False
        if isinstance(left, Class) and isinstance(right, External):
            last = right.name.rpartition(".")[2]
            if last in left.outside():
                return True
            return self.machine.unknown("issubclass()") if "open" in left.marks else False
        return self.machine.unknown("issubclass()")

    def _hasattr(self, p: list[object], k: object) -> object:
        name = p[1]
        if not isinstance(name, str):
            return self.machine.unknown(*reasons_of(name))
        if isinstance(p[0], Carrier):
            return self.machine.unknown(p[0].label)
        if isinstance(p[0], Instance):
            held = p[0].slots.get(name)
            if isinstance(held, Maybe):
                return Unknown(held.reasons)
        found = self.attribute_or(p[0], name)
        if found is self.missing:
            return self.absent(p[0], name) is None
        if isinstance(found, Unknown) and not isinstance(p[0], Instance):
            return found
        return True

    def _getattr(self, p: list[object], k: object) -> object:
        name = p[1]
        if isinstance(name, Choice):
            options = [self._getattr([p[0], n, *p[2:]], k) for n in name.values]
            return self.machine.heap.join_values(options, name.reasons)
        if not isinstance(name, str):
            return self.machine.unknown(*reasons_of(name))
        if len(p) < 3:
            return self.machine.attribute(p[0], name)
        held = p[0].slots.get(name) if isinstance(p[0], Instance) else None
        found = self.attribute_or(p[0], name)
        if found is self.missing:
            unsure = self.absent(p[0], name)
            return p[2] if unsure is not None else self.machine.unknown(f"attribute {name}")
        if isinstance(held, Maybe):
            return self.machine.heap.join_values([found, p[2]], held.reasons)
        return found

    def _setattr(self, p: list[object], k: object) -> None:
        target, name, value = p
        if isinstance(name, str):
            self.machine.assign_attribute(target, name, value)
            return
        names = name.values if isinstance(name, Choice) else ()
        if not names:
            self.machine.spoil([target], "setattr() of an unknown name")
        for one in names:
            joined = [self.machine.attribute(target, str(one)), value]
            why = reasons_of(name)
            self.machine.assign_attribute(
                target, str(one), self.machine.heap.join_values(joined, why)
            )

    def _type(self, p: list[object], k: object) -> object:
        value = p[0].record if isinstance(p[0], View) else p[0]
        if isinstance(value, Instance | Member) and value.cls is not None:
            return value.cls
        if isinstance(value, Box):
            return self._natives[value.kind]
        name = type(value).__name__
        return self._natives.get(name) or self.machine.unknown(*reasons_of(value), "type()")

    def _super(self, p: list[object], k: object) -> object:
        owner, receiver = (*p, None, None)[:2]
        if not isinstance(owner, Class) or not isinstance(receiver, Instance):
            return self.machine.unknown("super()")
        above = Class(owner.name, owner.node, owner.module)
        above.bases, above.external = owner.bases, owner.external
        view = Instance(above, owner.name, open_=True)
        view.slots = receiver.slots
        return view

    def _callable(self, p: list[object], k: object) -> object:
        if isinstance(p[0], Function | Native | Class | Bound):
            return True
        return (
            False
            if isinstance(p[0], Box | Member) or is_data(p[0])
            else self.machine.unknown(*reasons_of(p[0]), "callable()")
        )
