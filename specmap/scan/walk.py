"""One walk through a worker: every call in the order it runs, down to the sinks.

A walk starts at the method that the scheduler calls, with one forward mode (a prefill, a
decode or an idle batch), and follows each call whose target is known. Tests that the mode,
the platform or a constant settle cut the other arm. What is met is noted: call edges, the
sinks with the whole chain that led there, and every expression with the number of passes
before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from specmap.codemap.condition import FALSE, TRUE, Condition
from specmap.codemap.verdict import SinkKind
from specmap.scan import windows
from specmap.scan.guards import Path, Store
from specmap.scan.managers import Managers
from specmap.scan.modefacts import modes_of, new_mode
from specmap.scan.module import FunctionInfo
from specmap.scan.nodes import arguments_of
from specmap.scan.resolver import Resolver
from specmap.scan.sinks import Sinks
from specmap.scan.values import (
    NONE,
    Arm,
    Arms,
    ClassRef,
    Const,
    EnumMember,
    Facts,
    Frame,
    FunctionRef,
    Instance,
    Scope,
    Value,
    optional,
)
from specmap.scan.walkbody import WalkExecutor
from specmap.scan.walked import Activation, Hit, Hop, Notes, Site, Subtree, Use

_MAX_DEPTH = 48
_SETTLING = (NONE, Const(True), Const(False))
_MAX_SCOPES = 4


@dataclass(frozen=True, slots=True)
class _Memo:
    hits: tuple[Hit, ...]
    facts: Facts
    yielded: Facts
    made: frozenset[str]


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
        # How many batches of a class were made with a mode of their own.
        self.made: Mapping[str, int] = {}
        self.sinks = Sinks(resolver)
        self.hits: list[Hit] = []
        self.used: list[Use] = []
        self.in_detail = False
        self.activations: list[Activation] = []
        # What the function that was walked last knows where it yields.
        self.yielded: Facts = {}
        self.managers = Managers(self)
        self._chain: list[Hop] = []
        self._memo: dict[tuple[object, ...], _Memo] = {}

    def run(
        self, entry: FunctionInfo, call: ast.Call | None = None, scope: Scope | None = None
    ) -> None:
        """Walk from the entry; ``call`` is the scheduler's call site, for its arguments."""
        frame = Frame(entry, entry.module, self.worker, call, scope)
        given: dict[str, Arms] = {}
        if call is not None:
            names = [p.arg for p in entry.parameters if p.arg != "self"]
            given = {name: self._given(frame, name) for name in names}
        self._activate(entry, replace(frame, extra=given))

    def _given(self, frame: Frame, name: str) -> Arms:
        """A parameter of the entry: what it holds, not why the scheduler passes it."""
        arms = self.resolver.parameters.value(frame, name)
        plain = tuple(Arm(arm.value) for arm in arms)
        return optional(plain) if len(plain) > 1 and Arm(NONE) in plain else plain

    def _activate(self, function: FunctionInfo, frame: Frame) -> None:
        activation = Activation(function, frame, tuple(self._chain))
        self.activations.append(activation)
        before = len(self.hits)
        activation.run = WalkExecutor(self, activation).run(function)
        activation.passes = (before, len(self.hits))

    def call(self, node: ast.Call, scope: Scope, path: Path, activation: Activation) -> None:
        """Handle one call: note it, end at a sink, or follow it."""
        function = activation.function
        key = (function.id, node.lineno, node.col_offset)
        site = self.notes.sites.get(key)
        if site is None:
            site = self.notes.sites[key] = Site(function, node, path)
        kind = self.sinks.kind(node, scope, [hop.frame for hop in self._chain] + [activation.frame])
        if len(site.scopes) < _MAX_SCOPES:
            site.scopes.append(scope)
        if kind is not None:
            site.is_sink = True
            self._sink(kind, node, scope, path, activation)
            return
        doubt = self.sinks.doubt(node, scope, activation.frame)
        if doubt is not None:
            self._sink(SinkKind.GRAPH, node, scope, path, activation, doubt)
        receiver = getattr(node.func, "value", node.func)
        for arm, target in self.resolver.calls.targets(node, scope):
            this = getattr(arm.value, "self_value", None)
            if arm.condition == FALSE or (
                this is not None and self.resolver.comparisons.ruled_out(this, receiver, path)
            ):
                continue
            site.targets[arm.value] = target
            if isinstance(arm.value, ClassRef):
                self._constructed(arm.value, node, scope)
            elif target is not None:
                before = self.facts
                self.yielded = before
                self.follow(arm, target, node, scope, path, activation)
                if target.is_context_manager:
                    self.managers.suspend(node, before, self.yielded)
                else:
                    self.facts = windows.maybe(before, self.facts, arm.condition)

    def _sink(
        self,
        kind: SinkKind,
        node: ast.Call,
        scope: Scope,
        path: Path,
        activation: Activation,
        condition: Condition = TRUE,
    ) -> None:
        hop = Hop(activation.function, activation.frame, node, path, condition)
        mode = self._mode_here(activation.frame)
        self.hits.append(Hit(kind, (*self._chain, hop), mode, self.sinks.on(node, scope)))

    def _mode_here(self, frame: Frame) -> EnumMember | None:
        """The forward mode of the batch that a frame holds (its parameters tell)."""
        current: Frame | None = frame
        while current is not None:
            for parameter in current.function.parameters if current.function else []:
                for arm in self.resolver.names.name(parameter.arg, Scope(current)):
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
                self._count_made({target.cls.id})

    def _count_made(self, keys: Iterable[str]) -> None:
        self.made = {**self.made, **{key: self.made.get(key, 0) + 1 for key in keys}}

    def _set_mode(self, key: str, value: ast.expr, scope: Scope) -> None:
        mode = new_mode(self.resolver, value, scope)
        if self.kind == "capture" and mode is not None:
            mode = modes_of(mode)[0].value  # a runner captures in one mode
        if mode is not None and self.facts.get(key) != mode:
            self.facts = {**self.facts, key: mode}

    def store(self, store: Store) -> None:
        """An assignment to a batch's forward mode changes it for what follows.

        So does one to any attribute that gets its old value back.
        """
        if store.target.attr not in self.resolver.vocabulary.mode_attribute or store.index:
            self.facts = windows.after_store(self.resolver, store, self.facts)
            return
        keys = [
            arm.value.cls.id
            for arm in self.resolver.evaluate(store.target.value, store.scope)
            if isinstance(arm.value, Instance)
        ]
        for key in keys or ["*"]:
            self._set_mode(key, store.value, store.scope)

    def follow(
        self,
        arm: Arm,
        target: FunctionInfo,
        node: ast.Call,
        scope: Scope,
        path: Path,
        activation: Activation,
    ) -> None:
        """Walk a function that a call runs, or take what an earlier walk of it came to."""
        value = arm.value
        this = value.self_value if isinstance(value, FunctionRef) else value
        if not self._may_follow(target, this, activation):
            return
        closure = value.closure if isinstance(value, FunctionRef) else None
        hop = Hop(activation.function, activation.frame, node, path, arm.condition)
        if self._is_detail(target):
            self._detail(hop, target, Frame(target, target.module, this, node, scope, closure))
            return
        arguments = self._arguments(node, scope)
        facts = self.resolver.facts_key(self.facts)
        shared = (target, self._kind_of(this), facts, tuple(map(self._kind_of, arguments)))
        if shared in self.notes.subtrees:
            self._use(self.notes.subtrees[shared], len(self.hits), hop)
            return
        key = (target, this, facts, arguments)
        memo = self._memo.get(key)
        if memo is not None:
            prefix = (*self._chain, hop)
            self.hits += [Hit(h.kind, prefix + h.chain, h.mode, h.on) for h in memo.hits]
            self.facts, self.yielded = memo.facts, memo.yielded
            self._count_made(memo.made)
            return
        frame = Frame(target, target.module, this, node, scope, closure)
        self._descend(hop, target, frame, key, shared)

    def _is_detail(self, target: FunctionInfo) -> bool:
        """Whether code lies below the folders that drive passes: backends, pools, layers."""
        return not target.module.file.startswith(self.resolver.vocabulary.scope)

    def _detail(self, hop: Hop, target: FunctionInfo, frame: Frame) -> None:
        """Walk code that starts no pass once per class, whatever the forward mode.

        Constants that it is given may keep parts of it from running, so they count.
        """
        assert frame.call is not None and frame.caller is not None
        given = self._constants(frame.call, frame.caller)
        key = (target, self._kind_of(frame.self_value), given)
        subtree = self.notes.subtrees.get(key)
        if subtree is None:
            subtree = Subtree([], [])
            self.notes.subtrees[key] = subtree
            before, facts = len(self.hits), self.facts
            activations, used = len(self.activations), len(self.used)
            self.facts, outer = {}, self.in_detail
            self.in_detail = True
            self._chain.append(hop)
            try:
                self._activate(target, frame)
            finally:
                self._chain.pop()
                self.facts, self.in_detail = facts, outer
            if len(self.hits) > before:
                del self.notes.subtrees[key]
                # The code below knows no mode; the batch still has the one it came with.
                mode = self._mode_here(hop.frame)
                self.hits[before:] = [replace(hit, mode=mode) for hit in self.hits[before:]]
                return
            subtree.activations += self.activations[activations:]
            subtree.inner += self.used[used:]
            del self.activations[activations:], self.used[used:]
        self._use(subtree, len(self.hits), hop)

    def _kind_of(self, value: Value | None) -> object:
        """An object by its class and the constants it was made with.

        That is all that a walk without sinks depends on.
        """
        if not isinstance(value, Instance):
            return value
        if value not in self.notes.kinds:
            # As they are written: to ask for more here would change what others find later.
            given = enumerate(arguments_of(value.origin.call) if value.origin else ())
            made = tuple((i, a.value) for i, a in given if isinstance(a, ast.Constant))
            self.notes.kinds[value] = (value.cls, made)
        return self.notes.kinds[value]

    def _constants(self, call: ast.Call, scope: Scope) -> tuple[object, ...]:
        """Return which arguments of a call are one constant, and which."""
        found: list[object] = []
        for place, argument in enumerate(arguments_of(call)):
            arms = self.resolver.evaluate(argument, scope)
            if len(arms) == 1 and arms[0].value in _SETTLING:
                found.append((place, arms[0].value))
        return tuple(found)

    def _use(self, subtree: Subtree, passes: int, hop: Hop) -> None:
        """Note that shared code runs here, with the chain that leads to it."""
        self.used.append(Use(subtree, passes, (*self._chain, hop)))

    def _may_follow(self, target: FunctionInfo, this: Value | None, activation: Activation) -> bool:
        if self.resolver.is_boundary(target.module.name) or len(self._chain) > _MAX_DEPTH:
            return False
        if target in self.stop_at or any("jit" in decorator for decorator in target.decorators):
            return False
        if self.kind != "capture" and self._captures(target):
            return False
        frames = [activation.frame, *(hop.frame for hop in self._chain)]
        return all(f.function is not target or f.self_value != this for f in frames)

    def _captures(self, target: FunctionInfo) -> bool:
        """Whether a function captures graphs: what it runs is no pass of the cycle."""
        vocabulary, types = self.resolver.vocabulary, self.resolver.types
        if target.name not in vocabulary.capture_methods or target.owner is None:
            return False
        return any(types.method(target.owner, name) for name in vocabulary.decisions)

    def _descend(
        self,
        hop: Hop,
        target: FunctionInfo,
        frame: Frame,
        key: tuple[object, ...],
        shared: tuple[object, ...],
    ) -> None:
        before, depth, facts = len(self.hits), len(self._chain) + 1, self.facts
        made = self.made
        activations, used = len(self.activations), len(self.used)
        self._chain.append(hop)
        try:
            self._activate(target, frame)
        finally:
            self._chain.pop()
        found = tuple(Hit(h.kind, h.chain[depth:], h.mode, h.on) for h in self.hits[before:])
        if found or self.facts != facts or windows.difference(facts, self.yielded):
            new = frozenset(key for key, n in self.made.items() if n != made.get(key))
            self._memo[key] = _Memo(found, self.facts, self.yielded, new)
            return
        subtree = Subtree(self.activations[activations:], self.used[used:])
        del self.activations[activations:], self.used[used:]
        self.notes.subtrees[shared] = subtree
        self._use(subtree, before, hop)

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[Value, ...]:
        """The structural arguments of a call: objects, classes, functions, constants."""
        found: list[Value] = []
        for argument in arguments_of(node):
            for arm in self.resolver.evaluate(argument, scope):
                if isinstance(arm.value, Instance | ClassRef | FunctionRef | Const | EnumMember):
                    found.append(arm.value)
        return tuple(found)


def _as_mode(value: Value | None) -> EnumMember | None:
    last = modes_of(value)[-1].value if value is not None else None
    return last if isinstance(last, EnumMember) else None
