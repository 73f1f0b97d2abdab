"""What an expression can be: the values of the resolver.

An expression evaluates to *arms*: every value it can have, each with the condition under
which it has it. Objects are told apart by where they are made and by whom they are owned,
so that the target's and the draft's model runner stay two objects.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from specmap.codemap.condition import (
    FALSE,
    TRUE,
    Atom,
    AtomKind,
    Condition,
    Leaf,
    all_of,
    atoms_of,
    either,
    is_marked,
    negate,
    simplify,
    size_of,
)
from specmap.codemap.source import Span
from specmap.scan.absence import is_there, settle_absence
from specmap.scan.module import ClassInfo, FunctionInfo, Module

if TYPE_CHECKING:
    from specmap.scan.guards import Binding, Path


# What a walk knows: see Scope.
Facts = Mapping["str | tuple[Instance, str]", "Value"]


_EMPTY: Mapping[str, Any] = MappingProxyType({})


def _empty() -> Mapping[Any, Any]:
    """One empty mapping for all: there are hundreds of thousands of scopes."""
    return _EMPTY


@dataclass(eq=False, slots=True)
class Frame:
    """One activation of a function: who it runs on and what was passed.

    ``call`` is ``None`` when the function is looked at without a caller; parameters are
    then looked for at real call sites. ``closure`` is the scope of an enclosing function.
    """

    function: FunctionInfo | None
    module: Module
    self_value: Value | None = None
    call: ast.Call | None = None
    caller: Scope | None = None
    closure: Scope | None = None
    extra: Mapping[str, Arms] = field(default_factory=_empty)
    path: Path = ()

    @property
    def place(self) -> str:
        """A stable text for this call string, two calls deep."""
        parts: list[str] = []
        frame: Frame | None = self
        while frame is not None and frame.call is not None and len(parts) < 2:
            parts.append(f"{frame.call.lineno}:{frame.call.col_offset}")
            frame = frame.caller.frame if frame.caller else None
        return "<".join(parts)


@dataclass(eq=False, slots=True)
class Scope:
    """Where an expression is evaluated: a frame, its local names, and what a walk knows.

    ``facts`` holds the forward mode by class id of the batch object (``*`` for any other)
    and, under ``.name``, attributes that the walk takes for granted. Under an object and an
    attribute stands what the stores of the walk have put there.
    """

    frame: Frame
    env: Mapping[str, Binding] = field(default_factory=_empty)
    facts: Facts = field(default_factory=_empty)
    known: dict[ast.expr, Arms] | None = None
    truths: dict[ast.expr, Condition] | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """The constructor call that made an instance."""

    call: ast.Call
    scope: Scope


class Instance:
    """An object of a SGLang class; ``site`` and ``owner`` tell objects apart.

    Objects are keys everywhere, so their hash is computed once.
    """

    __slots__ = ("_hash", "cls", "origin", "owner", "rule", "site")

    def __init__(
        self,
        cls: ClassInfo,
        site: str,
        owner: Instance | None = None,
        origin: Origin | None = None,
        rule: str = "constructor",
    ) -> None:
        self.cls = cls
        self.site = site
        self.owner = owner
        self.origin = origin
        self.rule = rule
        self._hash = hash((cls, site, owner))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Instance) or self._hash != other._hash:
            return False
        return self.cls is other.cls and self.site == other.site and self.owner == other.owner


@dataclass(frozen=True, slots=True)
class ClassRef:
    """A class itself."""

    cls: ClassInfo


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A function, bound to ``self_value`` where it is a method."""

    function: FunctionInfo
    self_value: Value | None = None
    closure: Scope | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """A module of the tree."""

    module: Module


@dataclass(frozen=True, slots=True)
class External:
    """Something outside the tree, by dotted name; ``()`` marks the result of a call.

    ``source`` is the expression that produced it first: its text when it is a test.
    """

    name: str
    source: tuple[Module, ast.expr] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Const:
    """A Python constant."""

    value: object


@dataclass(frozen=True, slots=True)
class EnumMember:
    """A member of an enum class of the tree."""

    cls: ClassInfo
    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A tuple or list; ``items`` where the length is known, else ``element``.

    ``grows`` marks a list: other code may add to it, so that it may or may not be empty.
    Containers nest, so their hash is computed once.
    """

    items: tuple[Arms, ...] | None
    element: Arms = ()
    grows: bool = False
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.items, self.element, self.grows)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Table:
    """A dict: entries with constant keys, and what any other key gives."""

    entries: tuple[tuple[object, Arms], ...]
    other: Arms = ()
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.entries, self.other)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Truth:
    """A boolean known only as a condition."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Super:
    """``super()`` inside a method of ``after``."""

    after: ClassInfo
    self_value: Value


@dataclass(frozen=True, slots=True)
class Partial:
    """``functools.partial(function, ...)``, with the call that binds arguments."""

    target: Arms
    call: ast.Call
    scope: Scope = field(compare=False)


@dataclass(frozen=True, slots=True)
class Held:
    """What an attribute holds after the stores of a walk; only among the facts of a walk."""

    arms: Arms


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value nobody can tell, printed as the source writes it.

    ``plugin`` marks what only code outside the tree can supply (an out-of-tree platform,
    a registered factory).
    """

    text: str
    kind: AtomKind = AtomKind.UNKNOWN
    span: Span | None = field(default=None, compare=False)
    plugin: bool = False
    reason: str = field(default="", compare=False)


Value = (
    Instance
    | ClassRef
    | FunctionRef
    | ModuleRef
    | External
    | Const
    | EnumMember
    | Sequence
    | Table
    | Truth
    | Super
    | Partial
    | Held
    | Opaque
)


class Arm(NamedTuple):
    """One value an expression can have, and when."""

    value: Value
    condition: Condition = TRUE


Arms = tuple[Arm, ...]

NONE = Const(None)
_FALSE = Const(False)
# Past these sizes a condition or a set of arms says nothing a person could use.
_MAX_LEAVES = 400
_MAX_ARMS = 48
_SHORTER: dict[Condition, Condition] = {}
_SETTLED: dict[Condition, Condition] = {}
_TOO_LONG = Leaf(Atom("a condition too long to print", AtomKind.UNKNOWN))


def only(value: Value) -> Arms:
    """Return the arms of an expression with exactly one value."""
    return (Arm(value),)


def under(arms: Arms, condition: Condition) -> Arms:
    """Return the arms, each further restricted. Who uses a value takes it to be there."""
    if condition is TRUE or (condition := _present(condition)) is TRUE:
        return arms
    return tuple(
        Arm(value, bounded(condition if own is TRUE else all_of(condition, own)))
        for value, own in arms
    )


def _present(condition: Condition) -> Condition:
    if not is_marked(condition):
        return condition
    if condition not in _SETTLED:
        _SETTLED[condition] = settle_absence(condition, FALSE)
    return _SETTLED[condition]


def bounded(condition: Condition) -> Condition:
    """Return a condition, shortened or given up when it outgrows every use."""
    if size_of(condition) <= _MAX_LEAVES:
        return condition
    if size_of(condition) > 2 * _MAX_LEAVES:
        return _TOO_LONG
    if condition not in _SHORTER:
        shorter = simplify(condition)
        _SHORTER[condition] = shorter if size_of(shorter) <= _MAX_LEAVES else _TOO_LONG
    return _SHORTER[condition]


def outgrown(arms: Arms) -> bool:
    """Whether it can no longer be said in terms when a value with these arms is true."""
    there = (arm.condition for arm in arms if arm.value != _FALSE)
    return any(_TOO_LONG.atom in atoms_of(condition) for condition in there)


def unite(*groups: Arms) -> Arms:
    """Join arms; equal values are merged, impossible ones dropped, the number is capped."""
    groups = tuple(filter(None, groups))
    if len(groups) == 1 and len(groups[0]) == 1 and groups[0][0].condition is not FALSE:
        return groups[0]
    merged: dict[Value, list[Condition]] = {}
    for group in groups:
        for arm in group:
            if arm.condition is not FALSE:
                merged.setdefault(arm.value, []).append(arm.condition)
    return tuple(
        Arm(value, conditions[0] if len(conditions) == 1 else bounded(either(*conditions)))
        for value, conditions in list(merged.items())[:_MAX_ARMS]
    )


def optional(arms: Arms) -> Arms:
    """Return arms that an annotation also allows to be ``None``."""
    there = is_there()
    plain = tuple(arm for arm in arms if arm.value != NONE)
    kept = tuple(Arm(arm.value, all_of(there, arm.condition)) for arm in plain)
    return (*kept, Arm(NONE, negate(there)))


def one_of(arms: Arms) -> Arms:
    """Return arms of which one holds, where no test tells which: ``None`` may be it."""
    unset = {arm.condition for arm in arms if arm.value == NONE}
    tied = any(arm.value != NONE and arm.condition in unset for arm in arms)
    return optional(arms) if tied else arms


def is_known(arms: Arms) -> bool:
    """Whether at least one arm is more than an opaque text, ``None`` or a list of those."""
    return any(_is_known(arm.value) for arm in arms)


def _is_known(value: Value) -> bool:
    if isinstance(value, Sequence):
        elements = value.element if value.items is None else [a for i in value.items for a in i]
        return any(_is_known(arm.value) for arm in elements)
    return not isinstance(value, Opaque) and value != NONE
