"""Where workers read the buffers of their graph runners."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specmap.codemap.hazards import RunnerRead
from specmap.scan.decisions import Decisions
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.resolver import Resolver


def runner_reads(resolver: Resolver, decisions: Decisions) -> tuple[RunnerRead, ...]:
    """Return the reads after a decision in the functions of the workers' folder."""
    words = [word.encode() for word in sorted(resolver.vocabulary.decisions)]
    found: list[RunnerRead] = []
    for module in resolver.tree.modules_under(resolver.vocabulary.speculative):
        if any(word in line for word in words for line in module.lines):
            for function in module.all_functions():
                if function.words & resolver.vocabulary.decisions:
                    found += _in_function(function, decisions, resolver.vocabulary.decisions)
    return tuple(sorted(found, key=lambda r: (r.span, r.text)))


def _in_function(
    function: FunctionInfo, decisions: Decisions, names: frozenset[str]
) -> Iterator[RunnerRead]:
    module = function.module
    for route in decisions.routes(function):
        asked = _asked(route.node, names)
        if asked is None:
            continue
        runner = module.text(asked)
        flags = {
            last_name(target)
            for statement in function.facts.assigns
            if any(n is route.node for n in nodes_in(statement.value))
            for target in statement.targets
        }
        aliases = {runner, *_aliases(function, runner)}
        parents = {id(c): n for n in nodes_in(function.node) for c in ast.iter_child_nodes(n)}
        end = route.node.end_lineno or route.node.lineno
        for node in nodes_in(function.node):
            if not isinstance(node, ast.Attribute) or node.lineno <= end:
                continue
            if module.text(node.value) not in aliases or _is_called(node, parents):
                continue
            yield RunnerRead(
                module.span(node),
                function.id,
                module.text(node),
                runner,
                module.span(route.node),
                _is_decided(node, parents, flags, route.node),
            )


def _asked(node: ast.expr, names: frozenset[str]) -> ast.expr | None:
    for call in nodes_in(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            if call.func.attr in names:
                return call.func.value
    return None


def _aliases(function: FunctionInfo, runner: str) -> Iterator[str]:
    """Local names for the runner, or for one that it gives."""
    for statement in function.facts.assigns:
        text = function.module.text(statement.value)
        if text == runner or (text.startswith(f"{runner}.") and text.endswith("runner()")):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id


def _is_called(node: ast.Attribute, parents: dict[int, ast.AST]) -> bool:
    parent = parents.get(id(node))
    while isinstance(parent, ast.Attribute):
        node, parent = parent, parents.get(id(parent))
    return isinstance(parent, ast.Call) and parent.func is node


def _is_decided(
    node: ast.AST, parents: dict[int, ast.AST], flags: set[str], route: ast.expr
) -> bool:
    child, parent = node, parents.get(id(node))
    while parent is not None:
        if isinstance(parent, ast.If) and child in parent.body:
            tested = nodes_in(parent.test)
            if any(n is route for n in tested):
                return True
            if any(
                isinstance(n, ast.Name | ast.Attribute) and last_name(n) in flags for n in tested
            ):
                return True
        child, parent = parent, parents.get(id(parent))
    return False
