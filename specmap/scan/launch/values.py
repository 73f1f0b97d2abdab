"""What an expression of SGLang's argument code evaluates to.

A value is a plain Python value (``None``, numbers, strings, tuples of values), one of the
mutable holders below, or one of the two ways of not knowing: :class:`Choice`, one of a few
plain values, and :class:`Unknown`. Both say what would settle them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

MOST_ALTERNATIVES = 8
MOST_REASONS = 12
MOST_OBJECTS = 400


class Absent:
    """The content of a slot that was never written."""


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Unknown:
    """Any value. ``reasons`` name the facts that would settle it."""

    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Either(Unknown):
    """One of a few values that are not all plain. What does not look into it sees an unknown."""

    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few plain values; ``reasons`` name the facts that would settle which."""

    values: tuple[object, ...]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Maybe:
    """A slot that holds ``value`` on some ways here and nothing on others."""

    value: object
    reasons: tuple[str, ...] = ()


class Holder:
    """Something with slots that a program can write. Compared by identity."""

    __slots__ = ("slots",)

    def __init__(self) -> None:
        self.slots: dict[str, object] = {}


class Scope(Holder):
    """The names of a function call, a class body, or a module."""

    __slots__ = ("nonlocals", "parent")

    def __init__(self, parent: Scope | None) -> None:
        super().__init__()
        self.parent = parent
        self.nonlocals: frozenset[str] = frozenset()


class Environment(Holder):
    """The environment variables. One that only some ways here set is there maybe."""


class Box(Holder):
    """A list, set or dict; its content is one immutable value in the slot ``""``.

    ``sites`` says where each key of a dict was written: file, line, last line.
    """

    __slots__ = ("kind", "sites")

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.sites: dict[object, tuple[str, int, int]] = {}


class Module(Scope):
    """A module of the tree; names are bound when they are first asked for."""

    __slots__ = ("file", "name", "stars")

    def __init__(self, name: str, file: str) -> None:
        super().__init__(None)
        self.name = name
        self.file = file
        self.stars: list[str] = []


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function or lambda with the scope that it closes over."""

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: Module
    scope: Scope
    kind: str = "plain"
    owner: Class | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A method with its receiver."""

    receiver: object
    function: Function


class Class(Holder):
    """A class of the tree. ``fields`` lists its annotated names, in order."""

    __slots__ = ("bases", "external", "fields", "marks", "module", "name", "node")

    def __init__(self, name: str, node: ast.ClassDef, module: Module) -> None:
        super().__init__()
        self.name = name
        self.node = node
        self.module = module
        self.bases: list[Class] = []
        self.external: list[str] = []
        self.fields: list[str] = []
        self.marks: set[str] = set()

    def mro(self) -> list[Class]:
        """Return this class and its bases in the tree, most derived first."""
        found: list[Class] = [self]
        for base in self.bases:
            found += [c for c in base.mro() if c not in found]
        return found

    def outside(self) -> list[str]:
        """Return the names of all bases outside the tree."""
        return [name for c in self.mro() for name in c.external]


class Instance(Holder):
    """An object. ``open`` objects may have attributes that nobody wrote here."""

    __slots__ = ("cls", "label", "open")

    def __init__(self, cls: Class | None, label: str = "", *, open_: bool = False) -> None:
        super().__init__()
        self.cls = cls
        self.label = label
        self.open = open_


class Carrier(Instance):
    """An object of the running server, known by its name: it carries settings as attributes.

    ``methods`` is the class whose methods are run where nothing else says what a name is.
    """

    __slots__ = ("methods",)

    def __init__(self, label: str, cls: Class | None = None, methods: Class | None = None) -> None:
        super().__init__(cls, label, open_=True)
        self.methods = methods


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A member of an enumeration."""

    cls: Class
    name: str
    value: object


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A read-only look at the settings; a snapshot keeps the values of its creation."""

    record: Instance
    overlay: Holder
    snapshot: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class External:
    """Something that only code outside the tree defines, by its dotted name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Native:
    """A function that specmap supplies: positional and keyword values in, a value out."""

    name: str
    call: Callable[[list[object], dict[str, object]], object]


@dataclass(frozen=True, slots=True)
class Lazy:
    """A name that is bound when it is first read."""

    bind: Callable[[], object] = field(compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where a setting got its value: ``kind`` is ``given``, ``default`` or ``assigned``."""

    kind: str
    file: str = ""
    line: int = 0
    end_line: int = 0
    tests: tuple[tuple[str, str, int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """All origins that a value can have."""

    origins: tuple[Origin, ...]


class Raised(Exception):  # noqa: N818 - a raise of the code that is read, not an error of ours
    """The program that is read raises here."""

    def __init__(self, kind: str, message: str, value: object = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.value = value
        self.explicit = False
        self.file = ""
        self.line = 0
        self.end_line = 0
        self.tests: tuple[tuple[str, str, int, str], ...] = ()


def merged(*groups: Iterable[str]) -> tuple[str, ...]:
    """Return the reasons of several values: sorted, each once, a few at most."""
    return tuple(sorted({reason for group in groups for reason in group if reason})[:MOST_REASONS])


def reasons_of(value: object) -> tuple[str, ...]:
    """Return what would settle a value; nothing for a known one."""
    if isinstance(value, Unknown | Choice | Maybe):
        return value.reasons
    if isinstance(value, Carrier):
        return (value.label,)
    if isinstance(value, tuple):
        return merged(*map(reasons_of, value))
    return ()


def is_plain(value: object) -> bool:
    """Whether a value can be one of a few alternatives: hashable and without identity."""
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    return value is None or isinstance(
        value, bool | int | float | str | bytes | frozenset | Member | Class | Function
    )


def is_known(value: object) -> bool:
    """Whether a value is settled, down to the elements of a tuple."""
    if isinstance(value, tuple):
        return all(map(is_known, value))
    return not isinstance(value, Unknown | Choice | Maybe | Carrier)


def same(left: object, right: object) -> bool:
    """Whether two values are the same value; ``True`` and ``1`` are not."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, Holder | Member | Function | View | Native | Lazy):
        return False
    if isinstance(left, Bound) and isinstance(right, Bound):
        return left.receiver is right.receiver and left.function is right.function
    return bool(left == right)


def alternatives(value: object) -> tuple[object, ...]:
    """Return what a known value or a choice can be."""
    return value.values if isinstance(value, Choice | Either) else (value,)


def choice(values: Iterable[object], reasons: tuple[str, ...]) -> object:
    """Return one of several plain values as one value."""
    kept: list[object] = []
    for value in values:
        if not any(same(value, other) for other in kept):
            kept.append(value)
    if len(kept) == 1:
        return kept[0]
    if len(kept) > MOST_ALTERNATIVES:
        return Unknown(reasons)
    return Choice(tuple(sorted(kept, key=_order)), reasons)


def either(values: Iterable[object], reasons: tuple[str, ...]) -> object:
    """Return one of several values of any kind as one value."""
    kept: list[object] = []
    for value in values:
        if type(value) is Unknown:
            return Unknown(reasons)
        if not any(same(value, other) for other in kept):
            kept.append(value)
    if len(kept) == 1:
        return kept[0]
    return Either(reasons, tuple(kept)) if len(kept) <= MOST_OBJECTS else Unknown(reasons)


def _order(value: object) -> tuple[str, str]:
    if isinstance(value, Member | Class | Function):
        return type(value).__name__, value.name
    return type(value).__name__, repr(value)
