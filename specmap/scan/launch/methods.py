"""Methods of built-in values: text, numbers, lists, sets and dicts."""

from __future__ import annotations

from collections.abc import Callable

from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import (
    Box,
    Choice,
    Maybe,
    Native,
    Unknown,
    either,
    is_known,
    merged,
    reasons_of,
    same,
)

_PURE = frozenset(
    {
        "upper", "lower", "strip", "lstrip", "rstrip", "startswith", "endswith", "split", "rsplit",
        "replace", "partition", "rpartition", "join", "title", "capitalize", "isdigit", "find",
        "count", "index", "removeprefix", "removesuffix", "splitlines", "isalnum", "format",
        "bit_length", "is_integer", "union", "intersection", "difference", "issubset",
        "issuperset", "isdisjoint", "casefold", "isalpha", "isnumeric", "encode", "decode",
    }
)  # fmt: skip


class Methods:
    """The methods of built-in values on one machine."""

    def __init__(self, machine: Machine, items_of: Callable[[object], object]) -> None:
        self.machine = machine
        self.items_of = items_of
        self._boxes: dict[tuple[str, str], Callable[..., object]] = {
            ("list", "append"): self._append,
            ("list", "extend"): self._extend,
            ("list", "insert"): self._insert,
            ("list", "sort"): self._sort,
            ("list", "copy"): self._copy,
            ("set", "add"): self._add,
            ("set", "update"): self._update_set,
            ("set", "discard"): self._discard,
            ("set", "copy"): self._copy,
            ("dict", "get"): self._get,
            ("dict", "pop"): self._pop,
            ("dict", "setdefault"): self._setdefault,
            ("dict", "update"): self._update,
            ("dict", "items"): self._items,
            ("dict", "keys"): self._keys,
            ("dict", "values"): self._values,
            ("dict", "copy"): self._copy,
        }

    def find(self, value: object, name: str) -> Native | None:
        """Return the method of a built-in value, or None."""
        if isinstance(value, Box):
            method = self._boxes.get((value.kind, name))
            if method is not None:
                return Native(name, lambda p, k: method(value, *p, **k))
            if name in _PURE and value.kind != "dict":
                return Native(name, lambda p, k: self._pure(value, name, p, k))
            return Native(name, lambda p, k: self._other(value, name, p))
        if isinstance(value, str | int | float | bytes | frozenset | tuple) and name in _PURE:
            if hasattr(value, name):
                return Native(name, lambda p, k: self._pure(value, name, p, k))
        return None

    def _other(self, box: Box, name: str, positional: list[object]) -> Unknown:
        reason = f".{name}() of a {box.kind}"
        self.machine.spoil([box], reason)
        return self.machine.unknown(reason)

    def _pure(
        self, value: object, name: str, positional: list[object], keywords: dict[str, object]
    ) -> object:
        machine = self.machine
        receiver = machine.content(value) if isinstance(value, Box) else value
        given = [*positional, *keywords.values()]
        operands = [machine.content(p) if isinstance(p, Box) else p for p in given]
        if name == "union" and not isinstance(receiver, Unknown):
            receiver = frozenset(receiver) if isinstance(receiver, tuple) else receiver
            operands = [tuple(o) if isinstance(o, range) else o for o in operands]
        if not all(is_known(o) for o in (receiver, *operands)) and isinstance(receiver, tuple):
            return machine.unknown(*reasons_of(receiver), *reasons_of(tuple(operands)))
        plain = len(positional)

        def called(one: object, *rest: object) -> object:
            named = dict(zip(keywords, rest[plain:], strict=True))
            return getattr(one, name)(*rest[:plain], **named)

        return self._wrap(machine.lift(called, receiver, *operands))

    def _wrap(self, result: object) -> object:
        if isinstance(result, list):
            return self.machine.box("list", tuple(result))
        if isinstance(result, frozenset | set):
            return self.machine.box("set", frozenset(result))
        return result

    # Lists

    def _set(self, box: Box, content: object) -> None:
        self.machine.heap.store(box, "", content)

    def _append(self, box: Box, value: object) -> None:
        content = self.machine.content(box)
        self._set(box, (*content, value) if isinstance(content, tuple) else content)
        if box is self.machine.stash:
            self.machine.declare_items((value,))

    def _extend(self, box: Box, more: object) -> None:
        content, items = self.machine.content(box), self.items_of(more)
        if isinstance(content, tuple) and isinstance(items, tuple):
            self._set(box, (*content, *items))
        else:
            self._set(box, Unknown(merged(reasons_of(content), reasons_of(items))))
        if box is self.machine.stash:
            self.machine.declare_items(items)

    def _insert(self, box: Box, index: object, value: object) -> None:
        content = self.machine.content(box)
        if isinstance(content, tuple) and isinstance(index, int):
            items = list(content)
            items.insert(index, value)
            self._set(box, tuple(items))
        else:
            self._set(box, Unknown(merged(reasons_of(content), reasons_of(index))))

    def _sort(self, box: Box, key: object = None, reverse: object = False) -> None:
        content = self.machine.content(box)
        if isinstance(content, tuple) and is_known(content) and key is None:
            self._set(
                box,
                tuple(sorted(content, reverse=bool(reverse))),
            )
        else:
            self._set(box, Unknown(reasons_of(content) or ("a sorted list",)))

    def _copy(self, box: Box) -> Box:
        return self.machine.box(box.kind, box.slots.get("", {} if box.kind == "dict" else ()))

    # Sets

    def _add(self, box: Box, value: object) -> None:
        content = self.machine.content(box)
        content = frozenset(content) if isinstance(content, tuple) else content
        if isinstance(content, frozenset) and is_known(value):
            self._set(box, content | {value})
        else:
            self._set(box, Unknown(merged(reasons_of(content), reasons_of(value))))

    def _update_set(self, box: Box, more: object) -> None:
        content, items = self.machine.content(box), self.items_of(more)
        if isinstance(content, tuple | frozenset) and isinstance(items, tuple) and is_known(items):
            self._set(box, frozenset(content) | set(items))
        else:
            self._set(box, Unknown(merged(reasons_of(content), reasons_of(items))))

    def _discard(self, box: Box, value: object) -> None:
        content = self.machine.content(box)
        if isinstance(content, tuple | frozenset) and is_known(value):
            self._set(box, frozenset(content) - {value})
        else:
            self._set(box, Unknown(merged(reasons_of(content), reasons_of(value))))

    # Dicts

    def _get(self, box: Box, key: object, default: object = None) -> object:
        content = self.machine.content(box)
        if not isinstance(content, dict):
            return Unknown(reasons_of(content))

        def one(wanted: object) -> object:
            held = content.get(wanted, default)
            if isinstance(held, Maybe):
                return self.machine.heap.join_values([held.value, default], held.reasons)
            return held

        if isinstance(key, Unknown):
            return either([*map(_bare, content.values()), default], key.reasons)
        if isinstance(key, Choice):
            found = [one(option) for option in key.values]
            return self.machine.heap.join_values(found, key.reasons)
        return one(key)

    def _pop(self, box: Box, key: object = None, *default: object) -> object:
        content = self.machine.content(box)
        value = self._get(box, key, default[0] if default else None)
        if isinstance(content, dict) and is_known(key):
            self._set(box, {k: v for k, v in content.items() if not same(k, key)})
        else:
            self._set(box, Unknown(merged(reasons_of(content), reasons_of(key))))
        return value

    def _setdefault(self, box: Box, key: object, default: object = None) -> object:
        content = self.machine.content(box)
        if not isinstance(content, dict) or not is_known(key):
            self._set(box, Unknown(merged(reasons_of(content), reasons_of(key))))
            return Unknown(merged(reasons_of(content), reasons_of(key)))
        if key not in content:
            self._set(box, {**content, key: default})
            return default
        return self._get(box, key, default)

    def _update(self, box: Box, other: object = None, **more: object) -> None:
        content = self.machine.content(box)
        new = self.machine.content(other) if isinstance(other, Box) else other
        new = {} if new is None else new
        if isinstance(content, dict) and isinstance(new, dict):
            result = {**content, **more}
            for key, value in new.items():
                if isinstance(value, Maybe) and key in content:
                    pair = [value.value, content[key]]
                    value = self.machine.heap.join_values(pair, value.reasons)
                result[key] = value
            self._set(box, result)
        else:
            self._set(box, Unknown(merged(reasons_of(content), reasons_of(new))))

    def _entries(self, box: Box) -> dict[object, object] | Unknown:
        content = self.machine.content(box)
        if not isinstance(content, dict):
            return Unknown(reasons_of(content))
        unsure = [v.reasons for v in content.values() if isinstance(v, Maybe)]
        return Unknown(merged(*unsure)) if unsure else content

    def _items(self, box: Box) -> object:
        content = self._entries(box)
        return content if isinstance(content, Unknown) else tuple(content.items())

    def _keys(self, box: Box) -> object:
        content = self._entries(box)
        return content if isinstance(content, Unknown) else tuple(content)

    def _values(self, box: Box) -> object:
        content = self._entries(box)
        return content if isinstance(content, Unknown) else tuple(content.values())


def _bare(value: object) -> object:
    return value.value if isinstance(value, Maybe) else value
