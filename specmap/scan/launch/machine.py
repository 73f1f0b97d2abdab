"""The state of one evaluation, and how it splits where a test is not known.

The parts that evaluate (expressions, statements, calls, loading) are plain functions over
this object; it calls them through the fields that :mod:`interpreter` fills, so that no part
imports another.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from specmap.scan.launch.heap import Delta, Heap
from specmap.scan.launch.values import (
    Box,
    Carrier,
    Choice,
    Class,
    Environment,
    Function,
    Holder,
    Instance,
    Lazy,
    Maybe,
    Module,
    Origin,
    Raised,
    Scope,
    Trace,
    Unknown,
    View,
    choice,
    is_plain,
    merged,
    reasons_of,
)

MOST_STEPS = 3_000_000
MOST_CALLS = 60
MOST_RECURSIONS = 2
MOST_COMBINATIONS = 256

Test = tuple[str, str, int, str]


class CutOff(Exception):  # noqa: N818 - not an error
    """The evaluation took too many steps."""


@dataclass(slots=True, eq=False)
class Exit:
    """One way out of a body: what was written since the body began, and the value."""

    delta: Delta
    value: object = None


@dataclass(slots=True, eq=False)
class Frame:
    """A running call or loop: where its writes begin, and the ways out met so far."""

    depth: int
    node: ast.AST | None = None
    returns: list[Exit] = field(default_factory=list)
    breaks: list[Exit] = field(default_factory=list)
    continues: list[Exit] = field(default_factory=list)
    continue_depth: int = 0
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """A raise that was met: ``sure`` when every way leads to it."""

    kind: str
    message: str
    file: str
    line: int
    end_line: int
    tests: tuple[Test, ...]
    reasons: tuple[str, ...]


class Machine:
    """One evaluation."""

    evaluate: Callable[[ast.expr, Scope], object]
    execute: Callable[[Sequence[ast.stmt], Scope], bool]
    invoke: Callable[[object, list[object], dict[str, object]], object]
    attribute: Callable[[object, str], object]
    assign_attribute: Callable[[object, str, object], None]
    contains: Callable[[str, object], object]
    declare_items: Callable[[object], None]
    carried: Callable[[Carrier, str], object]
    derived: Callable[[str], object]
    is_replaced: Callable[[str], bool]
    is_overridden: Callable[[str, str], bool]
    load: Callable[[str], Module | None]
    member: Callable[[Module, str], object]
    import_names: Callable[[ast.Import | ast.ImportFrom, Scope], None]
    build_class: Callable[[ast.ClassDef, Scope], object]
    define: Callable[[ast.FunctionDef | ast.AsyncFunctionDef, Scope, Class | None], object]

    def __init__(self) -> None:
        self.heap = Heap()
        self.environment = Environment()
        self.overlay = Holder()
        self.origins = Holder()
        self.declared = Holder()
        self.record: Instance | None = None
        self.record_fields: frozenset[str] = frozenset()
        self.fallbacks: dict[str, object] = {}
        self.calls: list[Frame] = []
        self.loops: list[Frame] = []
        self.tests: tuple[Test, ...] = ()
        self.stops: list[Stop] = []
        self.hazards = 0
        self.tries = 0
        self.steps = 0
        self.module: Module | None = None
        self.line: ast.stmt | ast.expr | None = None
        self.why: tuple[str, ...] = ()
        self.assumptions: set[str] = set()
        self.stash: Box | None = None
        # Whether the settings are derived and a started server is asked about.
        self.in_service = False
        self.blank: dict[str, tuple[str, ...]] = {}
        # While a worker is made: the modules whose functions are run. All others only do.
        self.within: tuple[str, ...] = ()
        self.bare: tuple[str, ...] = ()
        self.reads: list[str] | None = None
        self.capacity: object = Unknown(("KV cache capacity",))
        self.sites: dict[object, tuple[str, int, int]] = {}

    # Places

    def here(self) -> tuple[str, int, int]:
        """Return file, line and last line of the statement that runs."""
        node = self.line
        if self.module is None or node is None:
            return "", 0, 0
        return self.module.file, node.lineno, node.end_lineno or node.lineno

    def tick(self) -> None:
        """Count a step.

        Raises:
            CutOff: that was one too many.
        """
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise CutOff

    def unknown(self, *reasons: str) -> Unknown:
        """Return an unknown value; computing it may have raised in the real program."""
        self.hazards += 1
        return Unknown(merged(reasons))

    def unsupported(self, what: str) -> Unknown:
        """Return an unknown value for source that specmap does not evaluate."""
        file, line, _ = self.here()
        return self.unknown(f"{what} at {file}:{line}")

    @contextmanager
    def apart(self, module: Module | None) -> Iterator[None]:
        """Run the top level of a module: its writes stay, whatever arm asked for it."""
        saved = (self.heap, self.calls, self.loops, self.tests, self.tries, self.module, self.line)
        self.heap, self.calls, self.loops, self.tests = Heap(), [], [], ()
        self.tries, self.module = 1, module
        try:
            yield
        finally:
            (self.heap, self.calls, self.loops, self.tests) = saved[:4]
            (self.tries, self.module, self.line) = saved[4:]

    # Slots

    def read(self, holder: Holder, slot: str) -> object:
        """Return what a slot holds; names that wait to be bound are bound.

        Raises:
            KeyError: nothing.
        """
        value = holder.slots[slot]
        if isinstance(value, Lazy):
            holder.slots[slot] = Unknown(("a name that needs itself",))
            bound = value.bind()
            if isinstance(holder.slots.get(slot), Unknown):
                holder.slots[slot] = bound
            return bound
        return value.value if isinstance(value, Maybe) else value

    def content(self, box: Box) -> object:
        """Return the content of a box; one of several contents counts as not known."""
        value = box.slots.get("", {} if box.kind == "dict" else ())
        if isinstance(value, Choice):
            return Unknown(value.reasons)
        return value

    def box(self, kind: str, content: object) -> Box:
        """Return a new list, set or dict."""
        new = Box(kind)
        self.heap.store(new, "", content)
        return new

    def set_field(self, name: str, value: object, *, raw: bool) -> None:
        """Write a setting: with ``raw`` on the object, else only as a declaration."""
        assert self.record is not None
        if raw:
            self.heap.store(self.record, name, value)
        if name in self.record_fields and not (raw and name in self.declared.slots):
            if not raw:
                self.heap.store(self.declared, name, True)
            file, line, end = self.sites.get(name) or self.here()
            self.heap.store(self.overlay, name, value)
            trace = Trace((Origin("assigned", file, line, end, self.tests[-4:]),))
            self.heap.store(self.origins, name, trace)

    def settled(self, name: str, value: object) -> object:
        """Return what readers of a setting get: the declared fallback in place of None."""
        fallback = self.fallbacks.get(name)
        if fallback is None:
            return value
        if isinstance(value, Choice):
            return choice([fallback if v is None else v for v in value.values], value.reasons)
        return fallback if value is None else value

    def spoil(self, values: Sequence[object], reason: str) -> None:
        """Whatever these values lead to may have changed."""
        seen: set[int] = set()
        queue = list(values)
        while queue:
            value = queue.pop()
            if isinstance(value, View):
                value = value.record
            if isinstance(value, tuple):
                queue += value
            elif isinstance(value, Maybe):
                queue.append(value.value)
            if not isinstance(value, Box | Instance) or id(value) in seen:
                continue
            if self.within and value is self.record:
                continue  # what was derived is what a started server has
            seen.add(id(value))
            for slot, old in list(value.slots.items()):
                queue += old.values() if isinstance(old, dict) else [old]
                if value is self.record and slot in self.record_fields:
                    self.set_field(slot, Unknown((reason,)), raw=True)
                elif not isinstance(old, Function):
                    self.heap.store(value, slot, Unknown((reason,)))

    # Not knowing

    def lift(self, call: Callable[..., object], *operands: object) -> object:
        """Apply a function of known values, to every alternative where there are several.

        Raises:
            Raised: every alternative raises.
        """
        reasons = merged(*map(reasons_of, operands))
        if any(isinstance(o, Unknown | Carrier | Maybe) for o in operands):
            return self.unknown(*reasons)
        if not any(isinstance(o, Choice) for o in operands):
            return self.guarded(call, *operands)
        combinations: list[tuple[object, ...]] = [()]
        for operand in operands:
            options = operand.values if isinstance(operand, Choice) else (operand,)
            combinations = [(*head, option) for head in combinations for option in options]
            if len(combinations) > MOST_COMBINATIONS:
                return self.unknown(*reasons)
        results: list[object] = []
        failed: Raised | None = None
        for combination in combinations:
            try:
                results.append(self.guarded(call, *combination))
            except Raised as raised:
                failed = raised
        if failed is not None:
            if not results:
                raise failed
            self.may_stop(failed, reasons)
        if all(map(is_plain, results)):
            return choice(results, reasons)
        return self.heap.join_values(results, reasons)

    def guarded(self, call: Callable[..., object], *operands: object) -> object:
        """Apply a function of known values; what Python raises, the program raises.

        Raises:
            Raised: the program raises.
        """
        try:
            return call(*operands)
        except (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError) as error:
            raise Raised(type(error).__name__, str(error)) from error
        except (AttributeError, OverflowError, RecursionError) as error:
            return self.unknown(f"{type(error).__name__}: {error}")

    def may_stop(self, raised: Raised, reasons: tuple[str, ...]) -> None:
        """Note a raise on one of several ways; inside a ``try`` it may be caught."""
        if self.tries:
            self.hazards += 1
            return
        file, line, end = self.here()
        if raised.line:
            file, line, end = raised.file, raised.line, raised.end_line
        tests = raised.tests or self.tests
        stop = Stop(raised.kind, raised.message, file, line, end, tests[-4:], reasons)
        if stop not in self.stops:
            self.stops.append(stop)

    def branch(self, why: tuple[str, ...], arms: Sequence[Callable[[], bool]]) -> bool:
        """Run every arm from the same state and join; say whether any falls through.

        Raises:
            Raised: every arm raises.
        """
        outer, self.why = self.why, merged(self.why, why)
        deltas: list[Delta] = []
        alive, first, noted = 0, None, len(self.stops)
        try:
            for arm in arms:
                depth = self.heap.push()
                try:
                    falls = arm()
                except Raised as raised:
                    self.heap.take(depth)
                    first = first or raised
                    self.may_stop(raised, self.why)
                    continue
                delta = self.heap.take(depth)
                alive += 1
                if falls:
                    deltas.append(delta)
        finally:
            self.why = outer
        if not alive and first is not None:
            del self.stops[noted:]
            raise first
        if deltas:
            self.heap.join(deltas, why)
        return bool(deltas)

    def branch_value(self, why: tuple[str, ...], arms: Sequence[Callable[[], object]]) -> object:
        """As :meth:`branch`, for expressions: return the joined value."""
        values: list[object] = []

        def run(arm: Callable[[], object]) -> Callable[[], bool]:
            def falls() -> bool:
                values.append(arm())
                return True

            return falls

        self.branch(why, [run(arm) for arm in arms])
        return self.heap.join_values(values, why)
