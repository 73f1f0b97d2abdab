"""What a walk notes: chains of calls, the sinks they end at, and what was evaluated.

Code below a call that reaches no sink is the same for every walk: it is kept once, with
the places that use it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from specmap.codemap.condition import Condition, all_of
from specmap.codemap.verdict import SinkKind
from specmap.scan.guards import Execution, Path
from specmap.scan.module import FunctionInfo
from specmap.scan.resolver import Resolver
from specmap.scan.values import EnumMember, Frame, Instance, Scope, Value


@dataclass(eq=False, slots=True)
class Hop:
    """One step of a chain: a call (or sink) inside a function, and what guards it."""

    function: FunctionInfo
    frame: Frame
    node: ast.Call
    path: Path
    condition: Condition


@dataclass(eq=False, slots=True)
class Hit:
    """A sink that a walk reached, with the chain from the worker's entry.

    ``on`` holds the objects that the sink's own call is made on: who calls
    ``runner.model.forward(...)`` need not be the runner.
    """

    kind: SinkKind
    chain: tuple[Hop, ...]
    mode: EnumMember | None
    on: tuple[Instance, ...] = ()


@dataclass(eq=False, slots=True)
class Seen:
    """An expression on the cycle; ``passes`` counts the sinks met before it."""

    node: ast.expr
    scope: Scope
    path: Path
    passes: int


@dataclass(eq=False, slots=True)
class Activation:
    """A function the walk went through, with what it evaluated there."""

    function: FunctionInfo
    frame: Frame
    chain: tuple[Hop, ...]
    seen: list[Seen] = field(default_factory=list)
    run: Execution | None = None
    passes: tuple[int, int] = (0, 0)


@dataclass(eq=False, slots=True)
class Site:
    """A call site with every target that any walk found for it."""

    function: FunctionInfo
    node: ast.Call
    path: Path
    targets: dict[Value, FunctionInfo | None] = field(default_factory=dict)
    scopes: list[Scope] = field(default_factory=list)
    is_sink: bool = False


@dataclass(eq=False, slots=True)
class Subtree:
    """A call that reached no sink and changed no mode: the same for every walk."""

    activations: list[Activation]
    inner: list[Use]


@dataclass(eq=False, slots=True)
class Use:
    """A place where a walk runs shared code: the sinks before it and the chain to it."""

    subtree: Subtree
    passes: int
    chain: tuple[Hop, ...]


@dataclass(eq=False)
class Notes:
    """What the walks of one scan share: call sites and subtrees without sinks."""

    sites: dict[tuple[str, int, int], Site] = field(default_factory=dict)
    subtrees: dict[tuple[object, ...], Subtree] = field(default_factory=dict)
    kinds: dict[Value, object] = field(default_factory=dict)


def hop_condition(resolver: Resolver, hops: tuple[Hop, ...]) -> Condition:
    """Return the condition of the last hop, seen from the first."""
    return all_of(*(all_of(resolver.condition(hop.path), hop.condition) for hop in hops))
