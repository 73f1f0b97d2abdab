"""What a pass over a function body notes: tests and paths, bindings, stores, returns.

Nothing here is evaluated: tests and bindings keep their scope and are evaluated when
somebody asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from specmap.scan.module import last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.values import Arms, Frame, Scope


@dataclass(eq=False, slots=True)
class Test:
    """One branch test with the scope it is evaluated in."""

    node: ast.expr
    scope: Scope
    branch: bool


@dataclass(eq=False, slots=True)
class Exit:
    """ "The function did not leave here": the negation of a whole path."""

    path: Path


@dataclass(eq=False, slots=True)
class Unseen:
    """A branch without a test: an exception was caught, a case matched."""

    node: ast.AST
    scope: Scope
    text: str


Path = tuple[Test | Exit | Unseen, ...]


@dataclass(eq=False, slots=True)
class Bound:
    """A name bound to an expression; ``index`` picks from a tuple (``None`` = an element)."""

    node: ast.expr
    scope: Scope
    index: tuple[int | None, ...] = ()
    annotation: ast.expr | None = None


@dataclass(eq=False, slots=True)
class Known:
    """A name bound to known arms (a nested function, an import, a parameter)."""

    arms: Arms


@dataclass(eq=False, slots=True)
class Imported:
    """A name bound by an import inside the function."""

    module: str
    name: str | None


@dataclass(eq=False, slots=True)
class Choice:
    """A name bound differently by the arms of a branch; ``None`` = not bound there."""

    path: Path
    then: Binding | None
    other: Binding | None


Binding = Bound | Known | Imported | Choice


@dataclass(eq=False, slots=True)
class Store:
    """An assignment to an attribute; ``item`` marks ``x.attr[...] = value`` and appends."""

    target: ast.Attribute
    value: ast.expr
    scope: Scope
    path: Path
    index: tuple[int | None, ...] = ()
    item: bool = False
    key: ast.expr | None = None
    annotation: ast.expr | None = None


@dataclass(eq=False, slots=True)
class Return:
    """A ``return`` (or ``yield``) with its value and path."""

    value: ast.expr | None
    scope: Scope
    path: Path


@dataclass(eq=False, slots=True)
class Execution:
    """Everything one pass over a body noted."""

    frame: Frame
    returns: list[Return] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    expressions: list[tuple[ast.expr, Scope, Path]] = field(default_factory=list)
    raises: bool = False

    def scope_of(self, node: ast.expr) -> tuple[Scope, Path] | None:
        """Return the scope and path of an expression inside this body."""
        line = node.lineno
        for root, scope, path in self.expressions:
            inside = root.lineno <= line <= (root.end_lineno or root.lineno)
            if inside and any(inner is node for inner in nodes_in(root)):
                return scope, path
        return None


def held(path: Path) -> Iterator[Test]:
    """Yield the single tests that hold where a path leads: parts of ``and``, without ``not``."""
    for item in path:
        if isinstance(item, Exit) and len(item.path) == 1 and isinstance(item.path[0], Test):
            inner = item.path[0]
            yield from _parts(Test(inner.node, inner.scope, not inner.branch))
        elif isinstance(item, Test):
            yield from _parts(item)


def _parts(test: Test) -> Iterator[Test]:
    node = test.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _parts(Test(node.operand, test.scope, not test.branch))
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) is test.branch:
        for value in node.values:
            yield from _parts(Test(value, test.scope, test.branch))
    else:
        yield test


def what_raises(node: ast.Try | ast.TryStar, handler: ast.ExceptHandler) -> str:
    """Return what makes a handler run; whether a package is there is a fact of the machine."""
    types = nodes_in(handler.type) if handler.type else []
    named = {last_name(kind) for kind in types if isinstance(kind, ast.expr)}
    imports = any(isinstance(n, ast.Import | ast.ImportFrom) for n in node.body)
    if imports or named & {"ImportError", "ModuleNotFoundError"}:
        return "an import fails"
    return "an exception is caught"
