"""Finds the speculative workers: what the scheduler builds and drives.

A worker is recognised by what it does: the scheduler calls its entry method, and its
constructor is handed another object with that same method (the target worker).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from specmap.codemap.condition import (
    FALSE,
    Atom,
    AtomKind,
    Condition,
    Leaf,
    all_of,
    any_of,
    negate,
    simplify,
)
from specmap.codemap.graph import Factory
from specmap.codemap.source import Span
from specmap.scan.guards import Bound, Path, Store
from specmap.scan.module import ClassInfo, FunctionInfo, last_name
from specmap.scan.registry import registered
from specmap.scan.resolver import Resolver
from specmap.scan.values import (
    Arm,
    Arms,
    ClassRef,
    FunctionRef,
    Instance,
    Opaque,
    Origin,
    Scope,
    Table,
    Value,
)

# Of a class that no call registers under a name.
_UNKNOWN_NAME = Leaf(Atom("registered for the speculative algorithm", AtomKind.UNKNOWN))


@dataclass(frozen=True, slots=True, eq=False)
class DriveSite:
    """A place where the scheduler calls the entry method on some worker."""

    method: FunctionInfo
    call: ast.Call
    scope: Scope
    path: Path
    receivers: Arms

    @property
    def name(self) -> str:
        """The entry method's name."""
        return last_name(self.call.func)

    @property
    def receiver(self) -> ast.expr | None:
        """The expression that the method is called on."""
        return self.call.func.value if isinstance(self.call.func, ast.Attribute) else None


@dataclass(eq=False)
class Driven:
    """A worker object that the scheduler can drive."""

    instance: Instance
    entry: FunctionInfo
    conditions: list[Condition] = field(default_factory=list)
    sites: list[DriveSite] = field(default_factory=list)

    @property
    def selected_when(self) -> Condition:
        """The condition under which the scheduler uses this worker."""
        return simplify(any_of(*self.conditions))


class WorkerFinder:
    """Reads the scheduler's classes and finds what they drive."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self.schedulers = [
            Instance(cls, "scheduler")
            for name in sorted(resolver.vocabulary.scheduler)
            for cls in resolver.tree.classes_named(name)
        ]
        for scheduler in self.schedulers:
            resolver.stands_for(scheduler.cls, scheduler)
        self.sites = [site for s in self.schedulers for site in self._sites_in(s)]
        self.driven = self._driven()

    def _sites_in(self, scheduler: Instance) -> list[DriveSite]:
        found = []
        names = self._resolver.vocabulary.entry
        for cls in self._resolver.types.mro(scheduler.cls):
            for method in cls.methods.values():
                calls = [c for n in sorted(names) for c in self._resolver.calls_of(method, n)]
                if not calls or not self._resolver.attributes.is_live(scheduler, method):
                    continue
                run = self._resolver.attributes.execution(
                    self._resolver.attributes.frame(scheduler, method)
                )
                for call in calls:
                    noted = run.scope_of(call)
                    if noted is None or not isinstance(call.func, ast.Attribute):
                        continue
                    receivers = self._resolver.evaluate(call.func.value, noted[0])
                    found.append(DriveSite(method, call, noted[0], noted[1], receivers))
        return found

    def _driven(self) -> list[Driven]:
        found: dict[ClassInfo, Driven] = {}
        for site in self.sites:
            name = site.name
            for arm in site.receivers:
                value = arm.value
                if not isinstance(value, Instance) or not self._is_worker(value):
                    continue
                entry = self._resolver.types.method(value.cls, name)
                if entry is None:
                    continue
                driven = found.setdefault(value.cls, Driven(value, entry))
                if arm.condition not in driven.conditions:
                    driven.conditions.append(arm.condition)
                driven.sites.append(site)
        for cls, driven in self._registered(bool(found)).items():
            found.setdefault(cls, driven)
        for cls, driven in found.items():
            self._resolver.stands_for(cls, driven.instance)
        return sorted(found.values(), key=lambda d: d.instance.cls.id)

    def _registered(self, others: bool) -> dict[ClassInfo, Driven]:
        """The workers of a registry, which the scheduler asks for by the algorithm's name.

        The scheduler's call still shows what it passes: a class of the speculative folder
        with an entry whose constructor takes the target worker by that name can be meant. If
        the scheduler itself makes ``others``, only what is registered under a name is.
        """
        found: dict[ClassInfo, Driven] = {}
        chosen = registered(self._resolver)
        if others and not chosen:
            return found
        modules = self._resolver.tree.modules_under(self._resolver.vocabulary.speculative)
        for scheduler in self.schedulers:
            for origin, names in self._builds(scheduler):
                for cls in (cls for module in modules for cls in module.classes.values()):
                    if others and cls not in chosen:
                        continue
                    driven = self._candidate(cls, names, scheduler, origin)
                    if driven is not None:
                        when = chosen.get(cls, [_UNKNOWN_NAME])
                        driven.conditions = [all_of(one, *self._drives_no_other()) for one in when]
                        found.setdefault(cls, driven)
        return found

    def _drives_no_other(self) -> set[Condition]:
        """The tests by which the scheduler drives no object that the source shows."""
        arms = [arm for site in self.sites for arm in site.receivers]
        return {negate(arm.condition) for arm in arms if isinstance(arm.value, Instance)}

    def _builds(self, scheduler: Instance) -> Iterator[tuple[Origin, set[str]]]:
        """Calls that the scheduler keeps and hands a worker to, with that argument's names."""
        for cls in self._resolver.types.mro(scheduler.cls):
            for attribute in sorted(cls.stores):
                for kept in self._resolver.attributes.stores(scheduler, attribute):
                    store = kept.store
                    if isinstance(store.value, ast.Call) and not self._makes(store):
                        names = self._worker_arguments(store.value, store.scope)
                        if names:
                            yield Origin(store.value, store.scope), names

    def _makes(self, store: Store) -> bool:
        """Whether what a call keeps is an object of a known class."""
        arms = self._resolver.evaluate(store.value, store.scope)
        return any(isinstance(arm.value, Instance) for arm in arms)

    def _worker_arguments(self, call: ast.Call, scope: Scope) -> set[str]:
        names: set[str] = set()
        for keyword in call.keywords:
            for arm in self._resolver.evaluate(keyword.value, scope):
                if keyword.arg is not None and self._has_entry(arm.value):
                    names.add(keyword.arg)
                elif keyword.arg is None and isinstance(arm.value, Table):
                    names |= {
                        str(key)
                        for key, arms in arm.value.entries
                        if any(self._has_entry(a.value) for a in arms)
                    }
        return names

    def _candidate(
        self, cls: ClassInfo, names: set[str], scheduler: Instance, origin: Origin
    ) -> Driven | None:
        types = self._resolver.types
        init = types.method(cls, "__init__")
        entries = (types.method(cls, site.name) for site in self.sites)
        entry = next((e for e in entries if e is not None), None)
        if entry is None or init is None or types.is_abstract(cls):
            return None
        if not names & set(init.positions):
            return None
        instance = Instance(cls, f"registry:{cls.id}", scheduler, origin, "registry")
        return Driven(instance, entry, [], list(self.sites))

    def _is_worker(self, instance: Instance) -> bool:
        """Whether the constructor was handed another object with an entry method."""
        if instance.origin is None:
            return False
        return any(self._has_entry(value) for value in _passed(instance.origin, self._resolver))

    def _has_entry(self, value: Value) -> bool:
        if not isinstance(value, Instance):
            return False
        types, names = self._resolver.types, self._resolver.vocabulary.entry
        return any(types.method(value.cls, name) is not None for name in names)

    def undriven(self) -> list[tuple[ClassInfo, str]]:
        """Return classes of the speculative folder with an entry that nobody drives."""
        types, vocabulary = self._resolver.types, self._resolver.vocabulary
        driven = {d.instance.cls for d in self.driven}
        bases = {base for cls in driven for base in types.mro(cls)[1:]}
        found = []
        for module in self._resolver.tree.modules_under(vocabulary.speculative):
            for cls in module.classes.values():
                entry = [n for n in sorted(vocabulary.entry) if types.method(cls, n)]
                if not entry or cls in driven | bases or types.is_abstract(cls):
                    continue
                if not self._resolver.constructor_calls(cls):
                    found.append((cls, self._why_not(cls)))
        return sorted(found, key=lambda item: item[0].id)

    def _why_not(self, cls: ClassInfo) -> str:
        init = self._resolver.types.method(cls, "__init__")
        if init is not None and isinstance(init.node, ast.FunctionDef):
            for statement in init.node.body:
                if isinstance(statement, ast.Raise):
                    return f"its constructor raises ({init.module.file}:{statement.lineno})"
        return "nothing that the scheduler calls builds it"

    def factories(self) -> list[Factory]:
        """Return the functions that choose a worker class."""
        found: dict[str, Factory] = {}
        for driven in self.driven:
            origin = driven.instance.origin
            if origin is None or not isinstance(origin.call.func, ast.Name):
                continue
            binding = origin.scope.env.get(origin.call.func.id)
            if not (isinstance(binding, Bound) and isinstance(binding.node, ast.Call)):
                continue
            record = self._factory(binding, origin)
            if record is not None:
                found.setdefault(record.function, record)
        return sorted(found.values(), key=lambda f: f.function)

    def _factory(self, binding: Bound, origin: Origin) -> Factory | None:
        assert isinstance(binding.node, ast.Call)
        targets = [
            arm.value.function
            for arm in self._resolver.evaluate(binding.node.func, binding.scope)
            if isinstance(arm.value, FunctionRef)
        ]
        if not targets:
            return None
        arms = self._resolver.evaluate(binding.node, binding.scope)
        classes = [
            (a.value.cls.id, simplify(a.condition)) for a in arms if isinstance(a.value, ClassRef)
        ]
        unknown = [a.value.reason or a.value.text for a in arms if isinstance(a.value, Opaque)]
        module = origin.scope.frame.module
        span = targets[0].span
        return Factory(
            targets[0].id,
            Span(span.file, span.line, span.end_line),
            tuple(classes),
            module.span(origin.call),
            tuple(sorted(set(unknown))),
        )


def _passed(origin: Origin, resolver: Resolver) -> list[Value]:
    values: list[Value] = []
    for argument in origin.call.args:
        values += [arm.value for arm in resolver.evaluate(argument, origin.scope)]
    for keyword in origin.call.keywords:
        for arm in resolver.evaluate(keyword.value, origin.scope):
            if keyword.arg is None and isinstance(arm.value, Table):
                values += [a.value for _, arms in arm.value.entries for a in arms]
            else:
                values.append(arm.value)
    return values


def receivers_under(site: DriveSite, resolver: Resolver) -> list[Arm]:
    """Return what can be driven at a site, given the tests that lead to it."""
    here = resolver.condition(site.path)
    kept = []
    for arm in site.receivers:
        if simplify(all_of(here, arm.condition)) != FALSE:
            kept.append(arm)
    return kept
