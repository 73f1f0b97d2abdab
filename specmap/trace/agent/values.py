"""Reading the values behind a piece of source again, without running anything.

Only local and global names, instance attributes and items of built-in containers are read:
no property, no method, no item of a tensor. What may be kept is a number, None, a short string,
an enum's name or a length; never a tensor, a prompt or a token.
"""

from __future__ import annotations

import ast
import enum
import math
import types
from collections.abc import Callable
from typing import Any

Scope = dict[str, Any]
Getter = Callable[[Scope, Scope], Any]

UNREADABLE = object()
_CONTAINERS = (list, tuple, dict, set, frozenset)
_LONGEST_TEXT = 60
_plain_attributes: dict[tuple[type, str], bool] = {}


def getter(node: ast.expr) -> Getter | None:
    """Return what reads an expression from (locals, globals); None when only a call could."""
    if isinstance(node, ast.Name):
        name = node.id
        return lambda here, there: here.get(name, there.get(name, UNREADABLE))
    if isinstance(node, ast.Attribute):
        return _attribute_getter(getter(node.value), node.attr)
    if isinstance(node, ast.Subscript):
        return _item_getter(getter(node.value), _index(node.slice))
    return None


def _attribute_getter(base: Getter | None, name: str) -> Getter | None:
    return base and (lambda here, there: attribute_of(base(here, there), name))


def _item_getter(base: Getter | None, index: Getter | None) -> Getter | None:
    if base is None or index is None:
        return None
    return lambda here, there: _item(base(here, there), index(here, there))


def operands(node: ast.expr) -> list[tuple[str, Getter]]:
    """Return (source text, getter) of the parts of an expression that can be read again."""
    found: dict[str, Getter] = {}
    _collect(node, found)
    return list(found.items())


def _collect(node: ast.AST, found: dict[str, Getter]) -> None:
    if isinstance(node, ast.expr):
        read = getter(node)
        if read is not None:
            found.setdefault(ast.unparse(node), read)
            return
    if _is_type_test(node):
        assert isinstance(node, ast.Call)
        tested = getter(node.args[0])
        if tested is not None:
            found.setdefault(f"type({ast.unparse(node.args[0])})", _class_getter(tested))
        return
    if isinstance(node, ast.Call):
        children: list[ast.AST] = [*node.args, *(one.value for one in node.keywords)]
        if isinstance(node.func, ast.Attribute):
            children.insert(0, node.func.value)
    elif isinstance(node, (ast.Lambda, ast.comprehension)):
        return
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        _collect(child, found)


def _is_type_test(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and len(node.args) == 2
    )


def _class_getter(tested: Getter) -> Getter:
    """Return what reads the name of a value's class."""

    def read(here: Scope, there: Scope) -> Any:
        value = tested(here, there)
        return value if value is UNREADABLE else type(value).__name__

    return read


def attribute_of(thing: Any, name: str) -> Any:
    """Return an attribute that is data, not what a property or a method would give."""
    if thing is UNREADABLE or thing is None or isinstance(thing, type):
        return UNREADABLE
    if isinstance(thing, types.ModuleType):
        return vars(thing).get(name, UNREADABLE)
    kind = type(thing)
    plain = _plain_attributes.get((kind, name))
    if plain is None:
        plain = _plain_attributes[kind, name] = _is_plain(kind, name)
    if not plain:
        return UNREADABLE
    try:
        return object.__getattribute__(thing, name)
    except AttributeError:
        return UNREADABLE


def _is_plain(kind: type, name: str) -> bool:
    """Return whether reading this attribute runs no code of the class."""
    for one in kind.__mro__:
        if name in vars(one):
            value = vars(one)[name]
            slot = isinstance(value, types.MemberDescriptorType)
            return slot or not hasattr(type(value), "__get__")
    return True


def _index(node: ast.expr) -> Getter | None:
    if isinstance(node, ast.Constant):
        value = node.value
        return lambda here, there: value
    return getter(node)


def _item(thing: Any, index: Any) -> Any:
    if type(thing) not in (list, tuple, dict) or not isinstance(index, (int, str)):
        return UNREADABLE
    try:
        return thing[index]
    except (LookupError, TypeError):
        return UNREADABLE


def described(text: str, value: Any) -> tuple[str, Any] | None:
    """Return what to keep of an operand: (its text or ``len(text)``, a scalar), or None."""
    if value is None or type(value) in (bool, int):
        return text, value
    if type(value) is float:
        return (text, value) if math.isfinite(value) else None
    if isinstance(value, enum.Enum):
        return text, value.name
    if isinstance(value, str):
        return (text, value) if len(value) <= _LONGEST_TEXT else None
    if type(value) in _CONTAINERS:
        return f"len({text})", len(value)
    return None
