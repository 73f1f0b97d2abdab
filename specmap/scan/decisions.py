"""Decisions: the places where graph or eager is chosen, term by term.

Three kinds: ``can_run``, the body of a runner's own test; ``route``, an expression that
asks a runner and picks a path; ``capture``, the tests under which a runner is built or
says which forward mode it captures.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specmap.codemap.graph import Decision, Term
from specmap.scan.guards import Bound, Choice, Execution, Exit, Path, Test
from specmap.scan.module import FunctionInfo, Module, last_name
from specmap.scan.resolver import Resolver
from specmap.scan.values import EnumMember, Instance, Scope

_EXPANSIONS = 3


class Decisions:
    """Takes decisions apart into terms; each decision is built once."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def can_run(self, function: FunctionInfo) -> Decision:
        """Return the decision that is the body of a runner's test."""
        run = self._execution(function)
        terms: list[Term] = []
        text = ""
        for item in run.returns:
            value = item.value
            if isinstance(value, ast.Constant) and isinstance(value.value, bool):
                test = _last_test(item.path)
                if test is not None:
                    when = value.value if test.branch else not value.value
                    terms += self._terms(test.node, test.scope, when, function.module)
            elif value is not None:
                text = function.module.text(value)
                terms += self._terms(value, item.scope, True, function.module)
        unique = tuple(dict.fromkeys(terms))
        return Decision(
            f"{function.id}:can_run", "can_run", function.id, function.span, text, unique
        )

    def _execution(self, function: FunctionInfo) -> Execution:
        owner = function.owner
        this = self._resolver.any_instance(owner) if owner else None
        return self._resolver.attributes.execution(
            self._resolver.attributes.frame(this, function)
        )

    def _terms(
        self, node: ast.expr, scope: Scope, when: bool, module: Module, part_of: str = "", depth: int = 0
    ) -> Iterator[Term]:
        """Yield an expression and the parts that decide it, local names spelt out."""
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node, when = node.operand, not when
        if isinstance(node, ast.Call) and last_name(node.func) == "bool" and len(node.args) == 1:
            node = node.args[0]
        if isinstance(node, ast.Constant):
            return
        text = module.text(node)
        yield Term(text, module.span(node), when, part_of)
        if depth > _EXPANSIONS:
            return
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                yield from self._terms(value, scope, when, module, text, depth + 1)
        elif isinstance(node, ast.IfExp):
            for value in (node.body, node.orelse):
                yield from self._terms(value, scope, when, module, text, depth + 1)
        elif isinstance(node, ast.Name):
            for bound in _bound(scope.env.get(node.id)):
                if not bound.index:
                    yield from self._terms(bound.node, bound.scope, when, module, text, depth + 1)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
            for bound in _bound(scope.env.get(node.func.id)):
                yield from self._terms(bound.node, bound.scope, when, module, text, depth + 1)

    def routes(self, function: FunctionInfo) -> list[Decision]:
        """Return the expressions of a function that ask a runner whether it can replay."""
        names = self._resolver.vocabulary.decisions
        run = self._execution(function)
        found = []
        for node, scope, _ in run.expressions:
            if not any(isinstance(n, ast.Call) and last_name(n.func) in names for n in ast.walk(node)):
                continue
            if isinstance(node, ast.Call) and last_name(node.func) not in ("bool", *names):
                continue
            span = function.module.span(node)
            terms = tuple(dict.fromkeys(self._terms(node, scope, True, function.module)))
            name = f"{function.id}:{span.line}"
            text = function.module.text(node)
            found.append(Decision(name, "route", function.id, span, text, terms))
        return found

    def built(self, runner: Instance) -> Decision | None:
        """Return the tests under which a runner is built, where it is built."""
        origin = runner.origin
        function = origin.scope.frame.function if origin is not None else None
        if origin is None or function is None:
            return None
        run = self._resolver.attributes.execution(origin.scope.frame)
        noted = run.scope_of(origin.call)
        return None if noted is None else self._capture(function, list(tests_on(noted[1])))

    def capture_mode(self, function: FunctionInfo) -> Decision | None:
        """Return the tests under which a runner says which forward mode it captures."""
        tests: list[Test] = []
        for store in self._execution(function).stores:
            if store.target.attr not in self._resolver.vocabulary.capture_mode:
                continue
            arms = self._resolver.evaluate(store.value, store.scope)
            if any(isinstance(arm.value, EnumMember) for arm in arms):
                tests += tests_on(store.path)
        return self._capture(function, tests)

    def _capture(self, function: FunctionInfo, tests: list[Test]) -> Decision | None:
        terms: list[Term] = []
        for test in tests:
            terms += self._terms(test.node, test.scope, test.branch, function.module)
        if not terms:
            return None
        name, unique = f"{function.id}:capture", tuple(dict.fromkeys(terms))
        text = f"{function.qualname} captures"
        return Decision(name, "capture", function.id, function.span, text, unique)

    def is_runner(self, instance: Instance) -> bool:
        """Whether an object has a runner's own test."""
        return any(
            self._resolver.types.method(instance.cls, name) is not None
            for name in self._resolver.vocabulary.decisions
        )


def _last_test(path: Path) -> Test | None:
    tests = [item for item in path if isinstance(item, Test)]
    return tests[-1] if tests else None


def tests_on(path: Path) -> Iterator[Test]:
    """Yield the tests of a path, those of early returns negated."""
    for item in path:
        if isinstance(item, Test):
            yield item
        elif isinstance(item, Exit):
            for test in tests_on(item.path):
                yield Test(test.node, test.scope, not test.branch)


def _bound(binding: object) -> Iterator[Bound]:
    """The expressions a name can be bound to, in every arm."""
    if isinstance(binding, Bound):
        yield binding
    elif isinstance(binding, Choice):
        yield from _bound(binding.other)
        yield from _bound(binding.then)
