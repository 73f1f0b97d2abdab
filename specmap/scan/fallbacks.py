"""Where the source gives up a graph or a feature, and whether it says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from specmap.codemap.hazards import Fallback, FallbackKind
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.resolver import Resolver


class Fallbacks:
    """Reads the workers, the runners and the launch settings."""

    def __init__(self, resolver: Resolver) -> None:
        words = resolver.vocabulary
        self._resolver = resolver
        self._settings = frozenset(words.hazards["turned_off"])
        self._says = frozenset(words.hazards["says"])
        self._captures = words.capture_methods | frozenset(words.hazards["captures"])

    def find(self) -> tuple[Fallback, ...]:
        """Return the fallbacks of the vocabulary's folders and files."""
        found: list[Fallback] = []
        for place in self._resolver.vocabulary.hazards["fallback_scope"]:
            for file in self._resolver.tree.files_under(place):
                module = self._resolver.tree.module_at(file)
                for function in module.all_functions() if module else ():
                    found += self._in_function(function)
        return tuple(sorted(set(found), key=lambda f: (f.span, f.text)))

    def _in_function(self, function: FunctionInfo) -> Iterator[Fallback]:
        nodes = nodes_in(function.node)
        tests = [node for node in nodes if isinstance(node, ast.If)]
        never = {id(s) for test in tests if self._is_never(test.test) for s in _below(test.body)}
        for node in nodes:
            if id(node) in never:
                continue
            if isinstance(node, ast.Try) and self._captures_in(node.body, function):
                for handler in node.handlers:
                    yield self._caught(handler, function)
            for name in ("body", "orelse"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    kept = [s for s in block if id(s) not in never]
                    yield from self._disabled(kept, function, nodes)

    def _is_never(self, test: ast.expr) -> bool:
        """Whether a test asks for the device of another platform."""
        if not isinstance(test, ast.Compare) or [type(op) for op in test.ops] != [ast.Eq]:
            return False
        return self._resolver.device_test(test.left, test.comparators[0]) is False

    def _captures_in(self, body: list[ast.stmt], function: FunctionInfo) -> bool:
        calls = [n for s in body for n in nodes_in(s) if isinstance(n, ast.Call)]
        names = {last_name(call.func) for call in calls}
        own = (self._own_method(call, function) for call in calls)
        below = {last_name(c.func) for method in own if method for c in method.facts.calls}
        return bool((names | below) & self._captures) or any(map(self._is_runner, sorted(names)))

    def _own_method(self, call: ast.Call, function: FunctionInfo) -> FunctionInfo | None:
        func = call.func
        if function.owner is None or not isinstance(func, ast.Attribute):
            return None
        is_own = isinstance(func.value, ast.Name) and func.value.id == "self"
        return self._resolver.types.method(function.owner, func.attr) if is_own else None

    def _is_runner(self, name: str) -> bool:
        if not name[:1].isupper():
            return False
        decisions = self._resolver.vocabulary.decisions
        classes = self._resolver.tree.classes_named(name)
        methods = (self._resolver.types.method(c, d) for c in classes for d in decisions)
        return any(methods)

    def _caught(self, handler: ast.ExceptHandler, function: FunctionInfo) -> Fallback:
        module = function.module
        caught = "Exception" if handler.type is None else module.text(handler.type)
        return Fallback(
            module.span(handler),
            function.id,
            FallbackKind.CAUGHT,
            f"except {caught}",
            self._says_in(handler.body),
            any(isinstance(n, ast.Raise) for s in handler.body for n in nodes_in(s)),
        )

    def _disabled(
        self, block: list[ast.stmt], function: FunctionInfo, nodes: Sequence[ast.AST]
    ) -> Iterator[Fallback]:
        module = function.module
        for statement in block:
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                if isinstance(target, ast.Attribute) and self._is_off(target, statement.value):
                    yield Fallback(
                        module.span(statement),
                        function.id,
                        FallbackKind.DISABLED,
                        f"{module.text(target)} = {module.text(statement.value)}",
                        self._says_in(block) or self._says_later(target, nodes),
                        any(isinstance(s, ast.Raise) for s in block),
                        self._is_restored(target, statement, function),
                    )

    def _is_off(self, target: ast.Attribute, value: ast.expr) -> bool:
        if target.attr not in self._settings or not isinstance(value, ast.Constant):
            return False
        off = target.attr.startswith("disable")
        return value.value is off if isinstance(value.value, bool) else value.value is None

    def _is_restored(
        self, target: ast.Attribute, stored: ast.Assign, function: FunctionInfo
    ) -> bool:
        return any(
            later.node.lineno > stored.lineno
            and isinstance(later.value, ast.Name)
            and any(last_name(t) == target.attr for t in later.targets)
            for later in function.facts.assigns
        )

    def _says_later(self, target: ast.Attribute, nodes: Sequence[ast.AST]) -> bool:
        """Whether a test of the setting that is asked afterwards, too, says what was done."""
        return any(
            isinstance(test, ast.If)
            and self._says_in(test.body)
            and any(
                isinstance(n, ast.Attribute) and n.attr == target.attr for n in nodes_in(test.test)
            )
            for node in nodes
            for test in _after(target.lineno, node)
        )

    def _says_in(self, block: list[ast.stmt]) -> bool:
        for statement in block:
            if isinstance(statement, ast.If | ast.For | ast.While):
                continue
            for node in nodes_in(statement):
                if isinstance(node, ast.Call):
                    root = node.func
                    names = {last_name(root)}
                    while isinstance(root, ast.Attribute):
                        root = root.value
                        names.add(last_name(root))
                    if names & self._says:
                        return True
        return False


def _after(line: int, node: ast.AST) -> Iterator[ast.stmt]:
    """Yield what stands after a line in the blocks of a node that the line is in."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and block[0].lineno <= line:
            last = block[-1].end_lineno or block[-1].lineno
            yield from (s for s in block if line <= last and s.lineno > line)


def _below(body: list[ast.stmt]) -> Iterator[ast.AST]:
    return (node for statement in body for node in nodes_in(statement))
