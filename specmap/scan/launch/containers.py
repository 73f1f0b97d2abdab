"""Elements of lists, sets, dicts and enumerations."""

from __future__ import annotations

from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import (
    Box,
    Choice,
    Class,
    Either,
    External,
    Instance,
    Maybe,
    Raised,
    Unknown,
    is_known,
    merged,
    reasons_of,
)


class Containers:
    """Reads and writes elements, on one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def items(self, value: object) -> object:
        """Return the elements of an iterable as a tuple, or unknown."""
        found = self.each(value)
        if isinstance(found, tuple) and any(isinstance(item, Maybe) for item in found):
            return Unknown(reasons_of(found))
        return found

    def each(self, value: object) -> object:
        """As :meth:`items`; elements that are there on some ways only are marked so."""
        raw = value.slots.get("") if isinstance(value, Box) else value
        if isinstance(raw, Choice) and all(isinstance(v, tuple) for v in raw.values):
            lists = [v for v in raw.values if isinstance(v, tuple)]
            return self.machine.heap.spread(lists, raw.reasons)
        content = self.machine.content(value) if isinstance(value, Box) else value
        if isinstance(content, Class) and "enum" in content.marks:
            return tuple(content.slots[name] for name in content.fields)
        if isinstance(content, dict):
            unsure = [v.reasons for v in content.values() if isinstance(v, Maybe)]
            return Unknown(merged(*unsure)) if unsure else tuple(content)
        if isinstance(content, frozenset):
            return tuple(sorted(content, key=repr))
        if isinstance(content, tuple | range | str):
            return tuple(content)
        if isinstance(content, Either):
            return self._any_of(content)
        if content is None or isinstance(content, int | float):
            raise Raised("TypeError", f"{type(content).__name__!r} object is not iterable")
        return self.machine.unknown(*(reasons_of(content) or ("what is iterated over",)))

    def _any_of(self, value: Either) -> object:
        """Return the elements of one of several lists: each is there maybe."""
        found: list[object] = []
        for option in value.values:
            items = () if option is None else self.each(option)
            if not isinstance(items, tuple):
                return Unknown(merged(value.reasons, reasons_of(items)))
            found += [i if isinstance(i, Maybe) else Maybe(i, value.reasons) for i in items]
        return tuple(found)

    def item(self, container: object, key: object) -> object:
        """Return ``container[key]``.

        Raises:
            Raised: there is no such element.
        """
        machine = self.machine
        if isinstance(container, Choice):
            return machine.lift(lambda c, k: c[k], container, key)
        content = machine.content(container) if isinstance(container, Box) else container
        if isinstance(content, Class):
            return self._of_enum(content, key)
        if isinstance(content, Instance):
            owner = next((c for c in _mro(content) if "__getitem__" in c.slots), None)
            if owner is not None:
                return machine.invoke(machine.read(owner, "__getitem__"), [content, key], {})
            return machine.unknown(content.label)
        if isinstance(content, dict):
            return self._of_dict(content, key)
        if isinstance(content, tuple | str | range):
            if isinstance(key, Choice | Unknown):
                return machine.unknown(*reasons_of(key), *reasons_of(content))
            if isinstance(content, tuple) and any(isinstance(i, Maybe) for i in content):
                return machine.unknown(*reasons_of(content))
            found = machine.guarded(lambda c, k: c[k], content, key)
            if isinstance(container, Box) and isinstance(found, tuple) and isinstance(key, slice):
                return machine.box("list", found)
            return found
        if content is None:
            raise Raised("TypeError", "'NoneType' object is not subscriptable")
        return machine.unknown(*(reasons_of(content) or ("an element",)))

    def _of_dict(self, content: dict[object, object], key: object) -> object:
        if isinstance(key, Unknown):
            return self.machine.unknown(*key.reasons)
        if isinstance(key, Choice):
            return self.machine.lift(lambda k: self._of_dict(content, k), key)
        if key not in content:
            raise Raised("KeyError", repr(key))
        held = content[key]
        if isinstance(held, Maybe):
            self.machine.hazards += 1
            return held.value
        return held

    def _of_enum(self, cls: Class, key: object) -> object:
        if isinstance(key, Choice | Unknown):
            return self.machine.lift(lambda k: self._of_enum(cls, k), key)
        if "enum" not in cls.marks or not isinstance(key, str):
            return self.machine.unknown(f"{cls.name}[...]")
        if key not in cls.fields:
            raise Raised("KeyError", repr(key))
        return cls.slots[key]

    def set_item(self, container: object, key: object, value: object) -> None:
        """Assign ``container[key]``."""
        machine = self.machine
        if isinstance(container, External):
            machine.invoke(External(f"{container.name}.__setitem__"), [key, value], {})
        if not isinstance(container, Box):
            return
        content = machine.content(container)
        if isinstance(content, dict) and is_known(key):
            machine.heap.store(container, "", {**content, key: value})
            container.sites[key] = machine.here()
        elif (
            isinstance(content, tuple)
            and isinstance(key, int)
            and -len(content) <= key < len(content)
        ):
            at = key % len(content)
            machine.heap.store(container, "", (*content[:at], value, *content[at + 1 :]))
        else:
            unsure = merged(reasons_of(content), reasons_of(key)) or ("an assigned element",)
            machine.heap.store(container, "", Unknown(unsure))

    def _known_items(self, value: object) -> tuple[object, ...] | Unknown:
        items = self.items(value)
        return items if isinstance(items, tuple) else Unknown(reasons_of(items))


def _mro(value: Instance) -> list[Class]:
    return value.cls.mro() if value.cls is not None else []
