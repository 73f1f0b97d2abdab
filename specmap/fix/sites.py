"""Where the host waits for the device on the cycle, as expressions that can be rewritten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from specmap.codemap.graph import HostSync, SyncKind
from specmap.codemap.source import Span, canonical
from specmap.fix.tree import Source, Tree, statements, walk


@dataclass(frozen=True)
class Wait:
    """A wait of the map: the expression, its statement if it is a simple one, its function."""

    sync: HostSync
    source: Source
    function: cst.FunctionDef
    node: cst.BaseExpression
    statement: cst.SimpleStatementLine | None

    @property
    def span(self) -> Span:
        """The lines of the expression."""
        return Span(self.source.file, *self.source.lines(self.node))

    @property
    def line(self) -> int:
        """The first line of the expression."""
        return self.source.lines(self.node)[0]


def waits(tree: Tree, *rules: str) -> Iterator[Wait]:
    """Yield the waits of some rules on the cycle, in the workers' own files."""
    for sync in tree.codemap.syncs:
        on_cycle = sync.phase_between and not sync.captured and sync.kind is not SyncKind.NONE
        if not on_cycle or sync.rule not in rules:
            continue
        if not sync.span.file.startswith(tree.names.scan.speculative):
            continue
        source, function = tree.source_of(sync.holder), tree.function(sync.holder)
        if function is None:
            continue
        wanted = canonical(sync.operation)
        for node in walk(function.body):
            if isinstance(node, cst.BaseExpression) and source.lines(node)[0] <= sync.span.end_line:
                if source.lines(node)[1] >= sync.span.line and source.flat(node) == wanted:
                    found = (s for s in statements(function) if any(n is node for n in walk(s)))
                    yield Wait(sync, source, function, node, next(found, None))
                    break


def tests_around(function: cst.FunctionDef, node: cst.CSTNode) -> list[tuple[cst.If, bool]]:
    """Return the ``if`` statements around a node, outermost first, and whether it is the body."""
    found = []
    for test in walk(function.body):
        if isinstance(test, cst.If):
            if any(n is node for n in walk(test.body)):
                found.append((test, True))
            elif test.orelse is not None and any(n is node for n in walk(test.orelse)):
                found.append((test, False))
    return found


def block_of(function: cst.FunctionDef, statement: cst.CSTNode) -> list[cst.BaseStatement]:
    """Return the statements of the block that a statement stands in."""
    for node in walk(function):
        if isinstance(node, cst.IndentedBlock) and any(s is statement for s in node.body):
            return list(node.body)
    return []


def receiver(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return ``x`` of ``x.method()``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.value
    return None


def reads(node: cst.CSTNode) -> set[str]:
    """Return the bare names and the attributes that a node mentions."""
    return {n.value for n in walk(node) if isinstance(n, cst.Name)}
