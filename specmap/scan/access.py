"""What ``x.name``, ``x[key]`` and a place in a tuple can be."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from specmap.codemap.condition import (
    AtomKind,
)
from specmap.scan import windows
from specmap.scan.modefacts import modes_of
from specmap.scan.truths import strongest
from specmap.scan.values import (
    Arms,
    ClassRef,
    Const,
    EnumMember,
    External,
    FunctionRef,
    Instance,
    ModuleRef,
    Opaque,
    Scope,
    Sequence,
    Super,
    Table,
    Truth,
    Value,
    one_of,
    only,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver


class Access:
    """Takes values apart."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def pick(self, arms: Arms, index: tuple[int | None, ...]) -> Arms:
        """Take arms apart by tuple positions; ``None`` picks any element."""
        for position in index:
            groups = [under(self._item(arm.value, position), arm.condition) for arm in arms]
            arms = unite(*groups)
        return arms

    def _item(self, value: Value, position: int | None) -> Arms:
        if isinstance(value, Sequence):
            if value.items is None:
                return one_of(value.element)
            if position is None:
                return one_of(unite(*value.items))
            return value.items[position] if position < len(value.items) else ()
        if isinstance(value, External):
            return only(External(f"{value.name}[]"))
        if isinstance(value, Opaque):
            place = "[]" if position is None else f"[{position}]"
            return only(
                Opaque(value.text + place, value.kind, value.span, value.plugin, value.reason)
            )
        return ()

    def attribute(self, node: ast.Attribute, scope: Scope) -> Arms:
        """Return what ``x.name`` can be."""
        resolver = self._resolver
        if node.attr in resolver.vocabulary.overwritten:
            return resolver.expressions.opaque(node, scope)
        receiver = self._resolver.evaluate(node.value, scope)
        if scope.facts:
            known = resolver.fact(receiver, node.attr, scope.facts)
            if known is not None:
                return modes_of(known)
        temporary = resolver.attributes.override_of(scope, receiver, node.attr)
        if temporary is not None:
            return temporary
        groups = [under(self.member(a.value, node, scope), a.condition) for a in receiver]
        found = unite(*groups)
        opaque = [arm.value for arm in found if isinstance(arm.value, Opaque)]
        if not found or len(opaque) < len(found):
            getters = resolver.members.getters(receiver, node.attr)
            return resolver.calls.as_one_test(found, node, scope, getters) if getters else found
        if len(opaque) == 1 and opaque[0].kind is AtomKind.LAUNCH:
            return found
        return self._named_opaque(node, scope, found)

    def _named_opaque(self, node: ast.Attribute, scope: Scope, found: Arms) -> Arms:
        """An opaque attribute keeps the text at its use; its stores tell what kind it is."""
        module = scope.frame.module
        text, span = module.text(node), module.span(node)
        kinds = {arm.value.kind for arm in found if isinstance(arm.value, Opaque)}
        plugin = any(isinstance(arm.value, Opaque) and arm.value.plugin for arm in found)
        reason = next((a.value.reason for a in found if isinstance(a.value, Opaque)), "")
        kind = self._resolver.kind_of(text)
        if kind is AtomKind.UNKNOWN:
            kind = strongest(kinds | {AtomKind.STATE})
        return only(Opaque(text, kind, span, plugin, reason))

    def member(self, value: Value, node: ast.Attribute, scope: Scope) -> Arms:
        """Return one attribute of one value."""
        if isinstance(value, Instance):
            if self._resolver.is_settings(value.cls.module.name):
                return self._setting(value, node, scope)
            return self._of_object(value, node, scope)
        if isinstance(value, ClassRef):
            return self._resolver.members.of_class(value, node.attr)
        if isinstance(value, ModuleRef):
            return self._resolver.types.module_name(value.module, node.attr) or (
                self._resolver.types.imported(value.module.name, node.attr)
            )
        if isinstance(value, External):
            return only(External(f"{value.name}.{node.attr}"))
        if isinstance(value, EnumMember):
            return self._resolver.members.of_enum(value, node.attr)
        if isinstance(value, Super):
            return self._resolver.members.of_super(value, node.attr)
        if isinstance(value, Opaque):
            kind = self._resolver.kind_of(f"{value.text}.{node.attr}")
            kind = value.kind if kind is AtomKind.UNKNOWN else kind
            text = f"{value.text}.{node.attr}"
            return only(Opaque(text, kind, value.span, value.plugin, value.reason))
        if isinstance(value, Const) and value.value is not None:
            return only(External(f"builtins.{type(value.value).__name__}.{node.attr}"))
        if isinstance(value, Sequence):
            return only(External(f"builtins.list.{node.attr}"))
        if isinstance(value, Table):
            return self._table_member(value, node.attr)
        if isinstance(value, Truth):
            return only(External(f"builtins.bool.{node.attr}"))
        return ()

    def _of_object(self, value: Instance, node: ast.Attribute, scope: Scope) -> Arms:
        resolver, name = self._resolver, node.attr
        if resolver.windows and scope.facts:
            getter = resolver.types.method(value.cls, name)
            if getter is not None and getter.is_property and windows.is_known(scope.facts):
                return resolver.calls.under_facts(getter, value, scope.facts)
        usual = resolver.attributes.before(value, node, scope)
        if usual is None:
            usual = resolver.members.named(value, name, scope.frame.module)
        known = name in resolver.windows and scope.facts
        return windows.held(value, name, scope.facts, usual) if known else usual

    def _setting(self, value: Instance, node: ast.Attribute, scope: Scope) -> Arms:
        """A launch setting is one symbol, however the object that holds it was reached."""
        names = self._resolver.vocabulary.settings_names
        module = scope.frame.module
        name = names.get(value.cls.name)
        text = f"{name}.{node.attr}" if name else module.text(node)
        return only(Opaque(text, AtomKind.LAUNCH, module.span(node)))

    def _table_member(self, value: Table, name: str) -> Arms:
        if name in ("get", "pop", "setdefault"):
            everything = unite(value.other, *(arms for _, arms in value.entries))
            return (
                only(Sequence(None, everything))
                if everything
                else only(External("builtins.dict.get"))
            )
        return only(External(f"builtins.dict.{name}"))

    def subscript(self, node: ast.Subscript, scope: Scope) -> Arms:
        """Return what ``x[key]`` can be."""
        found: list[Arms] = []
        key = self._resolver.device_key(node.slice, scope)
        for arm in self._resolver.evaluate(node.value, scope):
            found.append(under(self._subscripted(arm.value, key, node, scope), arm.condition))
        return unite(*found)

    def _subscripted(self, value: Value, key: object, node: ast.Subscript, scope: Scope) -> Arms:
        if isinstance(value, Table):
            entries = dict(value.entries)
            if key is not None:
                return entries.get(key, value.other)
            return one_of(unite(value.other, *entries.values()))
        if isinstance(value, Sequence):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(node.slice, ast.Slice):
                return only(_sliced(value, node.slice))
            return self._item(value, index if isinstance(index, int) and index >= 0 else None)
        if isinstance(value, External):
            name = value.name if value.name.endswith("()") else f"{value.name}[]"
            return only(External(name))
        if isinstance(value, FunctionRef):
            return only(value)  # kernel[grid]: still the kernel
        if isinstance(value, ClassRef) and self._resolver.types.is_enum(value.cls):
            return only(Instance(value.cls, "enum", rule="enum member"))
        if isinstance(value, ClassRef):
            return only(value)
        if isinstance(value, Opaque) and value.kind is not AtomKind.UNKNOWN:
            return self._resolver.expressions.opaque(node, scope, value.reason)
        return ()


def _sliced(value: Sequence, part: ast.Slice) -> Sequence:
    """A slice with constant bounds keeps its positions; any other slice only its elements."""
    bounds = [part.lower, part.upper, part.step]
    if value.items is not None and all(b is None or isinstance(b, ast.Constant) for b in bounds):
        low, high, step = (getattr(b, "value", None) for b in bounds)
        return Sequence(value.items[low:high:step])
    return Sequence(None, unite(value.element, *(value.items or ())))
