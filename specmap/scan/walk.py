"""One walk through a worker: every call in the order it runs, down to the sinks.

A walk starts at the method that the scheduler calls, with one forward mode (a prefill, a
decode or an idle batch), and follows each call whose target is known. Tests that the mode,
the platform or a constant settle cut the other arm. What is met is noted: call edges, the
sinks with the whole chain that led there, and every expression with the number of passes
before it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from specmap.codemap.condition import FALSE, TRUE, Condition, all_of
from specmap.codemap.verdict import SinkKind
from specmap.scan.guards import Binding, Bound, Execution, Executor, Path, Store, Test
from specmap.scan.module import FunctionInfo
from specmap.scan.resolver import Resolver
from specmap.scan.sinks import Sinks
from specmap.scan.values import (
    Arm,
    ClassRef,
    Const,
    EnumMember,
    Facts,
    Frame,
    FunctionRef,
    Instance,
    Scope,
    Value,
)

_MAX_DEPTH = 48
_MAX_SCOPES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Hop:
    """One step of a chain: a call (or sink) inside a function, and what guards it."""

    function: FunctionInfo
    frame: Frame
    node: ast.Call
    path: Path
    condition: Condition


@dataclass(frozen=True, slots=True, eq=False)
class Hit:
    """A sink that a walk reached, with the chain from the worker's entry."""

    kind: SinkKind
    chain: tuple[Hop, ...]
    mode: EnumMember | None
    captured: bool = False


@dataclass(eq=False, slots=True)
class Seen:
    """An expression on the cycle; ``passes`` counts the sinks met before it."""

    node: ast.expr
    scope: Scope
    path: Path
    passes: int


@dataclass(eq=False)
class Activation:
    """A function the walk went through, with what it evaluated there."""

    function: FunctionInfo
    frame: Frame
    chain: tuple[Hop, ...]
    seen: list[Seen] = field(default_factory=list)
    run: Execution | None = None
    passes: tuple[int, int] = (0, 0)


@dataclass(eq=False)
class Site:
    """A call site with every target that any walk found for it."""

    function: FunctionInfo
    node: ast.Call
    path: Path
    targets: dict[Value, FunctionInfo | None] = field(default_factory=dict)
    scopes: list[Scope] = field(default_factory=list)
    is_sink: bool = False


@dataclass(frozen=True, slots=True)
class _Memo:
    hits: tuple[Hit, ...]
    facts: Facts


@dataclass(eq=False, slots=True)
class Subtree:
    """A call that reached no sink and changed no mode: the same for every walk."""

    activations: list[Activation]
    inner: list[tuple[Subtree, int]]


@dataclass(eq=False)
class Notes:
    """What the walks of one scan share: call sites and subtrees without sinks."""

    sites: dict[tuple[str, int, int], Site] = field(default_factory=dict)
    subtrees: dict[tuple[object, ...], Subtree] = field(default_factory=dict)


class Walk:
    """Walks one entry method of one worker with one kind of batch."""

    def __init__(
        self,
        resolver: Resolver,
        worker: Instance,
        kind: str,
        mode: EnumMember | None,
        notes: Notes,
        stop_at: frozenset[FunctionInfo] = frozenset(),
    ) -> None:
        self.stop_at = stop_at
        self.notes = notes
        self.resolver = resolver
        self.worker = worker
        self.kind = kind
        assumed = resolver.vocabulary.assumed.get(kind, {})
        self.facts: Facts = {f".{n}": Const(v) for n, v in assumed.items()}
        if mode is not None:
            self.facts = {**self.facts, "*": mode}
        self.sinks = Sinks(resolver)
        self.hits: list[Hit] = []
        self.used: list[tuple[Subtree, int]] = []
        self.activations: list[Activation] = []
        self._chain: list[Hop] = []
        self._memo: dict[tuple[object, ...], _Memo] = {}

    def run(self, entry: FunctionInfo, call: ast.Call | None = None, scope: Scope | None = None) -> None:
        """Walk from the entry; ``call`` is the scheduler's call site, for its arguments."""
        self._activate(entry, Frame(entry, entry.module, self.worker, call, scope))

    def _activate(self, function: FunctionInfo, frame: Frame) -> None:
        activation = Activation(function, frame, tuple(self._chain))
        self.activations.append(activation)
        before = len(self.hits)
        activation.run = _WalkExecutor(self, activation).run(function)
        activation.passes = (before, len(self.hits))

    def call(self, node: ast.Call, scope: Scope, path: Path, activation: Activation) -> None:
        """Handle one call: note it, end at a sink, or follow it."""
        function = activation.function
        key = (function.id, node.lineno, node.col_offset)
        site = self.notes.sites.setdefault(key, Site(function, node, path))
        kind = self.sinks.kind(node, scope, [hop.frame for hop in self._chain] + [activation.frame])
        if len(site.scopes) < _MAX_SCOPES:
            site.scopes.append(scope)
        if kind is not None:
            site.is_sink = True
            self._sink(kind, node, path, activation)
            return
        for arm, target in self.resolver.calls.targets(node, scope):
            if arm.condition == FALSE:
                continue
            site.targets[arm.value] = target
            if isinstance(arm.value, ClassRef):
                self._constructed(arm.value, node, scope)
            elif target is not None:
                self._follow(arm, target, node, scope, path, activation)

    def _sink(self, kind: SinkKind, node: ast.Call, path: Path, activation: Activation) -> None:
        hop = Hop(activation.function, activation.frame, node, path, TRUE)
        mode = self._mode_here(activation.frame)
        self.hits.append(Hit(kind, (*self._chain, hop), mode))

    def _mode_here(self, frame: Frame) -> EnumMember | None:
        """The forward mode of the batch that a frame holds (its parameters tell)."""
        current: Frame | None = frame
        while current is not None:
            for parameter in current.function.parameters if current.function else []:
                for arm in self.resolver.expressions.name(parameter.arg, Scope(current)):
                    value = arm.value
                    if isinstance(value, Instance) and value.cls.id in self.facts:
                        return _as_mode(self.facts[value.cls.id])
            current = current.caller.frame if current.caller else None
        return _as_mode(self.facts.get("*"))

    def _constructed(self, target: ClassRef, node: ast.Call, scope: Scope) -> None:
        """A batch object made with a forward mode carries that mode from here on."""
        for keyword in node.keywords:
            if keyword.arg in self.resolver.vocabulary.mode_attribute:
                self._set_mode(target.cls.id, keyword.value, scope)

    def _set_mode(self, key: str, value: ast.expr, scope: Scope) -> None:
        members = [
            arm.value
            for arm in self.resolver.evaluate(value, scope)
            if isinstance(arm.value, EnumMember) and arm.condition != FALSE
        ]
        if members and self.facts.get(key) != members[0]:
            self.facts = {**self.facts, key: members[0]}

    def store(self, store: Store) -> None:
        """An assignment to a batch's forward mode changes it for what follows."""
        if store.target.attr not in self.resolver.vocabulary.mode_attribute or store.index:
            return
        keys = [
            arm.value.cls.id
            for arm in self.resolver.evaluate(store.target.value, store.scope)
            if isinstance(arm.value, Instance)
        ]
        for key in keys or ["*"]:
            self._set_mode(key, store.value, store.scope)

    def _follow(
        self,
        arm: Arm,
        target: FunctionInfo,
        node: ast.Call,
        scope: Scope,
        path: Path,
        activation: Activation,
    ) -> None:
        if not self._may_follow(target, activation):
            return
        value = arm.value
        this = value.self_value if isinstance(value, FunctionRef) else value
        closure = value.closure if isinstance(value, FunctionRef) else None
        hop = Hop(activation.function, activation.frame, node, path, arm.condition)
        if self._is_detail(target):
            self._detail(hop, target, Frame(target, target.module, this, node, scope, closure))
            return
        arguments = self._arguments(node, scope)
        facts = frozenset(self.facts.items())
        shared = (target, _kind_of(this), facts, tuple(_kind_of(v) for v in arguments))
        if shared in self.notes.subtrees:
            self.used.append((self.notes.subtrees[shared], len(self.hits)))
            return
        key = (target, this, facts, arguments)
        memo = self._memo.get(key)
        if memo is not None:
            prefix = (*self._chain, hop)
            self.hits += [Hit(h.kind, prefix + h.chain, h.mode) for h in memo.hits]
            self.facts = memo.facts
            return
        frame = Frame(target, target.module, this, node, scope, closure)
        self._descend(hop, target, frame, key, shared)

    def _is_detail(self, target: FunctionInfo) -> bool:
        """Whether code lies below the folders that drive passes: backends, pools, layers."""
        return not target.module.file.startswith(self.resolver.vocabulary.scope)

    def _detail(self, hop: Hop, target: FunctionInfo, frame: Frame) -> None:
        """Walk code that starts no pass once per class, whatever the forward mode."""
        key = (target, _kind_of(frame.self_value))
        subtree = self.notes.subtrees.get(key)
        if subtree is None:
            subtree = Subtree([], [])
            self.notes.subtrees[key] = subtree
            before, facts = len(self.hits), self.facts
            activations, used = len(self.activations), len(self.used)
            self.facts = {}
            self._chain.append(hop)
            try:
                self._activate(target, frame)
            finally:
                self._chain.pop()
                self.facts = facts
            if len(self.hits) > before:
                del self.notes.subtrees[key]
                return
            subtree.activations += self.activations[activations:]
            subtree.inner += self.used[used:]
            del self.activations[activations:], self.used[used:]
        self.used.append((subtree, len(self.hits)))

    def _may_follow(self, target: FunctionInfo, activation: Activation) -> bool:
        if self.resolver.is_boundary(target.module.name) or len(self._chain) > _MAX_DEPTH:
            return False
        if target in self.stop_at or any("jit" in decorator for decorator in target.decorators):
            return False
        return activation.function is not target and all(
            hop.function is not target for hop in self._chain
        )

    def _descend(
        self,
        hop: Hop,
        target: FunctionInfo,
        frame: Frame,
        key: tuple[object, ...],
        shared: tuple[object, ...],
    ) -> None:
        before, depth, facts = len(self.hits), len(self._chain) + 1, self.facts
        activations, used = len(self.activations), len(self.used)
        self._chain.append(hop)
        try:
            self._activate(target, frame)
        finally:
            self._chain.pop()
        found = tuple(Hit(h.kind, h.chain[depth:], h.mode) for h in self.hits[before:])
        if found or self.facts != facts:
            self._memo[key] = _Memo(found, self.facts)
            return
        subtree = Subtree(self.activations[activations:], self.used[used:])
        del self.activations[activations:], self.used[used:]
        self.notes.subtrees[shared] = subtree
        self.used.append((subtree, before))

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[Value, ...]:
        """The structural arguments of a call: objects, classes, functions, constants."""
        found: list[Value] = []
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            for arm in self.resolver.evaluate(argument, scope):
                if isinstance(arm.value, Instance | ClassRef | FunctionRef | Const | EnumMember):
                    found.append(arm.value)
        return tuple(found)


def _as_mode(value: Value | None) -> EnumMember | None:
    return value if isinstance(value, EnumMember) else None


def _kind_of(value: Value | None) -> object:
    """An object by its class only: what a walk without sinks depends on."""
    return value.cls if isinstance(value, Instance) else value


class _WalkExecutor(Executor):
    """Runs a body for a walk: visits calls in order and settles tests it can settle."""

    def __init__(self, walk: Walk, activation: Activation) -> None:
        super().__init__(activation.frame)
        self._walk = walk
        self._activation = activation
        self._saved: list[Facts] = []

    def scope(self, env: Mapping[str, Binding]) -> Scope:
        return Scope(self.frame, env, self._walk.facts)

    def decide(self, node: ast.expr, scope: Scope) -> bool | None:
        truth = self._walk.resolver.truth(node, scope)
        self._saved.append(self._walk.facts)
        if truth == TRUE or truth == FALSE:
            self._saved.pop()
            return truth == TRUE
        return None

    def between_arms(self, falls_through: bool) -> None:
        after_then = self._walk.facts if falls_through else None
        before = self._saved[-1]
        self._saved[-1] = before if after_then is None else after_then
        self._walk.facts = before

    def after_arms(self, then_falls: bool, else_falls: bool) -> None:
        after_then = self._saved.pop()
        if then_falls and (not else_falls or after_then is not self._walk.facts):
            if not else_falls:
                self._walk.facts = after_then

    def on_expression(self, node: ast.expr, scope: Scope, path: Path) -> None:
        super().on_expression(node, scope, path)
        self._activation.seen.append(Seen(node, scope, path, len(self._walk.hits)))
        self._visit(node, scope, path)

    def on_store(self, store: Store) -> None:
        super().on_store(store)
        self._walk.store(store)

    def _visit(self, node: ast.AST, scope: Scope, path: Path) -> None:
        if isinstance(node, ast.BoolOp):
            self._visit_boolean(node, scope, path)
        elif isinstance(node, ast.IfExp):
            self._visit_choice(node, scope, path)
        elif isinstance(node, ast.Lambda):
            return
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            self._visit_comprehension(node, scope, path)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr | ast.keyword | ast.Slice | ast.FormattedValue):
                    self._visit(child, scope, path)
            if isinstance(node, ast.Call):
                self._walk.call(node, self._current(scope), path, self._activation)

    def _current(self, scope: Scope) -> Scope:
        """The scope with the modes as they are now: an argument's call may have set one."""
        if scope.facts is self._walk.facts:
            return scope
        return Scope(scope.frame, scope.env, self._walk.facts)

    def _visit_boolean(self, node: ast.BoolOp, scope: Scope, path: Path) -> None:
        goes_on = isinstance(node.op, ast.And)
        stop = FALSE if goes_on else TRUE
        for value in node.values:
            self._visit(value, scope, path)
            if self._walk.resolver.truth(value, scope) == stop:
                return
            path = (*path, Test(value, scope, goes_on))

    def _visit_choice(self, node: ast.IfExp, scope: Scope, path: Path) -> None:
        self._visit(node.test, scope, path)
        truth = self._walk.resolver.truth(node.test, scope)
        if truth != FALSE:
            self._visit(node.body, scope, (*path, Test(node.test, scope, True)))
        if truth != TRUE:
            self._visit(node.orelse, scope, (*path, Test(node.test, scope, False)))

    def _visit_comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        scope: Scope,
        path: Path,
    ) -> None:
        env = dict(scope.env)
        for generator in node.generators:
            outer = Scope(scope.frame, env, scope.facts)
            self._visit(generator.iter, outer, path)
            if isinstance(generator.target, ast.Name):
                env[generator.target.id] = Bound(generator.iter, outer, (None,))
        inner = Scope(scope.frame, env, scope.facts)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in parts:
            self._visit(part, inner, path)


def hop_condition(resolver: Resolver, hops: tuple[Hop, ...]) -> Condition:
    """Return the condition of the last hop, seen from the first."""
    return all_of(*(all_of(resolver.condition(hop.path), hop.condition) for hop in hops))
