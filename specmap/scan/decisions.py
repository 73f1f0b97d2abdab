"""Decisions: the places where graph or eager is chosen, term by term.

Three kinds: ``can_run``, the body of a runner's own test; ``route``, an expression that
asks a runner and picks a path; ``capture``, the tests under which a runner is built or
says which forward mode it captures.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from specmap.codemap.condition import FALSE, TRUE
from specmap.codemap.graph import Decision, Term
from specmap.scan.guards import Bound, Choice, Execution, Exit, Path, Test
from specmap.scan.module import FunctionInfo, Module, last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.resolver import Resolver
from specmap.scan.values import EnumMember, Instance, Scope

_EXPANSIONS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A route with its expression."""

    node: ast.expr
    decision: Decision


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A term with the expression it was read from; ``inner`` when other parts spell it out."""

    term: Term
    node: ast.expr
    scope: Scope
    inner: bool


class Decisions:
    """Takes decisions apart into terms; each decision is built once."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._can_run: dict[FunctionInfo, Decision] = {}
        self._routes: dict[FunctionInfo, list[Route]] = {}

    def can_run(self, function: FunctionInfo) -> Decision:
        """Return the decision that is the body of a runner's test."""
        if function not in self._can_run:
            self._can_run[function] = self._body(function)
        return self._can_run[function]

    def _body(self, function: FunctionInfo) -> Decision:
        terms: list[Term] = []
        text = ""
        for item in self._execution(function).returns:
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
        return self._resolver.attributes.execution(self._resolver.attributes.frame(this, function))

    def _terms(self, node: ast.expr, scope: Scope, when: bool, module: Module) -> Iterator[Term]:
        """Yield the terms of an expression. What a whole ``and`` is made of says it all."""
        for part in self._parts(node, scope, when, module):
            whole = not part.term.conjunct_of and part.term.graph_when
            if not (
                whole and isinstance(part.node, ast.BoolOp) and isinstance(part.node.op, ast.And)
            ):
                yield part.term

    def _parts(
        self,
        node: ast.expr,
        scope: Scope,
        when: bool,
        module: Module,
        part_of: str = "",
        depth: int = 0,
    ) -> Iterator[_Part]:
        """Yield an expression and the parts that decide it, local names spelt out."""
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node, when = node.operand, not when
        if isinstance(node, ast.Call) and last_name(node.func) == "bool" and len(node.args) == 1:
            node = node.args[0]
        if isinstance(node, ast.Constant):
            return
        text = module.text(node)
        inside: list[_Part] = []
        if depth <= _EXPANSIONS:
            for part, where in self._inside(node, scope):
                inside += self._parts(part, where, when, module, text, depth + 1)
        yield _Part(Term(text, module.span(node), when, part_of), node, scope, bool(inside))
        yield from inside

    def _inside(self, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """The operands of an operator; what a local name is bound to, in every arm."""
        if isinstance(node, ast.BoolOp):
            yield from ((value, scope) for value in node.values)
        elif isinstance(node, ast.IfExp):
            truth = self._resolver.truth(node.test, scope)
            if truth != FALSE:
                yield node.body, scope
            if truth != TRUE:
                yield node.orelse, scope
        elif isinstance(node, ast.Name):
            for bound in _bound(scope.env.get(node.id)):
                if not bound.index:
                    yield bound.node, bound.scope
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
            for bound in _bound(scope.env.get(node.func.id)):
                yield bound.node, bound.scope

    def routes(self, function: FunctionInfo) -> list[Route]:
        """Return the expressions of a function that ask a runner whether it can replay."""
        if function not in self._routes:
            self._routes[function] = list(self._find_routes(function))
        return self._routes[function]

    def _find_routes(self, function: FunctionInfo) -> Iterator[Route]:
        names = self._resolver.vocabulary.decisions
        module = function.module
        for node, scope, _ in self._execution(function).expressions:
            if not any(
                isinstance(n, ast.Call) and last_name(n.func) in names for n in nodes_in(node)
            ):
                continue
            if isinstance(node, ast.Call) and last_name(node.func) not in ("bool", *names):
                continue
            span = module.span(node)
            decision = Decision(
                f"{function.id}:{span.line}",
                "route",
                function.id,
                span,
                module.text(node),
                tuple(dict.fromkeys(self._terms(node, scope, True, module))),
            )
            yield Route(node, decision)

    def subjects(self, node: ast.expr, scope: Scope) -> dict[str, str]:
        """Return the smallest terms of a route: what each one tests, and its text."""
        parts = self._parts(node, scope, True, scope.frame.module)
        return {self._subject(part): part.term.text for part in parts if not part.inner}

    def _subject(self, part: _Part) -> str:
        """What a term asks about, however its object is reached."""
        node = part.node
        if (
            isinstance(node, ast.Call)
            and last_name(node.func) in self._resolver.vocabulary.decisions
        ):
            return "the runner's test"
        for arm in self._resolver.evaluate(node, part.scope):
            if isinstance(arm.value, Instance) and self.is_runner(arm.value):
                return "a runner"
        return last_name(node) or part.term.text

    def built(self, runner: Instance) -> Decision | None:
        """Return the tests under which a runner is built, where it is built."""
        origin = runner.origin
        function = origin.scope.frame.function if origin is not None else None
        if origin is None or function is None:
            return None
        run = self._resolver.attributes.execution(origin.scope.frame)
        noted = run.scope_of(origin.call)
        if noted is None:
            return None
        line = origin.call.lineno
        return self._capture(function, list(tests_on(noted[1])), f"{function.id}:{line}")

    def capture_mode(self, function: FunctionInfo, modes: frozenset[str]) -> Decision | None:
        """Return the tests under which a runner says that it captures one of the modes."""
        tests: list[Test] = []
        for store in self._execution(function).stores:
            if store.target.attr not in self._resolver.vocabulary.capture_mode:
                continue
            for arm in self._resolver.evaluate(store.value, store.scope):
                if isinstance(arm.value, EnumMember) and arm.value.name in modes:
                    tests += tests_on(store.path)
        name = "+".join([function.id, *sorted(modes)])
        return self._capture(function, tests, name)

    def _capture(self, function: FunctionInfo, tests: list[Test], name: str) -> Decision | None:
        terms: list[Term] = []
        for test in tests:
            terms += self._terms(test.node, test.scope, test.branch, function.module)
        if not terms:
            return None
        text = f"{function.qualname} captures"
        unique = tuple(dict.fromkeys(terms))
        return Decision(f"{name}:capture", "capture", function.id, function.span, text, unique)

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
