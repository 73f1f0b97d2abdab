"""Reading and writing attributes."""

from __future__ import annotations

from collections.abc import Callable

from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import (
    Bound,
    Box,
    Carrier,
    Choice,
    Class,
    Either,
    External,
    Function,
    Instance,
    Maybe,
    Member,
    Module,
    Native,
    Raised,
    Unknown,
    View,
    reasons_of,
)

MISSING = object()


class Attributes:
    """Attribute access of one machine. ``method`` gives the methods of built-in values.

    ``published`` are the modules whose objects a server fills while it starts.
    """

    def __init__(
        self,
        machine: Machine,
        method: Callable[[object, str], Native | None],
        replaced: Callable[[str], Native | None],
        constant: Callable[[str], object],
        stashes: frozenset[str],
        published: tuple[str, ...],
    ) -> None:
        self.machine = machine
        self.method = method
        self.replaced = replaced
        self.constant = constant
        self.stashes = stashes
        self.published = published
        machine.attribute = self.read
        machine.assign_attribute = self.write

    def read(self, value: object, name: str) -> object:
        """Return ``value.name``.

        Raises:
            Raised: ``None`` and plain values have no such attribute.
        """
        found = self.find(value, name)
        if found is not MISSING:
            return found
        if value is None or isinstance(value, bool | int | float | str | tuple):
            text = f"{type(value).__name__!r} object has no attribute {name!r}"
            raise Raised("AttributeError", text)
        return self.machine.unknown(self._reason(value, name))

    @staticmethod
    def _reason(value: object, name: str) -> str:
        if isinstance(value, Instance):
            return f"{value.label}: {name}" if value.open else f"attribute {name} of {value.label}"
        return f"attribute {name}"

    def find(self, value: object, name: str) -> object:
        """Return ``value.name``, or ``MISSING``."""
        machine = self.machine
        if isinstance(value, Either):
            return machine.branch_value(
                value.reasons,
                [lambda one=one: self.read(one, name) for one in value.values],  # type: ignore[misc]
            )
        if isinstance(value, Unknown):
            return machine.unknown(*value.reasons)
        if isinstance(value, Choice):
            return self._of_choice(value, name)
        if isinstance(value, View):
            return self._of_view(value, name)
        if isinstance(value, Instance):
            return self._of_instance(value, name)
        if isinstance(value, Class):
            return self._of_class(value, name)
        if isinstance(value, Member):
            return self._of_member(value, name)
        if isinstance(value, Module):
            return machine.member(value, name)
        if isinstance(value, External):
            return self.constant(f"{value.name}.{name}")
        if isinstance(value, Function):
            names = {"__name__": value.name, "__qualname__": value.name}
            return names.get(name, machine.unknown(f"{value.name}.{name}"))
        method = self.method(value, name)
        return MISSING if method is None else method

    def _of_choice(self, value: Choice, name: str) -> object:
        """Methods of every alternative become one method; other attributes are joined."""
        machine = self.machine
        if all(isinstance(v, Member) or v is None for v in value.values):
            return machine.branch_value(
                value.reasons,
                [lambda one=one: self.read(one, name) for one in value.values],  # type: ignore[misc]
            )

        def call(positional: list[object], keywords: dict[str, object]) -> object:
            def one(option: object) -> object:
                return machine.invoke(self.read(option, name), positional, keywords)

            return machine.branch_value(
                value.reasons,
                [lambda option=option: one(option) for option in value.values],  # type: ignore[misc]
            )

        return Native(name, call)

    def _of_view(self, view: View, name: str) -> object:
        if self.machine.reads is not None and name in view.overlay.slots:
            self.machine.reads.append(name)
        if view.snapshot is not None and name in view.snapshot:
            held = view.snapshot[name]
            return held.value if isinstance(held, Maybe) else held
        if name in view.overlay.slots:
            return self.machine.read(view.overlay, name)
        return self.find(view.record, name)

    def _of_instance(self, value: Instance, name: str) -> object:
        machine = self.machine
        if name in value.slots:
            if value is machine.record and machine.reads is not None:
                machine.reads.append(name)
            return self._in_service(value, name, machine.read(value, name))
        if isinstance(value, Carrier):
            return self._of_carrier(value, name)
        if value.cls is None:
            return MISSING
        if name == "__class__":
            return value.cls
        if name == "__dict__":
            return machine.box("dict", dict(value.slots))
        owner = self._owner(value.cls, name)
        if owner is not None:
            return self._bind(machine.read(owner, name), value, value.cls)
        fallback = self._owner(value.cls, "__getattr__")
        if fallback is None or name.startswith("__"):
            return MISSING
        try:
            return machine.invoke(machine.read(fallback, "__getattr__"), [value, name], {})
        except Raised as raised:
            if raised.kind != "AttributeError":
                raise
            return MISSING

    def _in_service(self, value: Instance, name: str, held: object) -> object:
        """What a running server has in a slot that is empty until it starts: nobody knows."""
        module = value.cls.module.name if value.cls is not None else ""
        if held is None and self.machine.in_service and module in self.published:
            return self.machine.unknown(f"{name} of {value.label}, set while the server starts")
        return held

    def _of_carrier(self, value: Carrier, name: str) -> object:
        owner = self._owner(value.cls, name) if value.cls is not None else None
        if owner is not None and value.cls is not None:
            return self._bind(self.machine.read(owner, name), value, value.cls)
        found = self.machine.carried(value, name)
        if not isinstance(found, Carrier) or value.methods is None:
            return found
        method = self._method(value.methods, name)
        return found if method is None else self._bind(method, value, value.methods)

    def _method(self, cls: Class, name: str) -> Function | None:
        """Return the method that an object runs that is of this class or one below it."""
        owner = self._owner(cls, name)
        held = self.machine.read(owner, name) if owner is not None else None
        if not isinstance(held, Function) or self.machine.is_overridden(cls.name, name):
            return None
        return held

    @staticmethod
    def _owner(cls: Class, name: str) -> Class | None:
        return next((c for c in cls.mro() if name in c.slots), None)

    def _bind(self, found: object, receiver: object, cls: Class) -> object:
        if not isinstance(found, Function):
            return found
        if found.kind == "static":
            return found
        if found.kind == "class":
            return Bound(cls, found)
        if found.kind == "property":
            return self.machine.invoke(found, [receiver], {})
        return Bound(receiver, found)

    def _of_class(self, cls: Class, name: str) -> object:
        if name in ("__name__", "__qualname__"):
            return cls.name
        if name == "__members__":
            return self.machine.box("dict", {n: cls.slots[n] for n in cls.fields})
        if name == "__mro__":
            return tuple(cls.mro())
        owner = self._owner(cls, name)
        if owner is None:
            return self.machine.unknown(f"{cls.name}.{name}")
        found = self.machine.read(owner, name)
        if isinstance(found, Function) and found.kind == "class":
            return Bound(cls, found)
        return found

    def _of_member(self, member: Member, name: str) -> object:
        if name in ("name", "_name_"):
            return member.name
        if name in ("value", "_value_"):
            return member.value
        owner = self._owner(member.cls, name)
        if owner is not None:
            return self._bind(self.machine.read(owner, name), member, member.cls)
        method = self.method(member.value, name)
        return method if method is not None else self.machine.unknown(f"{member.cls.name}.{name}")

    def write(self, target: object, name: str, value: object) -> None:
        """Assign ``target.name``."""
        machine = self.machine
        if isinstance(target, Instance):
            if target is machine.record:
                machine.set_field(name, value, raw=True)
                if name in self.stashes and isinstance(value, Box):
                    machine.stash = value
                    machine.declare_items(value)
            else:
                machine.heap.store(target, name, value)
        elif isinstance(target, Class | Module):
            machine.heap.store(target, name, value)
        elif isinstance(target, View):
            raise Raised("AttributeError", f"{name} of a read-only view")
        elif isinstance(target, Choice | Unknown | External | Box):
            machine.unknown(*reasons_of(target))
