"""Python's built-in functions on values that may not be known."""

from __future__ import annotations

import builtins
from collections.abc import Callable

from specmap.scan.launch.comparing import truth_of
from specmap.scan.launch.machine import Machine
from specmap.scan.launch.objects import Objects
from specmap.scan.launch.typetests import is_data
from specmap.scan.launch.values import (
    Box,
    Choice,
    Either,
    External,
    Instance,
    Member,
    Native,
    Raised,
    Unknown,
    View,
    is_known,
    merged,
    reasons_of,
)

_NAMES = [
    "len",
    "min",
    "max",
    "sum",
    "sorted",
    "any",
    "all",
    "int",
    "float",
    "str",
    "bool",
    "list",
    "tuple",
    "dict",
    "set",
    "frozenset",
    "range",
    "round",
    "abs",
    "isinstance",
    "issubclass",
    "hasattr",
    "getattr",
    "setattr",
    "type",
    "zip",
    "enumerate",
    "reversed",
    "map",
    "filter",
    "print",
    "repr",
    "callable",
    "iter",
    "next",
    "divmod",
    "super",
    "id",
]


class Builtins(Objects):
    """The built-in names of one machine. ``attribute_or`` finds an attribute or a default."""

    def __init__(
        self,
        machine: Machine,
        attribute_or: Callable[[object, str], object],
        missing: object,
        absent: Callable[[object, str], object],
    ) -> None:
        super().__init__(machine, attribute_or, missing, absent)
        special = {
            "__getitem__": self.item,
            "__setitem__": self.set_item,
            "__iter__": self.items,
            "__each__": self.each,
        }
        self._natives = {
            **{name: Native(name, getattr(self, f"_{name}")) for name in _NAMES},
            **{
                name: Native(name, lambda p, k, call=call: call(*p))  # type: ignore[misc]
                for name, call in special.items()
            },
        }

    def has(self, name: str) -> bool:
        """Whether Python has a built-in of this name."""
        return name in self._natives or hasattr(builtins, name)

    def find(self, name: str) -> object:
        """Return a built-in by name."""
        if name in self._natives:
            return self._natives[name]
        if hasattr(builtins, name):
            return External(f"builtins.{name}")
        return self.machine.unknown(f"the name {name}")

    def _len(self, p: list[object], k: object) -> object:
        raw = p[0].slots.get("") if isinstance(p[0], Box) else p[0]
        if isinstance(raw, Choice):
            return self.machine.lift(len, raw)
        items = self._known_items(p[0])
        return len(items) if isinstance(items, tuple) else items

    def _extreme(
        self, call: Callable[..., object], p: list[object], k: dict[str, object]
    ) -> object:
        raw = p[0].slots.get("") if isinstance(p[0], Box) and len(p) == 1 else None
        if isinstance(raw, Choice) and not k:
            return self.machine.lift(call, raw)
        items = self._known_items(p[0]) if len(p) == 1 else tuple(p)
        if isinstance(items, Unknown) or "key" in k:
            return self.machine.unknown(*reasons_of(items))
        if not items and "default" in k:
            return k["default"]
        return self.machine.lift(lambda *all_: call(all_), *items)

    def _min(self, p: list[object], k: dict[str, object]) -> object:
        return self._extreme(min, p, k)

    def _max(self, p: list[object], k: dict[str, object]) -> object:
        return self._extreme(max, p, k)

    def _sum(self, p: list[object], k: object) -> object:
        items = self._known_items(p[0])
        if isinstance(items, Unknown):
            return items
        return self.machine.lift(lambda *all_: sum(all_), *items)

    def _sorted(self, p: list[object], k: dict[str, object]) -> object:
        items = self._known_items(p[0])
        if isinstance(items, Unknown) or not is_known(items) or "key" in k:
            return self.machine.box("list", Unknown(reasons_of(items) or ("a sorted list",)))
        reverse = bool(k.get("reverse", False))
        made = self.machine.guarded(lambda i: tuple(sorted(i, reverse=reverse)), items)
        return self.machine.box("list", made)

    def _any(self, p: list[object], k: object) -> object:
        return self._quantified(p[0], True)

    def _all(self, p: list[object], k: object) -> object:
        return self._quantified(p[0], False)

    def _quantified(self, value: object, decisive: bool) -> object:
        items = self._known_items(value)
        if isinstance(items, Unknown):
            return items
        truths = [truth_of(self.machine, item) for item in items]
        if decisive in truths:
            return decisive
        unsure = [t.reasons for t in truths if isinstance(t, Unknown)]
        return Unknown(merged(*unsure)) if unsure else not decisive

    def _number(self, call: Callable[..., object], p: list[object]) -> object:
        operands = [o.value if isinstance(o, Member) else o for o in p]
        if any(isinstance(o, Box | Instance | External | View) for o in operands):
            return self.machine.unknown("a number made from an object")
        return self.machine.lift(call, *operands)

    def _int(self, p: list[object], k: object) -> object:
        return self._number(int, p)

    def _float(self, p: list[object], k: object) -> object:
        return self._number(float, p)

    def _round(self, p: list[object], k: object) -> object:
        return self._number(round, p)

    def _abs(self, p: list[object], k: object) -> object:
        return self._number(abs, p)

    def _divmod(self, p: list[object], k: object) -> object:
        return self._number(divmod, p)

    def _text(self, call: Callable[..., object], value: object) -> object:
        if isinstance(value, Member):
            return value.value if isinstance(value.value, str) else f"{value.cls.name}.{value.name}"
        if isinstance(value, Box):
            content = self.machine.content(value)
            if not is_known(content) or not is_data(content):
                return self.machine.unknown(*(reasons_of(content) or ("text of a container",)))
            plain = list(content) if isinstance(content, tuple) else content
            return call(plain)
        if isinstance(value, Choice | Unknown) or is_data(value):
            return self.machine.lift(call, value)
        return self.machine.unknown("text of an object")

    def _str(self, p: list[object], k: object) -> object:
        return self._text(str, p[0]) if p else ""

    def _repr(self, p: list[object], k: object) -> object:
        return self._text(repr, p[0])

    def _bool(self, p: list[object], k: object) -> object:
        return truth_of(self.machine, p[0]) if p else False

    def _range(self, p: list[object], k: object) -> object:
        made = self.machine.lift(lambda *n: tuple(range(*n)), *p)
        return made if isinstance(made, tuple) else Unknown(reasons_of(made))

    def _list(self, p: list[object], k: object) -> object:
        items = self.each(p[0]) if p else ()
        return self.machine.box(
            "list", items if isinstance(items, tuple) else Unknown(reasons_of(items))
        )

    def _tuple(self, p: list[object], k: object) -> object:
        return self._known_items(p[0]) if p else ()

    def _set(self, p: list[object], k: object) -> object:
        items = self._known_items(p[0]) if p else ()
        if isinstance(items, tuple) and is_known(items):
            return self.machine.box("set", frozenset(items))
        return self.machine.box("set", Unknown(reasons_of(items)))

    def _frozenset(self, p: list[object], k: object) -> object:
        items = self._known_items(p[0]) if p else ()
        if isinstance(items, tuple) and is_known(items):
            return frozenset(items)
        return Unknown(reasons_of(items))

    def _dict(self, p: list[object], k: dict[str, object]) -> object:
        if not p:
            return self.machine.box("dict", dict(k))
        if isinstance(p[0], Either):
            copies = [self._dict([option], k) for option in p[0].values if option is not None]
            return self.machine.heap.join_values(copies, p[0].reasons)
        content = self.machine.content(p[0]) if isinstance(p[0], Box) else p[0]
        if isinstance(content, dict):
            copied = self.machine.box("dict", {**content, **k})
            if isinstance(p[0], Box):
                copied.sites = dict(p[0].sites)
            return copied
        if isinstance(content, tuple) and all(
            isinstance(i, tuple) and len(i) == 2 for i in content
        ):
            pairs = [i for i in content if isinstance(i, tuple)]
            return self.machine.box("dict", {**{i[0]: i[1] for i in pairs}, **k})
        return self.machine.box("dict", Unknown(reasons_of(content) or ("a dict",)))

    def _zip(self, p: list[object], k: object) -> object:
        columns = [self._known_items(c) for c in p]
        known = [c for c in columns if isinstance(c, tuple)]
        if len(known) < len(columns):
            return Unknown(merged(*map(reasons_of, columns)))
        return tuple(zip(*known, strict=False))

    def _enumerate(self, p: list[object], k: object) -> object:
        items = self._known_items(p[0])
        return tuple(enumerate(items)) if isinstance(items, tuple) else items

    def _reversed(self, p: list[object], k: object) -> object:
        items = self._known_items(p[0])
        return tuple(reversed(items)) if isinstance(items, tuple) else items

    def _map(self, p: list[object], k: object) -> object:
        items = self._known_items(p[1]) if len(p) == 2 else Unknown(("map()",))
        if isinstance(items, Unknown):
            return items
        return tuple(self.machine.invoke(p[0], [item], {}) for item in items)

    def _filter(self, p: list[object], k: object) -> object:
        items = self._known_items(p[1])
        if isinstance(items, Unknown):
            return items
        truths = [
            truth_of(self.machine, item if p[0] is None else self.machine.invoke(p[0], [item], {}))
            for item in items
        ]
        unsure = [t.reasons for t in truths if isinstance(t, Unknown)]
        if unsure:
            return Unknown(merged(*unsure))
        return tuple(item for item, truth in zip(items, truths, strict=True) if truth)

    def _iter(self, p: list[object], k: object) -> object:
        return self.items(p[0])

    def _next(self, p: list[object], k: object) -> object:
        items = self._known_items(p[0])
        if isinstance(items, Unknown):
            return self.machine.unknown(*items.reasons)
        if items:
            return items[0]
        if len(p) > 1:
            return p[1]
        raise Raised("StopIteration", "")

    def _print(self, p: list[object], k: object) -> None:
        return None

    def _id(self, p: list[object], k: object) -> object:
        return self.machine.unknown("id()")
