"""Turns what the walks met into records of the map."""

from __future__ import annotations

import ast

from specmap.codemap.graph import ClassRecord, Function, Guard
from specmap.codemap.source import Span
from specmap.scan.guards import Path, Test
from specmap.scan.module import ClassInfo, FunctionInfo, Module, last_name
from specmap.scan.resolver import Resolver
from specmap.scan.values import FunctionRef, Instance


def guards_of(path: Path, function: FunctionInfo, at: ast.AST) -> tuple[Guard, ...]:
    """Return the branch tests that lead to a place of a function, outermost first."""
    guards = []
    module = function.module
    for item in path:
        if isinstance(item, Test):
            guards.append(
                Guard(
                    module.text(item.node),
                    keyword_span(module, item.node),
                    item.branch,
                    function.id,
                    _encloses(module, item.node, at),
                )
            )
    return tuple(dict.fromkeys(guards))


def _encloses(module: Module, test: ast.expr, at: ast.AST) -> bool:
    """Whether a place stands inside the statement of a test, not after its early return."""
    owner = module.statement_of(test)
    if owner is None:
        return True
    return owner.lineno <= module.span(at).line <= (owner.end_lineno or owner.lineno)


def keyword_span(module: Module, node: ast.expr) -> Span:
    """Return the lines from a test's ``if``, ``elif`` or ``while`` to the test's end."""
    span = module.span(node)
    owner = module.statement_of(node)
    if isinstance(owner, ast.If | ast.While) and owner.test is node:
        return Span(span.file, owner.lineno, span.end_line)
    return span


def function_record(function: FunctionInfo, resolver: Resolver) -> Function:
    """Return the map's record of a function."""
    returns: list[str] = []
    frame = resolver.attributes.frame(
        resolver.any_instance(function.owner) if function.owner else None, function
    )
    types: tuple[str, ...] = ()
    if function.is_property or len(function.body) <= 2:
        run = resolver.attributes.execution(frame)
        for item in run.returns:
            if item.value is None:
                continue
            value = item.value.func if isinstance(item.value, ast.Call) else item.value
            targets = [a.value for a in resolver.evaluate(value, item.scope)]
            ids = [t.function.id for t in targets if isinstance(t, FunctionRef)]
            returns += ids or [function.module.text(value)]
    if function.is_property and isinstance(frame.self_value, Instance):
        found = resolver.calls.returned(frame)
        types = tuple(sorted(a.value.cls.id for a in found if isinstance(a.value, Instance)))
    return Function(
        function.id,
        function.qualname,
        function.span,
        function.is_property,
        tuple(dict.fromkeys(returns)),
        types,
    )


def class_record(cls: ClassInfo, resolver: Resolver) -> ClassRecord:
    """Return the map's record of a class."""
    line = resolver.types.mro(cls)
    inherited = {name for base in line[1:] for name in base.methods}
    methods = tuple(sorted(((m.name, m.span.line) for m in cls.methods.values()), key=_by_line))
    overrides = tuple(
        name for name, _ in methods if name in inherited and not name.startswith("__")
    )
    return ClassRecord(
        id=cls.id,
        name=cls.name,
        span=cls.span,
        bases=tuple(_base_id(base, cls, resolver) for base in cls.node.bases),
        mro=tuple(c.id for c in line),
        methods=methods,
        overrides=overrides,
        abstract=resolver.types.is_abstract(cls),
        getattr_delegates_line=_delegates_line(cls, resolver),
    )


def _by_line(item: tuple[str, int]) -> tuple[int, str]:
    return item[1], item[0]


def _base_id(base: ast.expr, cls: ClassInfo, resolver: Resolver) -> str:
    node = base.value if isinstance(base, ast.Subscript) else base
    for known in resolver.types.bases(cls):
        if known.name == last_name(node):
            return known.id
    return cls.module.text(node)


def _delegates_line(cls: ClassInfo, resolver: Resolver) -> int | None:
    found = resolver.members.delegate(cls)
    return found[0].span.line if found and found[0].owner is cls else None
