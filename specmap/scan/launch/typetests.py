"""Tests of a type."""

from __future__ import annotations

from dataclasses import dataclass

from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import (
    Box,
    Carrier,
    Choice,
    Class,
    Either,
    External,
    Instance,
    Member,
    Module,
    Native,
    Unknown,
    View,
    merged,
    reasons_of,
)

_TYPES = {"int": int, "str": str, "float": float, "bool": bool, "tuple": tuple, "bytes": bytes}
_BOXES = {"list": "list", "dict": "dict", "set": "set"}


@dataclass(frozen=True, slots=True)
class TypeNames:
    """Names that tests of a type need: the views, and the kind of a configuration."""

    views: frozenset[str]
    config_kind: str


def is_instance(machine: Machine, value: object, kind: object, names: TypeNames) -> object:
    """Return whether a value is of a type, or unknown."""
    if isinstance(kind, Box):
        kind = machine.content(kind)
    if isinstance(value, Choice | Either):
        results = [is_instance(machine, v, kind, names) for v in value.values]
        return machine.heap.join_values(results, value.reasons)
    if isinstance(kind, tuple):
        results = [is_instance(machine, value, one, names) for one in kind]
        if True in results:
            return True
        unsure = [reasons_of(r) for r in results if r is not False]
        return Unknown(merged(*unsure)) if unsure else False
    if type(value) is Unknown or isinstance(value, Carrier):
        return Unknown(reasons_of(value))
    if isinstance(kind, Class):
        if isinstance(value, View):
            return kind.name in names.views
        if isinstance(value, Instance | Member) and value.cls is not None:
            return kind in value.cls.mro()
        if isinstance(value, Instance):
            return _is_config(machine, value, kind, names)
        return machine.unknown(kind.name) if isinstance(value, External) else False
    if isinstance(kind, Native) and kind.name == "type":
        return isinstance(value, Class)
    if isinstance(kind, Native) and (kind.name in _TYPES or kind.name in _BOXES):
        if isinstance(value, Box):
            return value.kind == kind.name
        if isinstance(value, Member):
            return kind.name in value.cls.outside()
        if kind.name in _TYPES:
            return isinstance(value, _TYPES[kind.name])
        return False if not isinstance(value, External) else machine.unknown("isinstance()")
    if is_data(value) or isinstance(value, Module):
        return machine.unknown("isinstance()") if not isinstance(kind, External) else False
    return machine.unknown("isinstance()")


def _is_config(machine: Machine, value: Instance, kind: Class, names: TypeNames) -> object:
    """Whether a model's configuration is of a class that the tree defines for one model type."""
    own = value.slots.get(names.config_kind)
    if own is None or not any(names.config_kind in c.slots for c in kind.mro()):
        return machine.unknown(f"whether {value.label} is a {kind.name}")
    return own == machine.attribute(kind, names.config_kind)


def is_data(value: object) -> bool:
    """Whether a value is plain data, without objects of the program in it."""
    if isinstance(value, tuple | frozenset):
        return all(map(is_data, value))
    if isinstance(value, dict):
        return all(map(is_data, (*value, *value.values())))
    return value is None or isinstance(value, bool | int | float | str | bytes)
