"""Truth tests and comparisons."""

from __future__ import annotations

import ast
import operator
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
    Native,
    Raised,
    Unknown,
    View,
    alternatives,
    is_known,
    merged,
    reasons_of,
    same,
)

_ORDER: dict[type[ast.cmpop], Callable[[object, object], object]] = {
    ast.Lt: operator.lt,  # type: ignore[dict-item]
    ast.LtE: operator.le,  # type: ignore[dict-item]
    ast.Gt: operator.gt,  # type: ignore[dict-item]
    ast.GtE: operator.ge,  # type: ignore[dict-item]
}


_PLAIN_BASES = {"ABC", "object"}


def truth_of(machine: Machine, value: object) -> bool | Unknown:
    """Return whether a value is true, or what would settle it."""
    if isinstance(value, Choice | Either):
        truths = {truth_of(machine, v) for v in value.values}
        known = [t for t in truths if isinstance(t, bool)]
        return known[0] if len(truths) == 1 and known else Unknown(value.reasons)
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Maybe):
        return Unknown(value.reasons)
    if isinstance(value, Box):
        return _truth_of_box(machine, value)
    if isinstance(value, External):
        return machine.unknown(value.name)
    if isinstance(value, Member):
        return bool(value.value) if "IntEnum" in value.cls.outside() else True
    if isinstance(value, Instance):
        return _truth_of_object(machine, value)
    if isinstance(value, Class | Function | Bound | Native | View):
        return True
    return bool(value)


def _truth_of_object(machine: Machine, value: Instance) -> bool | Unknown:
    """An object is true unless its class says otherwise, or it may be another object."""
    cls = value.cls
    made = not isinstance(value, Carrier) and cls is not None and set(cls.outside()) <= _PLAIN_BASES
    own = cls is not None and any(
        name in c.slots for c in cls.mro() for name in ("__bool__", "__len__")
    )
    if own or (value.open and not made):
        return machine.unknown(value.label or "truth of an object")
    return True


def _truth_of_box(machine: Machine, box: Box) -> bool | Unknown:
    raw = box.slots.get("")
    if isinstance(raw, Choice):
        return truth_of(machine, raw)
    content = machine.content(box)
    if isinstance(content, Unknown):
        return content
    if isinstance(content, dict):
        if any(not isinstance(item, Maybe) for item in content.values()):
            return True
        return Unknown(merged(*map(reasons_of, content.values()))) if content else False
    if isinstance(content, tuple) and content and all(isinstance(i, Maybe) for i in content):
        return Unknown(reasons_of(content))
    return bool(content)


def compare(machine: Machine, op: ast.cmpop, left: object, right: object) -> object:
    """Return the result of one comparison: a bool, or unknown.

    Raises:
        Raised: the operands cannot be ordered.
    """
    if isinstance(op, ast.Is | ast.IsNot):
        return _flip(_per_choice(machine, _identical, left, right), isinstance(op, ast.IsNot))
    if isinstance(op, ast.Eq | ast.NotEq):
        return _flip(_per_choice(machine, _equal, left, right), isinstance(op, ast.NotEq))
    if isinstance(op, ast.In | ast.NotIn):
        return _flip(_per_choice(machine, _contains, left, right), isinstance(op, ast.NotIn))
    left, right = _bare(machine, left), _bare(machine, right)
    if not (is_known(left) and is_known(right)):
        if isinstance(left, Choice | Unknown | Carrier) or isinstance(right, Choice | Unknown):
            return machine.lift(_ORDER[type(op)], left, right)
        return machine.unknown(*reasons_of(left), *reasons_of(right))
    if isinstance(left, Instance | External | View) or isinstance(
        right, Instance | External | View
    ):
        return machine.unknown("an order of objects")
    return machine.guarded(_ORDER[type(op)], left, right)


def _flip(value: object, negated: bool) -> object:
    return not value if negated and isinstance(value, bool) else value


def _per_choice(
    machine: Machine,
    test: Callable[[Machine, object, object], bool | Unknown],
    left: object,
    right: object,
) -> bool | Unknown:
    """Apply a test to all alternatives: a bool if all agree."""
    lefts = [_opened(value) for value in alternatives(left)]
    rights = [_opened(value) for value in alternatives(right)]
    results = [test(machine, a, b) for a in lefts for b in rights]
    unsure = [r.reasons for r in results if isinstance(r, Unknown)]
    if not unsure and len(set(results)) == 1:
        return results[0]
    return Unknown(merged(reasons_of(left), reasons_of(right), *unsure))


def _opened(value: object) -> object:
    """An object of the running server, or what may not be there, can be anything."""
    return Unknown(reasons_of(value)) if isinstance(value, Carrier | Maybe) else value


def _identical(machine: Machine, left: object, right: object) -> bool | Unknown:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return Unknown(merged(reasons_of(left), reasons_of(right)))
    if isinstance(left, External) and isinstance(right, External):
        return True if left.name == right.name else machine.unknown(left.name, right.name)
    if isinstance(left, External) or isinstance(right, External):
        if left is None or right is None:
            return False
        return machine.unknown("an object from outside the tree")
    return same(left, right)


def _bare(machine: Machine, value: object) -> object:
    """Return what a value is compared by."""
    if isinstance(value, Member) and {"IntEnum", "StrEnum", "str", "int"} & set(
        value.cls.outside()
    ):
        return value.value
    if isinstance(value, Box):
        return machine.content(value)
    return value


def _equal(machine: Machine, left: object, right: object) -> bool | Unknown:
    if left is right and not isinstance(left, Either | Box | tuple):
        return True  # read twice from one slot: one value, even where it is not known
    if isinstance(left, Member) != isinstance(right, Member) or isinstance(left, Box):
        left, right = _bare(machine, left), _bare(machine, right)
    elif isinstance(right, Box):
        right = machine.content(right)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return Unknown(merged(reasons_of(left), reasons_of(right)))
    if isinstance(left, External) or isinstance(right, External):
        plain = left if isinstance(right, External) else right
        return False if plain is None else _identical(machine, left, right)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return _equal_items(machine, left, right)
    if isinstance(left, Instance) and isinstance(right, Instance):
        return _equal_instances(machine, left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        if set(left) != set(right) or any(
            isinstance(v, Maybe) for v in (*left.values(), *right.values())
        ):
            unsure = merged(*map(reasons_of, (*left.values(), *right.values())))
            return Unknown(unsure) if unsure else False
        return _equal_items(machine, tuple(left.values()), tuple(right[k] for k in left))
    if isinstance(left, Member | Class | Function | Instance) or isinstance(right, Member | Class):
        return same(left, right)
    return bool(left == right)


def _equal_items(
    machine: Machine, left: tuple[object, ...], right: tuple[object, ...]
) -> bool | Unknown:
    if any(isinstance(item, Maybe) for item in (*left, *right)):
        return Unknown(merged(reasons_of(left), reasons_of(right)))
    if len(left) != len(right):
        return False
    results = [_per_choice(machine, _equal, a, b) for a, b in zip(left, right, strict=True)]
    if any(r is False for r in results):
        return False
    unsure = [r.reasons for r in results if isinstance(r, Unknown)]
    return Unknown(merged(*unsure)) if unsure else True


def _equal_instances(machine: Machine, left: Instance, right: Instance) -> bool | Unknown:
    if left is right:
        return True
    if left.cls is None or left.cls is not right.cls:
        return machine.unknown("two objects") if left.open or right.open else False
    if any("__eq__" in c.slots for c in left.cls.mro()):
        return machine.unknown("two objects")
    if "fields" not in left.cls.marks:
        return False
    pairs = [(left.slots.get(f), right.slots.get(f)) for f in left.cls.fields]
    return _equal_items(machine, tuple(a for a, _ in pairs), tuple(b for _, b in pairs))


def _contains(machine: Machine, item: object, container: object) -> bool | Unknown:
    content = machine.content(container) if isinstance(container, Box) else container
    if isinstance(content, External):
        held = machine.contains(content.name, item)
        return held if isinstance(held, bool | Unknown) else machine.unknown(content.name)
    if isinstance(content, Class):
        members = [content.slots[name] for name in content.fields]
        return any(same(item, m) or same(item, getattr(m, "value", None)) for m in members)
    if isinstance(content, Unknown | Instance | View):
        return machine.unknown(*reasons_of(content), *reasons_of(item))
    if isinstance(content, str):
        if isinstance(item, str):
            return item in content
        if isinstance(item, Unknown):
            return item
        raise Raised("TypeError", f"{item!r} in {content!r}")
    if isinstance(content, dict):
        if isinstance(item, Unknown):
            return item
        held = content.get(_bare(machine, item), content.get(item))
        if isinstance(held, Maybe):
            return Unknown(held.reasons)
        return item in content or _bare(machine, item) in content
    if isinstance(content, tuple | frozenset | range):
        return _among(machine, item, tuple(content))
    if content is None:
        raise Raised("TypeError", "argument of type 'NoneType' is not iterable")
    return machine.unknown("a membership test")


def _among(machine: Machine, item: object, items: tuple[object, ...]) -> bool | Unknown:
    unsure: list[tuple[str, ...]] = []
    for other in items:
        result = _per_choice(machine, _equal, item, other)
        if result is True:
            return True
        if isinstance(result, Unknown):
            unsure.append(result.reasons)
    return Unknown(merged(*unsure)) if unsure else False
