"""Attributes of objects, classes and enum members."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from specmap.codemap.condition import AtomKind
from specmap.scan.bodies import set_attribute
from specmap.scan.module import ClassInfo, FunctionInfo, Module, last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.values import (
    NONE,
    Arms,
    ClassRef,
    Const,
    EnumMember,
    External,
    Frame,
    FunctionRef,
    Instance,
    Opaque,
    Origin,
    Scope,
    Super,
    Value,
    is_known,
    only,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver


# A record made at more places than this holds data; its annotation is all there is to say.
_FEW = 3
# Bases that bring no attribute of their own.
_BARE = frozenset({"ABC", "Generic", "Protocol", "object"})
# A name that more files hold is given what nobody can list.
_FEW_FILES = 20


class Members:
    """Looks an attribute up the way Python does, then falls back to annotations."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._known: dict[tuple[Instance, str], Arms] = {}
        self._given: dict[str, frozenset[Const] | None] = {}
        self._passed: dict[tuple[Instance, str, str], Arms] = {}

    def named(self, value: Instance, name: str, reader: Module | None = None) -> Arms:
        """Return an attribute of an object, by name.

        A record that is only declared holds what its ``reader``'s module puts into it.
        """
        found = self._known.get((value, name))
        if found is None:
            found = self._resolver.memo.get(
                self._known, (value, name), lambda: self._named(value, name), ()
            )
        if value.rule == "annotation" and self._differs_below(value.cls, name, found):
            return only(Opaque(name, AtomKind.STATE))
        if reader is None or value.origin is not None or not value.cls.decorated_as_record:
            return found
        if not any(isinstance(arm.value, Instance) for arm in found):
            return found
        return self._narrowed(value, name, reader) or found

    def _differs_below(self, cls: ClassInfo, name: str, found: Arms) -> bool:
        """Whether a declared object may be of a subclass that sets a constant anew."""
        if not found or not all(isinstance(arm.value, Const | EnumMember) for arm in found):
            return False
        below = self._resolver.types.below(cls)
        return any(name in c.stores or name in c.assigns or name in c.methods for c in below)

    def getters(self, receiver: Arms, name: str) -> list[FunctionRef]:
        """Return the properties that reading an attribute of these objects runs."""
        found = []
        for arm in receiver:
            if isinstance(arm.value, Instance):
                method = self._resolver.types.method(arm.value.cls, name)
                if method is not None and method.is_property:
                    found.append(FunctionRef(method, arm.value))
        return found

    def _named(self, value: Instance, name: str) -> Arms:
        types = self._resolver.types
        method = types.method(value.cls, name)
        if method is not None:
            if method.is_property:
                return self._getter(value, method)
            if method.is_classmethod:
                return only(FunctionRef(method, ClassRef(value.cls)))
            return self._resolver.decorated.bound(value, method)
        declared = self._declared(value, name)
        if declared and all(isinstance(a.value, External) or a.value == NONE for a in declared):
            return declared
        stored = self._resolver.attributes.value(value, name)
        if is_known(stored):
            return stored
        passed = self._field(value, name)
        opaque = [arm.value for arm in passed if isinstance(arm.value, Opaque)]
        if passed and (is_known(passed) and not opaque):
            return unite(stored, passed)
        if passed and all(value.plugin for value in opaque):
            return unite(stored, passed)
        declared = unite(passed, declared)
        if sum(isinstance(arm.value, Instance) for arm in declared) > 1:
            declared = self._narrowed(value, name) or declared
        if is_known(declared) or (declared and not stored):
            return unite(stored, declared) if is_known(declared) else declared
        return (
            stored
            or self._class_value(value.cls, name)
            or self._delegated(value, name)
            or self._from_subclasses(value, name)
        )

    def _from_subclasses(self, value: Instance, name: str) -> Arms:
        """An attribute that an abstract class reads and only its subclasses assign."""
        if value.origin is not None or not self._resolver.types.is_abstract(value.cls):
            return ()
        children = [c for c in self._resolver.types.concrete(value.cls) if c is not value.cls]
        return unite(*(self.named(self._resolver.any_instance(c), name) for c in children))

    def _getter(self, value: Instance, method: FunctionInfo) -> Arms:
        frame = self._resolver.attributes.frame(value, method)
        return self._resolver.calls.returned(frame)

    def _field(self, value: Instance, name: str) -> Arms:
        """The constructor argument of a class whose constructor is made from its fields."""
        if value.origin is None:
            return ()
        fields = [
            f
            for cls in reversed(self._resolver.types.mro(value.cls))
            if cls.decorated_as_record or value.cls.decorated_as_record
            for f in cls.fields
        ]
        if name not in fields:
            return ()
        call, scope = value.origin.call, value.origin.scope
        for keyword in call.keywords:
            if keyword.arg == name:
                return self._resolver.evaluate(keyword.value, scope)
        index = fields.index(name)
        if index < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args):
            return self._resolver.evaluate(call.args[index], scope)
        return ()

    def _narrowed(self, value: Instance, name: str, reader: Module | None = None) -> Arms:
        """What the constructor calls in the scope, or in one module, really pass for a field."""
        if not value.cls.decorated_as_record or value.origin is not None:
            return ()
        key = (value, name, reader.name if reader else "")
        return self._resolver.memo.get(
            self._passed, key, lambda: self._from_constructors(value, name, reader), ()
        )

    def _from_constructors(self, value: Instance, name: str, reader: Module | None) -> Arms:
        groups = []
        calls = self._resolver.constructor_calls(value.cls)
        if reader is not None:
            calls = [(call, function) for call, function in calls if function.module is reader]
        for call, function in calls if len(calls) <= _FEW else ():
            this = self._resolver.any_instance(function.owner) if function.owner else None
            frame = self._resolver.attributes.frame(this, function)
            noted = self._resolver.attributes.execution(frame).scope_of(call)
            if noted is not None:
                made = Instance(
                    value.cls, f"{function.id}:{call.lineno}", this, Origin(call, noted[0])
                )
                groups.append(self._field(made, name))
        return unite(*groups)

    def _declared(self, value: Instance, name: str) -> Arms:
        for cls in self._resolver.types.mro(value.cls):
            if name in cls.annotations:
                scope = Scope(Frame(None, cls.module))
                found = self._resolver.types.annotation(cls.annotations[name], scope)
                if found:
                    return found
        return ()

    def initial(self, value: Instance, name: str) -> Arms:
        """Return what an attribute holds before any method stores to it."""
        return self._field(value, name) or self._class_value(value.cls, name)

    def _class_value(self, cls: ClassInfo, name: str) -> Arms:
        for c in self._resolver.types.mro(cls):
            if name in c.assigns:
                return self._resolver.evaluate(c.assigns[name], Scope(Frame(None, c.module)))
        return ()

    def _delegated(self, value: Instance, name: str) -> Arms:
        target = self.delegate(value.cls)
        if target is None or name.startswith("_"):
            return ()
        method, node = target
        frame = self._resolver.attributes.frame(value, method)
        groups = []
        for arm in self._resolver.evaluate(node, Scope(frame)):
            if isinstance(arm.value, Instance) and arm.value.cls is not value.cls:
                groups.append(self.named(arm.value, name))
        return unite(*groups)

    def delegate(self, cls: ClassInfo) -> tuple[FunctionInfo, ast.expr] | None:
        """Return ``__getattr__`` and what it hands unknown attributes on to, if it does."""
        method = self._resolver.types.method(cls, "__getattr__")
        if method is None:
            return None
        for node in nodes_in(method.node):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
                call = node.value
                if getattr(call.func, "id", "") == "getattr" and call.args:
                    return method, call.args[0]
        return None

    def has(self, value: Value, name: str) -> bool | None:
        """Return whether an object has an attribute; ``None`` where more than its class tells."""
        if value == NONE:
            return False
        if not isinstance(value, Instance):
            return None
        types = self._resolver.types
        line = types.mro(value.cls)
        if types.method(value.cls, name) is not None or any(name in c.assigns for c in line):
            return True
        told = value.origin is not None and self.delegate(value.cls) is None
        if not told or any(name in c.stores or name in c.annotations for c in line):
            return None
        beyond = any(len(types.bases(c)) < len(_with_members(c)) for c in line)
        sets = any(last_name(c.func) == "setattr" for k in line
                   for m in k.methods.values() for c in m.facts.calls)  # fmt: skip
        outside = self._resolver.outside_functions(name) or self._resolver.patches(name)
        return None if beyond or sets or outside else False

    def given(self, name: str) -> frozenset[Const] | None:
        """Return the constants that any code gives an attribute of this name; None = others."""
        if name not in self._given:
            tree = self._resolver.tree
            files = tree.files_holding((name,), (f"{tree.package}/",))
            few = len(files) <= _FEW_FILES
            modules = [m for m in map(tree.module_at, files if few else ()) if m]
            values = [v for m in modules for node in nodes_in(m.tree) for v in _values(node, name)]
            constants = [v for v in values if isinstance(v, ast.Constant)]
            others = not few or len(constants) < len(values)
            self._given[name] = None if others else frozenset(Const(v.value) for v in constants)
        return self._given[name]

    def of_class(self, value: ClassRef, name: str) -> Arms:
        """Return an attribute of a class: member, method, nested class or value."""
        cls = value.cls
        nested = cls.module.classes.get(f"{cls.qualname}.{name}")
        if nested is not None:
            return only(ClassRef(nested))
        method = self._resolver.types.method(cls, name)
        if method is not None:
            return only(FunctionRef(method, value if method.is_classmethod else None))
        if self._resolver.types.is_enum(cls):
            if any(name in c.assigns for c in self._resolver.types.mro(cls)):
                return only(EnumMember(cls, name))
        found = self._class_value(cls, name)
        return found or self._declared(Instance(cls, "class"), name)

    def of_enum(self, value: EnumMember, name: str) -> Arms:
        """Return an attribute of an enum member."""
        method = self._resolver.types.method(value.cls, name)
        if method is None:
            if any(name in c.assigns for c in self._resolver.types.mro(value.cls)):
                return only(EnumMember(value.cls, name))
            return only(External("builtins.str()"))
        if method.is_property:
            frame = Frame(method, method.module, value)
            return self._resolver.calls.returned(frame)
        return only(FunctionRef(method, value))

    def of_super(self, value: Super, name: str) -> Arms:
        """Return a method found after the current class."""
        cls = getattr(value.self_value, "cls", None)
        if not isinstance(cls, ClassInfo):
            return ()
        method = self._resolver.types.method(cls, name, after=value.after)
        if method is None:
            return only(External(f"builtins.object.{name}"))
        if method.is_property and isinstance(value.self_value, Instance):
            return self._getter(value.self_value, method)
        if isinstance(value.self_value, Instance):
            return self._resolver.decorated.bound(value.self_value, method)
        return only(FunctionRef(method, value.self_value))


def _with_members(cls: ClassInfo) -> list[ast.expr]:
    """Return the bases of a class that may give it attributes."""
    bases = (b.value if isinstance(b, ast.Subscript) else b for b in cls.node.bases)
    return [b for b in bases if last_name(b) not in _BARE]


def _values(node: ast.AST, name: str) -> Iterator[ast.expr | None]:
    """Yield what a statement or a call gives an attribute of this name; None = not told."""
    if isinstance(node, ast.keyword) and node.arg == name:
        yield node.value
    elif (isinstance(node, ast.FunctionDef) and node.name == name) or set_attribute(node) == name:
        yield None
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in (part for whole in targets for part in nodes_in(whole)):
            if isinstance(target, ast.Name | ast.Attribute) and last_name(target) == name:
                plain = target in targets and not isinstance(node, ast.AugAssign)
                yield node.value if plain else None
