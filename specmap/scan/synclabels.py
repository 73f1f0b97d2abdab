"""Why a host synchronisation is there: can it go, or does the host need the value?

The rules, first match wins:

1. On a CPU tensor nothing waits: ``cpu-tensor``.
2. A word of the vocabulary in the operation, the enclosing function or a guard that holds:
   ``grammar``, ``logprob``, ``debug``, ``sampling``.
3. A wait for a stream or event is ``removable`` where the same function copies into a host
   mirror (only the mirror's reader needs it), else ``unavoidable``.
4. A copy to the device (pinned memory and ``non_blocking`` avoid the wait) and every
   implicit one (a static shape, a host bound or ``torch.where`` avoids it): ``removable``.
5. A read back is ``removable`` when the host has the value already (a ``*_cpu`` twin, unless
   a guard says that it is missing; or the same tensor, or one it is computed from, was read
   earlier in the function), and when it only sizes an allocation.
6. A read back whose value Python uses afterwards is ``unavoidable``, any other ``removable``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from specmap.codemap.graph import SyncKind
from specmap.scan import tensors
from specmap.scan.guards import Binding, Bound, Choice, Path, Test
from specmap.scan.idioms import Idiom
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.nodes import children, nodes_in
from specmap.scan.resolver import Resolver
from specmap.scan.values import Instance, Scope
from specmap.scan.walked import Hop

REMOVABLE, UNAVOIDABLE, CPU_TENSOR = "removable", "unavoidable", "cpu-tensor"
_MAX_DEPTH = 4


class Body:
    """Where the expressions of one function stand: in tests, as sizes, bound to names."""

    def __init__(self, function: FunctionInfo) -> None:
        self.function = function
        self.tests: set[int] = set()
        self.raised: set[int] = set()
        self.masked: dict[int, tuple[ast.Subscript, ast.expr]] = {}
        self._parents: dict[int, ast.AST] = {}
        for node in nodes_in(function.node):
            if isinstance(node, ast.If | ast.While | ast.Assert):
                self.tests.add(id(node.test))
            elif isinstance(node, ast.Raise):
                self.raised.add(id(node.exc))
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Subscript):
                        self.masked[id(target.slice)] = (target, node.value)
            for child in children(node):
                self._parents[id(child)] = node

    @cached_property
    def mirrors_copy(self) -> bool:
        """Whether the function copies to the host without waiting."""
        for call in self.function.facts.calls:
            if not tensors.flag(call, "non_blocking"):
                continue
            text = ast.unparse(call)
            if "cpu" in text or "pinned" in text:
                return True
        return False

    def parents(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the enclosing nodes, innermost first."""
        current = self._parents.get(id(node))
        while current is not None:
            yield current
            current = self._parents.get(id(current))

    def sizes_allocation(self, node: ast.expr) -> bool:
        """Whether a value is only the size in ``torch.empty(...)`` and its like."""
        for parent in self.parents(node):
            if isinstance(parent, ast.Call):
                if last_name(parent.func) in tensors.SIZED | tensors.SIZED_METHODS:
                    return True
                if last_name(parent.func) not in ("int", "max", "min"):
                    return False
            elif not isinstance(parent, ast.Tuple | ast.List | ast.BinOp):
                return False
        return False

    def used_on_host(self, node: ast.expr) -> bool:
        """Whether Python reads the value: in place, or later through the name it is bound to."""
        for parent in self.parents(node):
            if isinstance(parent, ast.Assign | ast.AnnAssign):
                targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
                return any(self._is_read(target, node) for target in targets)
            if isinstance(parent, ast.Call) and _is_argument(node, parent):
                return True
            if isinstance(parent, ast.If | ast.While | ast.For | ast.Subscript | ast.Compare):
                return True
            if isinstance(parent, ast.stmt):
                return isinstance(parent, ast.Return | ast.AugAssign)
        return False

    def _is_read(self, target: ast.expr, node: ast.expr) -> bool:
        text = ast.unparse(target)
        return any(
            isinstance(other, ast.Name | ast.Attribute)
            and isinstance(other.ctx, ast.Load)
            and other.lineno > node.lineno
            and ast.unparse(other) == text
            for other in nodes_in(self.function.node)
        )


class Labels:
    """Labels the synchronisations of one tree."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._words = resolver.vocabulary.labels

    def label(
        self,
        idiom: Idiom,
        scope: Scope,
        path: Path,
        body: Body,
        chain: tuple[Hop, ...],
        earlier: list[ast.expr],
    ) -> str:
        """Return the label of one operation; ``earlier`` are the operands read before it."""
        if idiom.kind is SyncKind.NONE:
            return CPU_TENSOR
        special = self._special(idiom, path, body, chain)
        if special:
            return special
        if idiom.rule == "synchronize":
            return REMOVABLE if body.mirrors_copy else UNAVOIDABLE
        if idiom.kind is SyncKind.IMPLICIT or idiom.rule == "host-to-device":
            return REMOVABLE
        assert idiom.operand is not None
        twin = self._twin(idiom.operand, scope)
        if twin:
            return UNAVOIDABLE if _mentions(path, twin) else REMOVABLE
        if self._read_before(idiom.operand, scope, earlier):
            return REMOVABLE
        if body.sizes_allocation(idiom.node):
            return REMOVABLE
        return UNAVOIDABLE if body.used_on_host(idiom.node) else REMOVABLE

    def _special(self, idiom: Idiom, path: Path, body: Body, chain: tuple[Hop, ...]) -> str | None:
        here = f"{body.function.qualname} {body.function.module.text(idiom.node)}"
        outer = tuple(item for hop in chain for item in hop.path)
        for label, words in self._words.items():
            if _has(here, words) or any(_holds(item, words) for item in (*outer, *path)):
                return label
        return None

    def _twin(self, operand: ast.expr, scope: Scope) -> str | None:
        """The name under which the host keeps the same value, if it does."""
        suffixes = [w for w in self._resolver.vocabulary.cpu_names if w.startswith("_")]
        for part in nodes_in(operand):
            if isinstance(part, ast.Attribute):
                for arm in self._resolver.evaluate(part.value, scope):
                    if isinstance(arm.value, Instance):
                        for name in (part.attr + suffix for suffix in suffixes):
                            if self._has_attribute(arm.value, name):
                                return name
            elif isinstance(part, ast.Name):
                for name in (part.id + suffix for suffix in suffixes):
                    function = scope.frame.function
                    if name in scope.env or (function and name in function.positions):
                        return name
        return None

    def _has_attribute(self, instance: Instance, name: str) -> bool:
        line = self._resolver.types.mro(instance.cls)
        return any(name in cls.annotations or name in cls.stores for cls in line)

    def _read_before(self, operand: ast.expr, scope: Scope, earlier: list[ast.expr]) -> bool:
        known = {text for node in earlier for text in _places(node)}
        return bool(known & set(self._origins(operand, scope, 0)))

    def _origins(self, node: ast.expr, scope: Scope, depth: int) -> Iterator[str]:
        """Yield the names and attributes that a value is computed from."""
        yield from _places(node)
        if depth >= _MAX_DEPTH:
            return
        for part in nodes_in(node):
            if isinstance(part, ast.Name):
                for bound in _bindings(scope.env.get(part.id)):
                    if bound.node is not node:
                        yield from self._origins(bound.node, bound.scope, depth + 1)


def _is_argument(node: ast.expr, call: ast.Call) -> bool:
    """Whether a call takes the value; a cast and a method of the value only pass it on."""
    if last_name(call.func) in ("int", "float", "bool"):
        return False
    return all(inner is not node for inner in nodes_in(call.func))


def _bindings(binding: Binding | None) -> Iterator[Bound]:
    if isinstance(binding, Bound):
        yield binding
    elif isinstance(binding, Choice):
        yield from _bindings(binding.then)
        yield from _bindings(binding.other)


def _places(node: ast.expr) -> Iterator[str]:
    """The tensors an expression reads, as written: ``accept_index``, ``self.predict``."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield ast.unparse(node)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and last_name(node.func.value) != "torch":
            yield from _places(node.func.value)
        for part in node.args:
            yield from _places(part)
    else:
        for child in children(node):
            if isinstance(child, ast.expr):
                yield from _places(child)


def _has(text: str, words: tuple[str, ...]) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in words)


def _holds(item: object, words: tuple[str, ...]) -> bool:
    """Whether a guard with one of the words holds here (``if not x`` and ``else`` undo it)."""
    if not isinstance(item, Test):
        return False
    node, branch = item.node, item.branch
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node, branch = node.operand, not branch
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is):
        branch = not branch
    return branch and _has(ast.unparse(node), words)


def _mentions(path: Path, name: str) -> bool:
    return any(
        isinstance(item, Test)
        and any(last_name(n) == name for n in nodes_in(item.node) if isinstance(n, ast.expr))
        for item in path
    )
