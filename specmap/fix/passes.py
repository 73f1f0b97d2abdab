"""The passes of a model runner: what they are called with, and what they return."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum

import libcst as cst

from specmap.codemap.source import file_of, qualname_of, symbol_id
from specmap.fix.facts import Facts
from specmap.fix.lost import Part, places
from specmap.fix.tree import Source, Tree


class Shape(StrEnum):
    """What a pass returns: ``logits`` alone, a ``pair`` of logits and flag, or an ``object``
    that has both as fields; ``unknown`` where its own ``return`` statements do not say."""

    LOGITS = "logits"
    PAIR = "pair"
    OBJECT = "object"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Pass:
    """A pass: its name, its parameters without ``self``, and what it returns.

    ``logits`` and ``flag`` are the fields of an ``object``.
    """

    name: str
    parameters: tuple[str, ...]
    shape: Shape
    logits: str = ""
    flag: str = ""

    def part(self, result: str, index: int) -> str:
        """Return the logits (0) or the flag (1) of a result of this pass."""
        if self.shape is Shape.OBJECT:
            return f"{result}.{(self.logits, self.flag)[index]}"
        return f"{result}[{index}]"


def asking_pass(tree: Tree, facts: Facts) -> Pass | None:
    """Find the model runner's method that leads to the graph runner's test."""
    classes = tree.names.scan.model_runner
    halves = tree.names.lists["eager_halves"]
    routes = [
        p.symbol
        for p in places(tree, facts)
        if p.part is Part.ROUTE
        and qualname_of(p.symbol).partition(".")[0] in classes
        and qualname_of(p.symbol).rpartition(".")[2] not in halves
    ]
    if not routes:
        return None
    inner = routes[0]
    owner = inner.rpartition(".")[0]
    outer = sorted(
        e.caller for e in tree.codemap.edges
        if inner in e.callees and e.caller.rpartition(".")[0] == owner
        and not qualname_of(e.caller).rpartition(".")[2].startswith("_")
    )  # fmt: skip
    symbol = outer[0] if outer else inner
    found = pass_of(tree, facts, inner)
    return Pass(
        qualname_of(symbol).rpartition(".")[2],
        _parameters(facts, symbol), found.shape, found.logits, found.flag,
    )  # fmt: skip


def pass_of(tree: Tree, facts: Facts, symbol: str) -> Pass:
    """Return a method as a pass; all of its ``return`` statements must agree."""
    function = facts.scope(symbol).function
    returned = [
        n.value for n in ast.walk(function or ast.Module([], []))
        if isinstance(n, ast.Return) and n.value is not None
    ]  # fmt: skip
    name, parameters = qualname_of(symbol).rpartition(".")[2], _parameters(facts, symbol)
    for value in returned:
        keys = _fields(facts, symbol, value) if isinstance(value, ast.Call) else []
        logits = next((k for k in keys if k in tree.names.lists["logits"]), "")
        flag = next((k for k in keys if k in tree.names.lists["graph_flag"]), "")
        if logits and flag:
            return Pass(name, parameters, Shape.OBJECT, logits, flag)
    shapes = {_shape(tree, value) for value in returned}
    return Pass(name, parameters, shapes.pop() if len(shapes) == 1 else Shape.UNKNOWN)


def _fields(facts: Facts, symbol: str, call: ast.Call) -> list[str]:
    """The fields that a call of a class fills, those without a name by the class's order."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    owner = facts.scope(symbol_id(file_of(symbol), name)).owner if name else None
    fields = [
        s.target.id for s in (owner.body if owner is not None else ())
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    ]  # fmt: skip
    return [*fields[: len(call.args)], *(k.arg or "" for k in call.keywords)]


def _shape(tree: Tree, value: ast.expr) -> Shape:
    if isinstance(value, ast.Tuple):
        flags = tree.names.lists["graph_flag"]
        last = ast.unparse(value.elts[-1])
        return Shape.PAIR if len(value.elts) == 2 and last in flags else Shape.UNKNOWN
    model = tree.names.scan.model_attribute
    if isinstance(value, ast.Call) and f".{model}." in f"{ast.unparse(value.func)}.":
        return Shape.LOGITS
    return Shape.UNKNOWN


def _parameters(facts: Facts, symbol: str) -> tuple[str, ...]:
    function = facts.scope(symbol).function
    return tuple(a.arg for a in function.args.args[1:]) if function is not None else ()


def called_pass(
    tree: Tree, facts: Facts, holder: str, source: Source, call: cst.Call
) -> Pass | None:
    """Return the model runner's method that a call means, by the map or else by its name."""
    first, last = source.lines(call)
    name = source.flat(call.func).rpartition(".")[2]
    known = {
        callee
        for e in tree.codemap.edges
        if e.caller == holder and first <= e.span.line <= last
        for callee in e.callees
        if callee.endswith(f".{name}")
    }
    classes = tree.names.scan.model_runner
    named = {f.id for f in tree.codemap.functions if f.qualname in {f"{c}.{name}" for c in classes}}
    found = {pass_of(tree, facts, symbol) for symbol in known or named}
    return found.pop() if len(found) == 1 else None


def worker_method(tree: Tree, facts: Facts) -> tuple[str, list[str]]:
    """Return the method by which workers run the target, and its parameters."""
    flags = set(tree.names.lists["verify_flag"])
    for function in tree.codemap.functions:
        name = function.qualname.rpartition(".")[2]
        if name in tree.names.scan.entry:
            names = _parameters(facts, function.id)
            if flags & set(names):
                return name, list(names)
    return "", []
