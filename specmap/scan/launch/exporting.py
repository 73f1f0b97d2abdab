"""From the state of a finished evaluation to launch facts."""

from __future__ import annotations

from specmap.codemap.launch import (
    Change,
    Fact,
    FactOrigin,
    LaunchFacts,
    OriginKind,
    PathTest,
    Plain,
    Refusal,
)
from specmap.codemap.source import Span
from specmap.scan.launch.machine import Machine, Stop, Test
from specmap.scan.launch.tables import Inputs
from specmap.scan.launch.values import (
    Absent,
    Box,
    Choice,
    Holder,
    Instance,
    Maybe,
    Member,
    Origin,
    Raised,
    Trace,
    Unknown,
    is_known,
    merged,
    reasons_of,
)


class Exporter:
    """Reads the state of one machine."""

    def __init__(self, machine: Machine, inputs: Inputs) -> None:
        self.machine = machine
        self.inputs = inputs

    def facts(self, failed: Raised | None, lost: Unknown | None) -> LaunchFacts:
        """Return the launch facts; with ``lost`` every fact is unknown for that reason."""
        machine = self.machine
        names = sorted(machine.record_fields)
        facts = {name: self._fact(machine.overlay, name, lost) for name in names}
        env = sorted(name for name in machine.environment.slots)
        refusals = [_refusal(stop) for stop in machine.stops]
        if failed is not None:
            refusals.insert(0, refusal_of(failed))
        return LaunchFacts(
            facts=facts,
            environment={name: self._fact(machine.environment, name, lost) for name in env},
            refusals=tuple(refusals),
            changes=() if lost else tuple(self._changes(facts)),
            assumptions=tuple(sorted(machine.assumptions)),
        )

    def _changes(self, facts: dict[str, Fact]) -> list[Change]:
        found = []
        for name, given in sorted(self.inputs.values.items()):
            fact = facts.get(name)
            if fact is None or all(o.kind is OriginKind.GIVEN for o in fact.origins):
                continue
            plain = plain_of(self.machine, self.machine.box("list", (_tuple(given),)))
            before = plain[0] if isinstance(plain, tuple) else None
            if not (fact.known and fact.value == before):
                found.append(Change(name, before, fact))
        return found

    def _fact(self, holder: Holder, name: str, lost: Unknown | None) -> Fact:
        value = lost or holder.slots.get(name)
        if holder is self.machine.overlay:
            value = self.machine.settled(name, value)
        trace = self.machine.origins.slots.get(name) if holder is self.machine.overlay else None
        origins = tuple(map(_origin, trace.origins)) if isinstance(trace, Trace) else ()
        return fact_of(self.machine, name, value, origins)


def fact_of(
    machine: Machine, name: str, value: object, origins: tuple[FactOrigin, ...] = ()
) -> Fact:
    """Return a value of the machine as a fact."""
    raw = value.slots.get("") if isinstance(value, Box) and value.kind == "list" else value
    if isinstance(raw, Choice):
        options = tuple(plain_of(machine, option) for option in raw.values)
        return Fact(name, False, None, options, raw.reasons, origins)
    unsure = unsettled(machine, value)
    if unsure is not None:
        return Fact(name, False, None, (), unsure, origins)
    return Fact(name, True, plain_of(machine, value), (), (), origins)


def unsettled(machine: Machine, value: object, depth: int = 6) -> tuple[str, ...] | None:
    """Return what would settle a value, or None if it is settled down to its parts."""
    if not is_known(value):
        return reasons_of(value)
    if depth == 0:
        return ("a deep value",)
    parts: list[object] = []
    if isinstance(value, Box):
        content = value.slots.get("")
        if not is_known(content):
            return reasons_of(content)
        if isinstance(content, dict):
            parts = list(content.values())
        else:
            parts = list(content) if isinstance(content, tuple | frozenset) else []
    elif isinstance(value, Instance):
        parts = list(value.slots.values())
    found = [unsettled(machine, part, depth - 1) for part in parts]
    unsure = [reasons for reasons in found if reasons is not None]
    return merged(*unsure) if unsure else None


def plain_of(machine: Machine, value: object) -> Plain:
    """Return a settled value as plain data; objects become tables of their attributes."""
    if isinstance(value, Maybe):
        value = value.value
    if isinstance(value, Box):
        content = value.slots.get("", ())
        if isinstance(content, dict):
            return {str(key): plain_of(machine, item) for key, item in content.items()}
        value = tuple(sorted(content, key=repr)) if isinstance(content, frozenset) else content
    if isinstance(value, tuple):
        return tuple(plain_of(machine, item) for item in value)
    if isinstance(value, Member):
        return plain_of(machine, value.value)
    if isinstance(value, Instance):
        return {name: plain_of(machine, held) for name, held in sorted(value.slots.items())}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return None if isinstance(value, Absent) else type(value).__name__


def _tuple(value: object) -> object:
    return tuple(map(_tuple, value)) if isinstance(value, list | tuple) else value


def _tests(tests: tuple[Test, ...]) -> tuple[PathTest, ...]:
    return tuple(PathTest(text, Span(file, line, line), out) for text, file, line, out in tests)


def _origin(origin: Origin) -> FactOrigin:
    span = Span(origin.file, origin.line, origin.end_line) if origin.line else None
    return FactOrigin(OriginKind(origin.kind), span, _tests(origin.tests))


def refusal_of(failed: Raised) -> Refusal:
    """Return a raise that nothing catches as a certain refusal."""
    stop = Stop(
        failed.kind, failed.message, failed.file, failed.line, failed.end_line,
        failed.tests[-4:], (),
    )  # fmt: skip
    return _refusal(stop, certain=True)


def _refusal(stop: Stop, *, certain: bool = False) -> Refusal:
    return Refusal(
        certain=certain,
        error=stop.kind,
        message=stop.message,
        span=Span(stop.file, stop.line, stop.end_line),
        tests=_tests(stop.tests),
        reasons=stop.reasons,
    )
