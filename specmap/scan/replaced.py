"""Methods that other code replaces by their names: ``patch.object(Runner, "can_run")``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from specmap.scan.bodies import set_attribute, sets_unwritten
from specmap.scan.module import ClassInfo, FunctionInfo, Module, last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.values import ClassRef, Frame, FunctionRef, Instance, Scope

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

# Calls that take an attribute's name and leave the attribute as it is.
_READS = frozenset({"getattr", "hasattr", "attrgetter", "methodcaller", "print"})


@dataclass(frozen=True, slots=True)
class Named:
    """A call that names a method, or (``name`` is "") sets attributes by a computed name."""

    module: Module
    call: ast.Call
    name: str
    target: ast.expr | str


class Replaced:
    """Looks for code that puts something in the place of a decision by its name."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._by_class: dict[tuple[ClassInfo, str], str] = {}
        self._setting: dict[ClassInfo, list[Named]] = {}

    def by_name(self, cls: ClassInfo, method: FunctionInfo) -> str:
        """Return what may replace a method of a class, as a reason; "" where nothing does."""
        key = (cls, method.name)
        if key not in self._by_class:
            self._by_class[key] = ""
            self._by_class[key] = self._find(cls, method)
        return self._by_class[key]

    def _find(self, cls: ClassInfo, method: FunctionInfo) -> str:
        line = self._resolver.types.mro(cls)
        owner = line.index(method.owner) if method.owner in line else 0
        holders = set(line[: owner + 1])
        named = [found for found in self._named if found.name == method.name]
        for found in (*named, *(one for holder in holders for one in self._set_in(holder))):
            if self._meant(found, holders):
                place = f"{found.module.file}:{found.call.lineno}"
                return f"{place} may replace {cls.name}.{method.name}"
        return ""

    def _meant(self, found: Named, holders: set[ClassInfo]) -> bool:
        if isinstance(found.target, str):
            return found.target in {holder.name for holder in holders}
        arms = self._resolver.evaluate(found.target, self._scope(found))
        classes = {a.value.cls for a in arms if isinstance(a.value, ClassRef | Instance)}
        if not found.name:
            return any(isinstance(a.value, ClassRef) and a.value.cls in holders for a in arms)
        return bool(classes & holders) or not classes

    def _scope(self, found: Named) -> Scope:
        for function in found.module.all_functions():
            if function.span.line <= found.call.lineno <= function.span.end_line:
                this = self._resolver.any_instance(function.owner) if function.owner else None
                frame = self._resolver.attributes.frame(this, function)
                inside = self._resolver.attributes.execution(frame).scope_of(found.call)
                if inside is not None:
                    return inside[0]
        return Scope(Frame(None, found.module))

    @cached_property
    def _named(self) -> list[Named]:
        words = self._resolver.vocabulary
        marks = [f"{before}{name}{quote}" for name in sorted(words.decisions)
                 for quote in "\"'" for before in (quote, ".")]  # fmt: skip
        tree = self._resolver.tree
        return [one for m in tree.modules_holding(marks) for one in self._naming(m)]

    def _naming(self, module: Module) -> Iterator[Named]:
        for call in nodes_in(module.tree):
            if not isinstance(call, ast.Call) or last_name(call.func) in _READS:
                continue
            if set_attribute(call) is not None:
                continue  # a store like any other
            for index, argument in enumerate(call.args):
                text = argument.value if isinstance(argument, ast.Constant) else None
                path, _, name = text.rpartition(".") if isinstance(text, str) else ("", "", "")
                if name not in self._resolver.vocabulary.decisions:
                    continue
                if path:
                    yield Named(module, call, name, path.rpartition(".")[2])
                elif index:
                    yield Named(module, call, name, call.args[index - 1])

    def _set_in(self, cls: ClassInfo) -> list[Named]:
        """Return the calls that set attributes by a computed name, where a class is named.

        So does a function that does it to what it is given, where it is given the class.
        """
        if cls not in self._setting:
            tree = self._resolver.tree
            files = tree.files_holding((cls.name,), self._resolver.vocabulary.scope)
            modules = [module for module in map(tree.module_at, files) if module]
            calls = [(m, c) for m in modules for c in nodes_in(m.tree) if isinstance(c, ast.Call)]
            found = [Named(m, c, "", c.args[0]) for m, c in calls if sets_unwritten(c)]
            for module, call in calls:
                given = (a for a in call.args if last_name(a) == cls.name)
                found += [
                    Named(module, call, "", a) for a in given if self._sets(call.func, module)
                ]
            for node in cls.node.decorator_list:
                called = node.func if isinstance(node, ast.Call) else node
                if self._sets(called, cls.module):
                    call = ast.copy_location(ast.Call(called, [], []), node)
                    found.append(Named(cls.module, call, "", cls.name))
            self._setting[cls] = found
        return self._setting[cls]

    def _sets(self, called: ast.expr, module: Module) -> bool:
        """Whether a function of the tree sets attributes by a computed name."""
        if not isinstance(called, ast.Name | ast.Attribute):
            return False
        arms = self._resolver.evaluate(called, Scope(Frame(None, module)))
        nodes = (n for a in arms if isinstance(a.value, FunctionRef)
                 for n in nodes_in(a.value.function.node))  # fmt: skip
        return any(isinstance(node, ast.Call) and sets_unwritten(node) for node in nodes)
