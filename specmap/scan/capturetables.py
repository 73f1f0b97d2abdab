"""What is captured: tables of runners by device, and lists of attention backends."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specmap.codemap.hazards import CaptureEntry, EntryKind
from specmap.scan.bodies import Assigned
from specmap.scan.module import ClassInfo, FunctionInfo, Module, last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.resolver import Resolver
from specmap.scan.values import ClassRef, Scope


class CaptureTables:
    """Reads the functions that build graph runners, for all platforms at once."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._tests = resolver.vocabulary.platform_tests
        self._asked: dict[str, set[str]] = {}

    def find(self) -> tuple[CaptureEntry, ...]:
        """Return the entries of the workers' own folder."""
        found: list[CaptureEntry] = []
        for module in self._resolver.tree.modules_under(self._resolver.vocabulary.speculative):
            for function in module.all_functions():
                found += self._runners(function)
                found += self._backends(function)
        return tuple(sorted(found, key=lambda e: (e.span, e.table, e.target, e.subject)))

    def _runners(self, function: FunctionInfo) -> Iterator[CaptureEntry]:
        """Dicts from device to a class with a runner's own test."""
        for statement in function.facts.assigns:
            if not isinstance(statement.value, ast.Dict) or len(statement.targets) != 1:
                continue
            for key, value in zip(statement.value.keys, statement.value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    cls = self._class(value, function)
                    if cls is not None and self._is_runner(cls):
                        yield CaptureEntry(
                            function.module.span(value),
                            function.id,
                            EntryKind.RUNNER,
                            last_name(statement.targets[0]),
                            key.value,
                            cls.id,
                        )

    def _is_runner(self, cls: ClassInfo) -> bool:
        names = self._resolver.vocabulary.decisions
        return any(self._resolver.types.method(cls, name) for name in names)

    def _class(self, node: ast.expr, function: FunctionInfo) -> ClassInfo | None:
        run = self._resolver.attributes.execution(
            self._resolver.attributes.frame(
                self._resolver.any_instance(function.owner) if function.owner else None, function
            )
        )
        scope = next((s for _, s, _ in reversed(run.expressions)), None)
        imported = self._imported(node, function)
        if imported is not None:
            return imported
        return self._evaluated(node, scope) if scope is not None else None

    def _evaluated(self, node: ast.expr, scope: Scope) -> ClassInfo | None:
        for arm in self._resolver.evaluate(node, scope):
            if isinstance(arm.value, ClassRef):
                return arm.value.cls
        return None

    def _imported(self, node: ast.expr, function: FunctionInfo) -> ClassInfo | None:
        """A class that the function or its module imports by name."""
        name = last_name(node)
        for source in [*nodes_in(function.node), *function.module.tree.body]:
            if isinstance(source, ast.ImportFrom) and source.module:
                for alias in source.names:
                    if (alias.asname or alias.name) == name:
                        module = self._resolver.tree.module(source.module)
                        if module is not None and alias.name in module.classes:
                            return module.classes[alias.name]
        return None

    def _backends(self, function: FunctionInfo) -> Iterator[CaptureEntry]:
        """Classes that an ``isinstance`` before a capture admits."""
        if not any(self._is_table(s, function) for s in function.facts.assigns):
            return
        parents = {id(c): n for n in nodes_in(function.node) for c in ast.iter_child_nodes(n)}
        for call in function.facts.calls:
            if last_name(call.func) != "isinstance" or len(call.args) != 2:
                continue
            admitted = self._platforms_around(call, function, parents)
            for node, table in _classes(call.args[1], function):
                cls = self._class(node, function)
                if cls is None:
                    continue
                inside = self._platforms_around(node, function, parents)
                both = [p for p in self._tests if p in admitted and p in inside]
                yield CaptureEntry(
                    function.module.span(node),
                    function.id,
                    EntryKind.BACKEND,
                    table,
                    "",
                    cls.id,
                    function.module.text(call.args[0]),
                    tuple(sorted(both)),
                    self._runs_on(cls.module),
                )

    def _is_table(self, statement: Assigned, function: FunctionInfo) -> bool:
        return isinstance(statement.value, ast.Dict) and any(self._runners(function))

    def _platforms_around(
        self, node: ast.AST, function: FunctionInfo, parents: dict[int, ast.AST], depth: int = 0
    ) -> set[str]:
        """The platforms on which a place is reached: tests around it, and beside it in ``and``."""
        left = set(self._tests)
        child, parent = node, parents.get(id(node))
        while parent is not None:
            if isinstance(parent, ast.If) and child is not parent.test:
                branch = child in parent.body
                left &= self._holds_on(parent.test, function.module, branch)
            elif isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And):
                for beside in parent.values:
                    if beside is not child:
                        left &= self._holds_on(beside, function.module, True)
            elif isinstance(parent, ast.Assign | ast.AnnAssign) and child is parent.value:
                target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
                if depth < 2 and isinstance(target, ast.Name):
                    left &= self._where_used(target, function, parents, depth)
            child, parent = parent, parents.get(id(parent))
        return left

    def _where_used(
        self,
        stored: ast.Name,
        function: FunctionInfo,
        parents: dict[int, ast.AST],
        depth: int,
    ) -> set[str]:
        found: set[str] = set()
        used = False
        for node in nodes_in(function.node):
            if isinstance(node, ast.Name) and node.id == stored.id and node is not stored:
                if isinstance(node.ctx, ast.Load):
                    used = True
                    found |= self._platforms_around(node, function, parents, depth + 1)
        return found if used else set(self._tests)

    def _holds_on(self, test: ast.expr, module: Module, branch: bool) -> set[str]:
        return {p for p in self._tests if self._value(test, module, p) in (branch, None)}

    def _value(self, node: ast.expr, module: Module, platform: str) -> bool | None:
        """What a test says on one platform, if it is only about the platform."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._value(node.operand, module, platform)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            values = [self._value(v, module, platform) for v in node.values]
            absorbing = isinstance(node.op, ast.Or)
            if absorbing in values:
                return absorbing
            return None if None in values else not absorbing
        if isinstance(node, ast.Name):
            for value in module.assigns.get(node.id, ()):
                return self._value(value, module, platform)
        if isinstance(node, ast.Call) and not node.args:
            name = last_name(node.func)
            if any(name in names for names in self._tests.values()):
                return name in self._tests[platform]
        return None

    def _runs_on(self, module: Module) -> tuple[str, ...]:
        """Platforms that a module asks for: it has code of its own for them."""
        if module.file not in self._asked:
            calls = (n for n in nodes_in(module.tree) if isinstance(n, ast.Call) and not n.args)
            self._asked[module.file] = {last_name(call) for call in calls}
        asked = self._asked[module.file]
        found = []
        for platform, names in self._tests.items():
            alone = {n for n in names if sum(n in other for other in self._tests.values()) == 1}
            if alone & asked:
                found.append(platform)
        return tuple(sorted(found))


def _classes(node: ast.expr, function: FunctionInfo) -> Iterator[tuple[ast.expr, str]]:
    """The classes an ``isinstance`` names, through ``tuple(list)`` and ``list.append``."""
    if isinstance(node, ast.Tuple | ast.List):
        for item in node.elts:
            yield from _classes(item, function)
    elif isinstance(node, ast.Call) and last_name(node.func) == "tuple" and node.args:
        yield from _classes(node.args[0], function)
    elif isinstance(node, ast.Name):
        lists = [
            s.value
            for s in function.facts.assigns
            if isinstance(s.value, ast.List | ast.Tuple) and last_name(s.targets[0]) == node.id
        ]
        for value in lists:
            yield from ((item, node.id) for item in value.elts)
        for call in function.facts.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "append" and call.args:
                if isinstance(call.func.value, ast.Name) and call.func.value.id == node.id:
                    yield call.args[0], node.id
        if not lists:
            yield node, ""
