"""What one pass over a function's nodes tells: its stores, calls, assignments and tests."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from specmap.scan.nodes import nodes_in

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def set_attribute(node: ast.AST) -> str | None:
    """Return the attribute that ``setattr(x, "name", value)`` stores to."""
    if isinstance(node, ast.Call) and _sets(node) and isinstance(node.args[1], ast.Constant):
        return str(node.args[1].value)
    return None


def stored_by_call(node: ast.AST) -> tuple[ast.Attribute, ast.expr] | None:
    """Return the attribute that a call stores to or takes away, and its value: None if taken."""
    name = set_attribute(node)
    if name is not None:
        assert isinstance(node, ast.Call)
        attribute = ast.Attribute(node.args[0], name, ast.Store())
        return ast.copy_location(attribute, node), node.args[2]
    taken = taken_away(node)
    return (taken, ast.copy_location(ast.Constant(None), taken)) if taken else None


def sets_unwritten(call: ast.Call) -> bool:
    """Whether a call is one of ``setattr`` by a name that is not written there."""
    return _sets(call) and not isinstance(call.args[1], ast.Constant)


def _sets(call: ast.Call) -> bool:
    """Whether a call is ``setattr(x, name, value)`` or ``object.__setattr__(x, name, value)``."""
    name = getattr(call.func, "id", "") or getattr(call.func, "attr", "")
    return name in ("setattr", "__setattr__") and len(call.args) == 3


def taken_away(node: ast.AST) -> ast.Attribute | None:
    """Return ``x.name`` for ``delattr(x, "name")`` and ``vars(x).pop("name")``."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
    if name in ("delattr", "__delattr__") and isinstance(node.args[-1], ast.Constant):
        taken = ast.Attribute(node.args[0], str(node.args[-1].value), ast.Store())
        return ast.copy_location(taken, node)
    if name == "pop" and isinstance(node.func, ast.Attribute):
        entry = ast.Subscript(node.func.value, node.args[0], ast.Store())
        return stored_by_name(ast.copy_location(entry, node))
    return None


def stored_to(target: ast.expr) -> ast.Attribute | None:
    """Return the attribute that a target stands for, written as one or by its name."""
    if isinstance(target, ast.Subscript):
        return stored_by_name(target)
    return target if isinstance(target, ast.Attribute) else None


def stored_by_name(target: ast.Subscript) -> ast.Attribute | None:
    """Return ``x.name`` for a store to ``x.__dict__["name"]`` or ``vars(x)["name"]``."""
    table, key = target.value, target.slice
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return None
    if isinstance(table, ast.Attribute) and table.attr == "__dict__":
        holder = table.value
    elif isinstance(table, ast.Call) and getattr(table.func, "id", "") == "vars" and table.args:
        holder = table.args[0]
    else:
        return None
    return ast.copy_location(ast.Attribute(holder, key.value, ast.Store()), target)


@dataclass(eq=False, slots=True)
class Assigned:
    """An assignment, with or without an annotation: its ``node``, targets and value."""

    node: ast.Assign | ast.AnnAssign
    targets: Sequence[ast.expr]
    value: ast.expr

    @property
    def names(self) -> list[str]:
        """The local names that get the value."""
        return [target.id for target in self.targets if isinstance(target, ast.Name)]


class Renewal(NamedTuple):
    """``x.a = f(x.a)``: a value that is made of the one before, and where that was read."""

    target: ast.Attribute
    reads: tuple[ast.Attribute, ...]


@dataclass(eq=False, slots=True)
class BodyFacts:
    """What one pass over a function's nodes tells: stores by attribute, calls, tests."""

    stores: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)
    renewed: dict[str, list[Renewal]] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    calls: list[ast.Call] = field(default_factory=list)
    assigns: list[Assigned] = field(default_factory=list)
    tests: list[ast.expr] = field(default_factory=list)
    returned: list[ast.expr] = field(default_factory=list)
    has_walrus: bool = False


_TELLING = frozenset(
    {
        ast.AnnAssign,
        ast.Assign,
        ast.Attribute,
        ast.Call,
        ast.If,
        ast.IfExp,
        ast.NamedExpr,
        ast.Return,
        ast.Subscript,
    }
)


def same_place(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are one local name, or one chain of attributes of it."""
    if isinstance(one, ast.Attribute) and isinstance(other, ast.Attribute):
        return one.attr == other.attr and same_place(one.value, other.value)
    return isinstance(one, ast.Name) and isinstance(other, ast.Name) and one.id == other.id


def _renewed(assigns: list[Assigned], names: set[str]) -> dict[str, list[Renewal]]:
    """Return the attributes that get a value made of their own, maybe by local names."""
    found: dict[str, list[Renewal]] = defaultdict(list)
    behind: dict[str, tuple[ast.Attribute, ...]] = {}
    pairs = [pair for a in sorted(assigns, key=lambda a: a.node.lineno) for pair in _pairs(a)]
    for target, value in pairs:
        reads: tuple[ast.Attribute, ...] = ()
        for node in nodes_in(value):
            if isinstance(node, ast.Attribute) and node.attr in names:
                reads += (node,)
            elif isinstance(node, ast.Name):
                reads += behind.get(node.id, ())
        if isinstance(target, ast.Name):
            behind[target.id] = reads
        elif isinstance(target, ast.Attribute):
            own = tuple(read for read in reads if same_place(read, target))
            if own:
                found[target.attr].append(Renewal(target, own))
    return dict(found)


def _pairs(assigned: Assigned) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target with its value; a tuple given to a tuple is taken apart."""
    value = assigned.value
    for target in assigned.targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from zip(target.elts, value.elts, strict=False)
        else:
            yield target, value


def body_facts(function: FunctionNode) -> BodyFacts:
    """Return what one pass over a function tells."""
    facts = BodyFacts()
    read: set[str] = set()
    for node in nodes_in(function):
        if type(node) not in _TELLING:
            continue
        if isinstance(node, ast.Call):
            facts.calls.append(node)
            node = taken_away(node) or node
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            node = stored_by_name(node) or node
        if isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                (facts.twice if node.attr in facts.stores else facts.stores).add(node.attr)
                if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                    facts.outside.add(node.attr)
            else:
                read.add(node.attr)
        elif isinstance(node, ast.Call):
            name = set_attribute(node)
            if name is not None:
                facts.stores.add(name)
                if getattr(node.args[0], "id", "") != "self":
                    facts.outside.add(name)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                if isinstance(node.func.value, ast.Attribute):
                    facts.stores.add(node.func.value.attr)
        elif isinstance(node, ast.Subscript):
            if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Attribute):
                facts.stores.add(node.value.attr)
        elif isinstance(node, ast.Assign):
            facts.assigns.append(Assigned(node, node.targets, node.value))
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                facts.assigns.append(Assigned(node, (node.target,), node.value))
        elif isinstance(node, ast.If | ast.IfExp):
            facts.tests.append(node.test)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                facts.returned.append(node.value)
        elif isinstance(node, ast.NamedExpr):
            facts.has_walrus = True
    if not read.isdisjoint(facts.stores):
        facts.renewed = _renewed(facts.assigns, read & facts.stores)
    return facts
