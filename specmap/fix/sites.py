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
    """Yield the waits of some rules on the cycle of a worker that can be launched."""
    launched = {worker.id for worker in tree.codemap.workers if worker.reachable}
    for sync in tree.codemap.syncs:
        on_cycle = sync.phase_between and not sync.captured and sync.kind is not SyncKind.NONE
        if not on_cycle or sync.rule not in rules or launched.isdisjoint(sync.workers):
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


_MUTATORS = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"})


def bindings(function: cst.FunctionDef, name: str) -> list[cst.CSTNode]:
    """Return the statements, loops and other places that bind a name in a function."""
    targets = [
        (n, n.target)
        for n in walk(function.body)
        if isinstance(n, cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.For | cst.NamedExpr)
    ]
    return [
        node for node, target in targets
        if any(isinstance(t, cst.Name) and t.value == name for t in _names_of(target))
    ]  # fmt: skip


def _names_of(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _names_of(element.value)
    else:
        yield target


def mutations(function: cst.FunctionDef, name: str) -> list[cst.CSTNode]:
    """Return where a list or tensor may be changed in place through its name.

    Methods that end with an underscore or change a list, stores through an index, and
    ``name += ...``.
    """
    found: list[cst.CSTNode] = []
    for node in walk(function.body):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            method = node.func.attr.value
            if _is(node.func.value, name) and (method in _MUTATORS or method.endswith("_")):
                found.append(node)
        elif isinstance(node, cst.AssignTarget | cst.AugAssign | cst.Del):
            target = node.target
            inner = target.value if isinstance(target, cst.Subscript) else None
            if _is(inner, name) or (isinstance(node, cst.AugAssign) and _is(target, name)):
                found.append(node)
    return found


def _is(node: cst.CSTNode | None, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def bare_uses(function: cst.FunctionDef, name: str) -> list[cst.CSTNode]:
    """Return the places that hand a name on: into a call, another name, a container."""
    read = [
        n.value
        for n in walk(function.body)
        if isinstance(n, cst.Attribute | cst.Subscript) and _is(n.value, name)
    ]
    indexed = [
        n.value for n in walk(function.body) if isinstance(n, cst.Index) and _is(n.value, name)
    ]
    bound = [t for n in bindings(function, name) for t in walk(n) if _is(t, name)]
    keywords = [n.keyword for n in walk(function.body) if isinstance(n, cst.Arg) and n.keyword]
    attributes = [n.attr for n in walk(function.body) if isinstance(n, cst.Attribute)]
    known = {id(n) for n in (*read, *indexed, *bound[:1], *keywords, *attributes)}
    return [n for n in walk(function.body) if _is(n, name) and id(n) not in known]
