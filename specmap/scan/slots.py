"""Attributes that hold workers, runners or graph runners, with every store to them."""

from __future__ import annotations

import ast
from dataclasses import replace

from specmap.codemap.condition import FALSE, all_of, simplify
from specmap.codemap.graph import Assignment, Attribute
from specmap.codemap.source import Span, symbol_id
from specmap.scan.decisions import Decisions
from specmap.scan.guards import Store
from specmap.scan.module import ClassInfo
from specmap.scan.records import guards_of
from specmap.scan.resolver import Resolver
from specmap.scan.stored import FoundStore
from specmap.scan.values import NONE, Arms, Instance, Opaque


class Slots:
    """Collects the attributes of one object after another; stores are merged by place."""

    def __init__(self, resolver: Resolver, decisions: Decisions) -> None:
        self._resolver = resolver
        self._decisions = decisions
        self._found: dict[str, dict[Span, Assignment]] = {}
        self._classes: dict[ClassInfo, None] = {}

    def add(self, instance: Instance) -> None:
        """Note the attributes of an object that hold a runner or a worker."""
        for cls in self._resolver.types.mro(instance.cls):
            for name in sorted(cls.stores):
                self._add_attribute(instance, name)

    def add_named(self, instance: Instance, name: str) -> None:
        """Note one attribute, whatever it holds."""
        self._note(instance, name)

    def _add_attribute(self, instance: Instance, name: str) -> None:
        arms = self._resolver.attributes.value(instance, name)
        if any(isinstance(a.value, Instance) and self._matters(a.value) for a in arms):
            self._note(instance, name)

    def _matters(self, value: Instance) -> bool:
        return self._decisions.is_runner(value)

    def _note(self, instance: Instance, name: str) -> None:
        owner = self._owner(instance, name)
        slot = self._found.setdefault(symbol_id(owner.module.file, f"{owner.qualname}.{name}"), {})
        for found in self._resolver.attributes.stores(instance, name):
            record = self._assignment(found)
            before = slot.get(record.span)
            slot[record.span] = record if before is None else _joined(before, record)

    def _owner(self, instance: Instance, name: str) -> ClassInfo:
        line = self._resolver.types.mro(instance.cls)
        return next((c for c in reversed(line) if name in c.stores), instance.cls)

    def _assignment(self, found: FoundStore) -> Assignment:
        store, function = found.store, found.function
        module = function.module
        arms = self._possible(store)
        for arm in arms:
            if isinstance(arm.value, Instance):
                self._classes[arm.value.cls] = None
        restored = self._restored_line(found)
        return Assignment(
            span=module.span(store.target),
            holder=function.id,
            value=_value_text(found),
            types=_types(arms),
            guards=guards_of(store.path, function, store.target),
            from_outside=found.outside,
            created=_created(arms),
            restored_line=restored,
            context_manager=function.is_context_manager,
            also_unknown=_unknown(arms),
        )

    def _possible(self, store: Store) -> Arms:
        """What a store can store, given the tests that lead to it."""
        here = self._resolver.condition(store.path)
        arms = self._resolver.pick(self._resolver.evaluate(store.value, store.scope), store.index)
        return tuple(a for a in arms if simplify(all_of(here, a.condition)) != FALSE)

    def _restored_line(self, found: FoundStore) -> int | None:
        """In a context manager: the line after ``yield`` that stores the old value again."""
        if not found.function.is_context_manager:
            return None
        name, line = found.store.target.attr, found.store.target.lineno
        run = self._resolver.attributes.execution(found.store.scope.frame)
        later = [
            s.target.lineno for s in run.stores if s.target.attr == name and s.target.lineno > line
        ]
        return later[-1] if later else None

    def classes(self) -> list[ClassInfo]:
        """Return the classes of the objects in the noted attributes."""
        return list(self._classes)

    def records(self) -> tuple[Attribute, ...]:
        """Return the attributes, sorted by name and place."""
        return tuple(
            Attribute(name, tuple(slot[span] for span in sorted(slot)))
            for name, slot in sorted(self._found.items())
        )


def _value_text(found: FoundStore) -> str:
    return found.function.module.text(found.store.value)


def _types(arms: Arms) -> tuple[str | None, ...]:
    ids = {a.value.cls.id for a in arms if isinstance(a.value, Instance)}
    none: tuple[str | None, ...] = (None,) if any(a.value == NONE for a in arms) else ()
    return (*sorted(ids), *none)


def _created(arms: Arms) -> tuple[Span, ...]:
    found = set()
    for arm in arms:
        if isinstance(arm.value, Instance) and arm.value.origin is not None:
            origin = arm.value.origin
            found.add(_call_span(origin.scope.frame.module.file, origin.call))
    return tuple(sorted(found))


def _call_span(file: str, call: ast.Call) -> Span:
    return Span(file, call.lineno, call.end_lineno or call.lineno)


def _unknown(arms: Arms) -> tuple[str, ...]:
    plugins = {a.value.reason for a in arms if isinstance(a.value, Opaque) and a.value.plugin}
    return tuple(sorted(plugins))


def _joined(first: Assignment, second: Assignment) -> Assignment:
    ids = {t for t in (*first.types, *second.types) if t is not None}
    none: tuple[str | None, ...] = (None,) if None in (*first.types, *second.types) else ()
    return replace(
        first,
        types=(*sorted(ids), *none),
        created=tuple(sorted({*first.created, *second.created})),
        also_unknown=tuple(sorted({*first.also_unknown, *second.also_unknown})),
    )
