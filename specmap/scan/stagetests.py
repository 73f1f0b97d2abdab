"""Host code that asks a batch which stage it is in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specmap.codemap.hazards import ModeTest
from specmap.scan.modes import ModeTable
from specmap.scan.module import FunctionInfo
from specmap.scan.nodes import nodes_in
from specmap.scan.resolver import Resolver


def stage_tests(resolver: Resolver) -> tuple[ModeTest, ...]:
    """Return the tests of the forward mode in ``if`` chains of the vocabulary's folders."""
    table = ModeTable(resolver)
    scope = resolver.vocabulary.hazards["stage_scope"]
    found: list[ModeTest] = []
    for file in resolver.tree.files_holding(sorted(resolver.vocabulary.mode_attribute), scope):
        module = resolver.tree.module_at(file)
        for function in module.all_functions() if module else ():
            found += _in_function(function, table)
    return tuple(sorted(found, key=lambda t: (t.span, t.holder)))


def _in_function(function: FunctionInfo, table: ModeTable) -> Iterator[ModeTest]:
    module = function.module
    ifs = [node for node in nodes_in(function.node) if isinstance(node, ast.If)]
    inner = {id(n.orelse[0]) for n in ifs if len(n.orelse) == 1 and isinstance(n.orelse[0], ast.If)}
    for first in ifs:
        if id(first) in inner:
            continue
        for order, test in enumerate(_chain(first)):
            modes = table.true_for(test)
            if modes is not None:
                yield ModeTest(
                    module.span(test),
                    function.id,
                    module.text(test),
                    table.predicate(test),
                    tuple(m for m in table.members if m in modes),
                    first.lineno,
                    order,
                )


def _chain(node: ast.If) -> Iterator[ast.expr]:
    yield node.test
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        yield from _chain(node.orelse[0])
