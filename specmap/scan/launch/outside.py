"""The standard library and third-party names that argument code calls."""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Callable

from specmap.scan.launch.machine import Machine
from specmap.scan.launch.tables import Tables
from specmap.scan.launch.typetests import TypeNames, is_instance
from specmap.scan.launch.values import (
    ABSENT,
    Bound,
    Box,
    Class,
    External,
    Function,
    Instance,
    Maybe,
    Native,
    Raised,
    Unknown,
    View,
    alternatives,
    is_known,
    reasons_of,
)

Call = Callable[[list[object], dict[str, object]], object]


class Outside:
    """Answers for names that the tree does not define, on one machine."""

    def __init__(self, machine: Machine, tables: Tables, names: TypeNames) -> None:
        self.machine = machine
        self.tables = tables
        env = "os.environ"
        self._calls: dict[str, Call] = {
            "builtins.isinstance": lambda p, k: is_instance(machine, p[0], p[1], names),
            "builtins.object": lambda p, k: Instance(None, "object()"),
            "builtins.object.__getattribute__": lambda p, k: self._own(p),
            "builtins.object.__setattr__": lambda p, k: machine.assign_attribute(
                p[0], str(p[1]), p[2]
            ),
            "os.getenv": self._getenv,
            f"{env}.get": self._getenv,
            f"{env}.__setitem__": lambda p, k: self._setenv(p),
            f"{env}.setdefault": self._setdefault,
            f"{env}.pop": self._unsetenv,
            f"{env}.items": lambda p, k: self._environ_items(),
            "os.path.join": lambda p, k: machine.lift(posixpath.join, *p),
            "os.path.basename": lambda p, k: machine.lift(posixpath.basename, *p),
            "json.loads": self._loads,
            "copy.copy": lambda p, k: self._copy(p[0]),
            "copy.deepcopy": lambda p, k: self._copy(p[0]),
            "dataclasses.replace": self._replace,
            "dataclasses.is_dataclass": lambda p, k: self._is_dataclass(p[0]),
            "dataclasses.fields": lambda p, k: self._fields(p[0]),
            "functools.partial": self._partial,
            "functools.lru_cache": lambda p, k: self._transparent(p),
            "functools.cache": lambda p, k: self._transparent(p),
            "typing.cast": lambda p, k: p[1],
            "collections.OrderedDict": lambda p, k: machine.box("dict", {}),
            "re.match": lambda p, k: self._match(re.match, p),
            "re.fullmatch": lambda p, k: self._match(re.fullmatch, p),
            "re.search": lambda p, k: self._match(re.search, p),
            "math.gcd": lambda p, k: machine.lift(math.gcd, *p),
        }
        for name in ("ceil", "floor", "sqrt", "log2", "prod"):
            self._calls[f"math.{name}"] = self._math(name)

    def constant(self, name: str) -> object:
        """Return an attribute of a module outside the tree."""
        if name == "typing.TYPE_CHECKING":
            return False
        native = self.tables.replaced(name)
        if native is not None and name in self.tables.words.constants:
            return native.call([], {})
        return External(name)

    def call(self, name: str, positional: list[object], keywords: dict[str, object]) -> object:
        """Call something outside the tree.

        Raises:
            Raised: the call raises.
        """
        native = self.tables.replaced(name)
        if native is not None:
            return native.call(positional, keywords)
        known = self._calls.get(name)
        if known is not None:
            return known(positional, keywords)
        if name.endswith(("Error", "Exception", "Warning")):
            return External(name)
        self.machine.spoil([*positional, *keywords.values()], f"{name}()")
        return self.machine.unknown(f"{name}()")

    def contains(self, name: str, item: object) -> object:
        """Whether a container outside the tree holds something."""
        if name == "os.environ" and isinstance(item, str):
            value = self._variable(item)
            held = {one is not None for one in alternatives(value)}
            unsure = type(value) is Unknown or len(held) > 1
            return Unknown(reasons_of(value)) if unsure else held.pop()
        return self.machine.unknown(name)

    # Environment

    def _variable(self, name: object) -> object:
        if not isinstance(name, str):
            return self.machine.unknown(*reasons_of(name))
        slots = self.machine.environment.slots
        if name in slots:
            value = slots[name]
            if not isinstance(value, Maybe):
                return value
            return self.machine.heap.join_values([value.value, self._unset(name)], value.reasons)
        return self._unset(name)

    def _unset(self, name: str) -> Unknown | None:
        """Return what a variable holds that nobody set here."""
        return None if self.tables.inputs.rest_unset else Unknown((f"env {name}",))

    def _getenv(self, p: list[object], k: dict[str, object]) -> object:
        default = p[1] if len(p) > 1 else k.get("default")
        value = self._variable(p[0])
        if isinstance(value, Unknown) or not is_known(value):
            return self.machine.heap.join_values([value, default], reasons_of(value))
        return default if value is None else value

    def _setenv(self, p: list[object]) -> object:
        name, value = p[0], p[1]
        if isinstance(name, str):
            self.machine.heap.store(self.machine.environment, name, value)
        else:
            self.machine.spoil([], "an environment variable of unknown name")
        return None

    def _setdefault(self, p: list[object], k: dict[str, object]) -> object:
        value = self._variable(p[0])
        if value is None:
            self._setenv(p)
            return p[1]
        if not is_known(value):
            joined = self.machine.heap.join_values([value, p[1]], reasons_of(value))
            self._setenv([p[0], joined])
        return value

    def _unsetenv(self, p: list[object], k: dict[str, object]) -> object:
        value = self._variable(p[0])
        self._setenv([p[0], None])
        return value

    def _environ_items(self) -> object:
        slots = self.machine.environment.slots
        return tuple((key, value) for key, value in sorted(slots.items()) if value is not None)

    # Objects

    def _own(self, p: list[object]) -> object:
        target, name = p[0], p[1]
        if isinstance(target, View):
            return target.record
        if isinstance(target, Instance) and isinstance(name, str) and name in target.slots:
            return self.machine.read(target, name)
        return self.machine.unknown("object.__getattribute__()")

    def _copy(self, value: object) -> object:
        if isinstance(value, Box):
            return self.machine.box(value.kind, value.slots.get("", ABSENT))
        if isinstance(value, Instance):
            new = Instance(value.cls, value.label, open_=value.open)
            for slot, held in value.slots.items():
                self.machine.heap.store(new, slot, self._copy(held))
            return new
        return value

    def _replace(self, p: list[object], k: dict[str, object]) -> object:
        if not isinstance(p[0], Instance):
            return self.machine.unknown(*reasons_of(p[0]))
        new = Instance(p[0].cls, p[0].label, open_=p[0].open)
        for slot, held in p[0].slots.items():
            self.machine.heap.store(new, slot, k.get(slot, held))
        return new

    def _fields(self, value: object) -> object:
        cls = value if isinstance(value, Class) else getattr(value, "cls", None)
        if not isinstance(cls, Class):
            return self.machine.unknown(*reasons_of(value))
        found = []
        for name in dict.fromkeys(n for c in reversed(cls.mro()) for n in c.fields):
            entry = Instance(None, "field")
            entry.slots["name"] = name
            found.append(entry)
        return tuple(found)

    def _is_dataclass(self, value: object) -> object:
        cls = value if isinstance(value, Class) else getattr(value, "cls", None)
        return "fields" in cls.marks if isinstance(cls, Class) else self.machine.unknown("a class")

    def _match(self, search: Callable[..., object], p: list[object]) -> object:
        if not all(isinstance(o, str) for o in p):
            return self.machine.unknown(*(reasons_of(tuple(p)) or ("a text pattern",)))
        found = self.machine.guarded(search, *p)
        if not isinstance(found, re.Match):
            return found
        match = Instance(None, "a match")
        for name in ("group", "groups"):
            call = getattr(found, name)
            match.slots[name] = Native(name, lambda q, k, call=call: self.machine.guarded(call, *q))  # type: ignore[misc]
        return match

    def _partial(self, p: list[object], k: dict[str, object]) -> object:
        target, first = p[0], p[1:]

        def call(positional: list[object], keywords: dict[str, object]) -> object:
            return self.machine.invoke(target, [*first, *positional], {**k, **keywords})

        return Native("partial", call)

    def _transparent(self, p: list[object]) -> object:
        if p and isinstance(p[0], Function | Native | Bound):
            return p[0]
        return Native("cache", lambda positional, keywords: positional[0])

    def _math(self, name: str) -> Call:
        return lambda p, k: self.machine.lift(getattr(math, name), *p)

    def _loads(self, p: list[object], k: dict[str, object]) -> object:
        text = p[0]
        if not isinstance(text, str):
            return self.machine.unknown(*(reasons_of(text) or ("json.loads()",)))
        try:
            return self.tables.to_value(json.loads(text))
        except json.JSONDecodeError as error:
            raise Raised("JSONDecodeError", str(error)) from error
