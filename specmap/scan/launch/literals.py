"""Values that the source states outright: literals, and names of constants that are literals."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from specmap.scan.index import Tree
from specmap.scan.launch.unknown import Unknown, Value
from specmap.scan.module import ClassInfo, Module

_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
}
_CONTAINERS = ("list", "tuple", "set", "frozenset")
_DEPTH = 20


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a name is looked up: a module and, in a class body, the class."""

    module: Module
    owner: ClassInfo | None = None


class Literals:
    """Evaluates expressions of one tree; what is no literal is Unknown, with its source."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def value(self, node: ast.expr, module: Module, depth: int = _DEPTH) -> Value | Unknown:
        """Return the value of an expression at the top level of ``module``.

        Lists, tuples and sets become tuples; a set's elements are sorted.
        """
        found = self._value(node, _Place(module), depth)
        return Unknown(module.text(node)) if isinstance(found, Unknown) else found

    def _value(self, node: ast.expr, place: _Place, depth: int) -> Value | Unknown:
        unknown = Unknown("")
        if not depth:
            return unknown
        match node:
            case ast.Constant(value=str() | int() | float() | None as constant):
                return constant
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return self._items(items, place, depth)
            case ast.Set(elts=items):
                return _in_order(self._items(items, place, depth))
            case ast.Dict(keys=keys, values=values) if all(keys):
                names = self._items([key for key in keys if key], place, depth)
                inside = self._items(values, place, depth)
                if isinstance(names, Unknown) or isinstance(inside, Unknown):
                    return unknown
                pairs = zip(names, inside, strict=True)
                return MappingProxyType({str(name): value for name, value in pairs})
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._value(operand, place, depth - 1)
                return -number if isinstance(number, int | float) else unknown
            case ast.BinOp():
                return self._arithmetic(node, place, depth)
            case ast.Call(func=ast.Name(id=name), args=[one], keywords=[]) if name in _CONTAINERS:
                inner = self._value(one, place, depth - 1)
                if not isinstance(inner, tuple):
                    return unknown
                return _in_order(inner) if "set" in name else inner
            case ast.Subscript(slice=ast.Constant(value=int() as index)):
                held = self._value(node.value, place, depth - 1)
                within = isinstance(held, tuple) and -len(held) <= index < len(held)
                return held[index] if isinstance(held, tuple) and within else unknown
            case ast.Name() | ast.Attribute():
                return self._named(node, place, depth - 1)
        return unknown

    def _items(
        self, nodes: list[ast.expr], place: _Place, depth: int
    ) -> tuple[Value, ...] | Unknown:
        found: list[Value] = []
        for node in nodes:
            starred = isinstance(node, ast.Starred)
            inner = node.value if isinstance(node, ast.Starred) else node
            value = self._value(inner, place, depth - 1)
            if isinstance(value, Unknown):
                return value
            if starred and isinstance(value, tuple):
                found += value
            else:
                found.append(value)
        return tuple(found)

    def _arithmetic(self, node: ast.BinOp, place: _Place, depth: int) -> Value | Unknown:
        left = self._value(node.left, place, depth - 1)
        right = self._value(node.right, place, depth - 1)
        if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(node.op, ast.Add):
            return left + right
        if isinstance(left, int) and isinstance(right, int) and type(node.op) in _ARITHMETIC:
            return _ARITHMETIC[type(node.op)](left, right)
        return Unknown("")

    def _named(self, node: ast.Name | ast.Attribute, place: _Place, depth: int) -> Value | Unknown:
        module = place.module
        if isinstance(node, ast.Attribute):
            owner = self.class_of(node.value, module)
            held = owner.assigns.get(node.attr) if owner else None
            if owner is None or held is None:
                return Unknown("")
            return self._value(held, _Place(owner.module, owner), depth)
        if place.owner and node.id in place.owner.assigns:
            return self._value(place.owner.assigns[node.id], place, depth)
        if node.id in module.imports:
            source, original = module.imports[node.id]
            other = self.tree.module(source) if original else None
            if other is None or original is None:
                return Unknown("")
            return self._value(ast.Name(original), _Place(other), depth)
        values = module.assigns.get(node.id, [])
        if len(values) != 1 or node.id in _changed(module):
            return Unknown("")
        return self._value(values[0], _Place(module), depth)

    def class_of(self, node: ast.expr, module: Module, depth: int = _DEPTH) -> ClassInfo | None:
        """Return the class that a name stands for, followed through imports."""
        if not isinstance(node, ast.Name) or not depth:
            return None
        if node.id in module.classes:
            return module.classes[node.id]
        source, original = module.imports.get(node.id, ("", None))
        other = self.tree.module(source) if original else None
        if other is None or original is None:
            return None
        return self.class_of(ast.Name(original), other, depth - 1)


def _in_order(value: Value | Unknown) -> Value | Unknown:
    return tuple(sorted(value, key=str)) if isinstance(value, tuple) else value


def _changed(module: Module) -> frozenset[str]:
    """Return the names that the module's own top level changes in place (``X.add(...)``)."""
    names = set()
    for statement in module.tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
                    names.add(name)
                case ast.AugAssign(target=ast.Name(id=name)):
                    names.add(name)
    return frozenset(names)
