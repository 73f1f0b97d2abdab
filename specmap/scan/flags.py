"""Graph flags: where each is made, handed on or dropped, and which pass it speaks of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from specmap.codemap.graph import Flag, FlagStatus, Guard
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.scan.guards import Bound, Path
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.phases import Phases
from specmap.scan.records import guards_of
from specmap.scan.resolver import Resolver
from specmap.scan.values import FunctionRef, Instance, Scope
from specmap.scan.walk import Activation, Walk


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A statement that carries a flag, at the point where a walk reached it."""

    name: str
    node: ast.AST
    value: ast.expr
    scope: Scope
    path: Path
    passes: int
    reported: bool
    position: int | None = None


class Flags:
    """Finds the flags in the functions that one worker's walks went through."""

    def __init__(self, resolver: Resolver, phases: Phases) -> None:
        self._resolver = resolver
        self._phases = phases
        names = resolver.vocabulary.flags
        self._names = frozenset().union(*names.values())
        self._results = names["result"] | names["runner"]

    def of_walk(self, walk: Walk, activation: Activation) -> list[Flag]:
        """Return the flags of one function as one walk saw it."""
        found = []
        for place in self._places(activation):
            found.append(self._flag(place, walk, activation))
        for flag in self._dropped(walk, activation):
            found.append(flag)
        return found

    def _places(self, activation: Activation) -> Iterator[_Place]:
        run = activation.run
        assert run is not None
        for seen in activation.seen:
            for node in ast.walk(seen.node):
                if not isinstance(node, ast.Call):
                    continue
                for keyword in node.keywords:
                    if keyword.arg in self._names:
                        yield _Place(
                            keyword.arg, keyword, keyword.value, seen.scope, seen.path,
                            seen.passes, reported=True,
                        )
        yield from self._assigned(activation)
        yield from self._returned(activation)

    def _assigned(self, activation: Activation) -> Iterator[_Place]:
        """Assignments whose target is a flag: a name, an attribute, a place in a tuple."""
        for statement in ast.walk(activation.function.node):
            if not isinstance(statement, ast.Assign):
                continue
            seen = next((s for s in activation.seen if s.node is statement.value), None)
            if seen is None:
                continue
            for target in statement.targets:
                for name, node, value, position in _targets(target, statement.value):
                    if name in self._names:
                        scope, path = seen.scope, seen.path
                        yield _Place(name, node, value, scope, path, seen.passes, False, position)

    def _returned(self, activation: Activation) -> Iterator[_Place]:
        """Old releases hand the flag on as one position of a returned tuple."""
        position = self._flag_position(activation)
        if position is None:
            return
        name = sorted(self._resolver.vocabulary.flags["result"])[0]
        for seen in activation.seen:
            node = seen.node
            if isinstance(node, ast.Tuple) and self._is_returned(activation, node):
                if position < len(node.elts) and not isinstance(node.elts[position], ast.Starred):
                    value = node.elts[position]
                    yield _Place(
                        name, value, value, seen.scope, seen.path, seen.passes, True, position
                    )

    def _is_returned(self, activation: Activation, node: ast.expr) -> bool:
        assert activation.run is not None
        return any(item.value is node for item in activation.run.returns)

    def _flag_position(self, activation: Activation) -> int | None:
        """The position at which some return of the function names a flag."""
        assert activation.run is not None
        for node in ast.walk(activation.function.node):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                for index, item in enumerate(node.value.elts):
                    if isinstance(item, ast.Name | ast.Attribute) and last_name(item) in self._results:
                        return index
        return None

    def _flag(self, place: _Place, walk: Walk, activation: Activation) -> Flag:
        module = activation.function.module
        chain = self._chain(place.value, place.scope)
        constant = place.value.value if isinstance(place.value, ast.Constant) else None
        status = self._status(place, constant)
        span = module.span(place.node)
        end = max(span.end_line, module.span(place.value).end_line)
        span = Span(span.file, span.line, end)
        source = self._source_line(place, chain, status)
        return Flag(
            name=place.name,
            span=span,
            holder=activation.function.id,
            status=status,
            phase=self._phase(place, walk, activation, status),
            decides=not place.reported and self._is_tested(place, activation),
            value=constant if isinstance(constant, bool) else None,
            text=module.text(place.value),
            guards=self._guards(place.path, activation),
            source_line=source,
            source_chain=tuple(line for line, _ in chain) if status is FlagStatus.PROPAGATED else (),
            result_line=self._result_line(place, activation),
            tuple_position=place.position,
            workers=(walk.worker.cls.id,),
        )

    def _result_line(self, place: _Place, activation: Activation) -> int | None:
        """The line on which the function hands this flag to its caller."""
        if place.reported or not isinstance(place.node, ast.Name):
            return None
        found = self._result(activation)
        return found.lineno if found is not None and _reads(found.value, place.name) else None

    def _result(self, activation: Activation) -> ast.keyword | None:
        """The keyword with which a function reports its flag in the returned record."""
        for node in ast.walk(activation.function.node):
            if isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg in self._results and not isinstance(keyword.value, ast.Constant):
                        return keyword
        return None

    def _status(self, place: _Place, constant: object) -> FlagStatus:
        if isinstance(constant, bool):
            return FlagStatus.CONSTANT
        decisions = self._resolver.vocabulary.decisions
        for node in ast.walk(place.value):
            if isinstance(node, ast.Call) and last_name(node.func) in decisions:
                return FlagStatus.COMPUTED
        if isinstance(place.value, ast.BoolOp | ast.Compare | ast.UnaryOp):
            return FlagStatus.COMPUTED
        return FlagStatus.PROPAGATED

    def _source_line(
        self, place: _Place, chain: list[tuple[int, str]], status: FlagStatus
    ) -> int | None:
        if status is FlagStatus.CONSTANT:
            return None
        if status is FlagStatus.COMPUTED:
            decisions = self._resolver.vocabulary.decisions
            for node in ast.walk(place.value):
                if isinstance(node, ast.Call) and last_name(node.func) in decisions:
                    return node.lineno
            return place.value.lineno
        reads = [line for line, kind in chain if kind == "read"]
        if reads and not isinstance(place.value, ast.Attribute):
            return reads[0]
        calls = [line for line, kind in chain if kind == "call"]
        return calls[0] if calls else None

    def _chain(self, node: ast.expr, scope: Scope, depth: int = 0) -> list[tuple[int, str]]:
        """Follow a flag back: the calls that returned it and the reads that took it out."""
        if depth > 8:
            return []
        if isinstance(node, ast.Name):
            binding = scope.env.get(node.id)
            if isinstance(binding, Bound):
                return self._from_bound(binding, depth)
            return []
        if isinstance(node, ast.Attribute) and node.attr in self._results:
            here = [(node.lineno, "read")] if depth else []
            return here + self._chain(node.value, scope, depth + 1)
        return []

    def _from_bound(self, binding: Bound, depth: int) -> list[tuple[int, str]]:
        node = binding.node
        if not isinstance(node, ast.Call):
            return self._chain(node, binding.scope, depth + 1)
        lines = [(node.lineno, "call")]
        if not binding.index:
            return lines
        for arm in self._resolver.evaluate(node.func, binding.scope):
            if isinstance(arm.value, FunctionRef):
                return lines + self._inside(arm.value, binding.index, depth)
        return lines

    def _inside(self, target: FunctionRef, index: tuple[int | None, ...], depth: int) -> list[tuple[int, str]]:
        """Continue in the callee: what its returned tuple holds at that position."""
        this = target.self_value if isinstance(target.self_value, Instance) else None
        frame = self._resolver.attributes.frame(this, target.function)
        for item in self._resolver.attributes.execution(frame).returns:
            if isinstance(item.value, ast.Tuple) and isinstance(index[0], int):
                if index[0] < len(item.value.elts):
                    found = self._chain(item.value.elts[index[0]], item.scope, depth + 1)
                    if found:
                        return found
        return []

    def _guards(self, path: Path, activation: Activation) -> tuple[Guard, ...]:
        """The tests in the function, and those of its callers inside the worker."""
        folder = self._resolver.vocabulary.speculative
        guards: tuple[Guard, ...] = ()
        for hop in activation.chain:
            if hop.function.module.file.startswith(f"{folder}/"):
                guards += guards_of(hop.path, hop.function)
        return guards + guards_of(path, activation.function)

    def _is_tested(self, place: _Place, activation: Activation) -> bool:
        """Whether the flag is read by a test of the function: then it chooses a path."""
        for node in ast.walk(activation.function.node):
            if isinstance(node, ast.If | ast.IfExp) and _reads(node.test, place.name):
                return True
        return isinstance(place.node, ast.Attribute)

    def _phase(
        self, place: _Place, walk: Walk, activation: Activation, status: FlagStatus
    ) -> str:
        if walk.kind == "idle":
            return "idle"
        own = self._call_phase(place, walk, activation)
        if own is not None:
            return own
        if walk.kind == "prefill":
            return self._next_phase(walk, place.passes, activation) or PhaseName.TARGET_PREFILL
        if place.reported and status is FlagStatus.CONSTANT:
            return PhaseName.VERIFY
        if place.reported:
            return self._last_result_phase(walk)
        return self._next_phase(walk, place.passes, activation) or PhaseName.VERIFY

    def _call_phase(self, place: _Place, walk: Walk, activation: Activation) -> str | None:
        """The phase of the passes below the call that a flag came from."""
        node: ast.AST = place.value
        scope = place.scope
        for _ in range(6):
            if isinstance(node, ast.Call):
                return self._phase_below(node, walk, activation)
            if isinstance(node, ast.Attribute):
                node = node.value
            elif isinstance(node, ast.Name):
                binding = scope.env.get(node.id)
                if not isinstance(binding, Bound):
                    return None
                node, scope = binding.node, binding.scope
            else:
                return None
        return None

    def _phase_below(self, call: ast.Call, walk: Walk, activation: Activation) -> str | None:
        for hit in walk.hits:
            for hop in hit.chain:
                if hop.node is call and hop.function is activation.function:
                    return self._phases.name_of(hit)
        return None

    def _next_phase(self, walk: Walk, passes: int, activation: Activation) -> str | None:
        """The phase of the next pass that starts inside the same function, else anywhere."""
        first, last = activation.passes
        inside = walk.hits[max(first, passes) : last] or walk.hits[passes:]
        return self._phases.name_of(inside[0]) if inside else None

    def _last_result_phase(self, walk: Walk) -> str:
        names = {self._phases.name_of(hit) for hit in walk.hits}
        return PhaseName.VERIFY if PhaseName.VERIFY in names else PhaseName.TARGET_PREFILL

    def _dropped(self, walk: Walk, activation: Activation) -> Iterator[Flag]:
        """Calls whose result carries a flag that the function never reads nor hands on."""
        for statement in ast.walk(activation.function.node):
            if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
                continue
            seen = next((s for s in activation.seen if s.node is statement.value), None)
            if seen is None or len(statement.targets) != 1:
                continue
            target = statement.targets[0]
            flag = None
            if isinstance(target, ast.Name):
                flag = self._record_dropped(statement, target.id, seen.scope, activation)
            elif isinstance(target, ast.Tuple):
                flag = self._position_dropped(statement, target, seen.scope, activation)
            if flag is None:
                continue
            phase = self._phase_below(statement.value, walk, activation) or self._next_phase(
                walk, seen.passes, activation
            )
            yield replace(
                flag,
                phase="idle" if walk.kind == "idle" else str(phase or PhaseName.VERIFY),
                guards=self._guards(seen.path, activation),
                workers=(walk.worker.cls.id,),
            )

    def _record_dropped(
        self, statement: ast.Assign, name: str, scope: Scope, activation: Activation
    ) -> Flag | None:
        field = self._flag_field(statement.value, scope)
        if field is None:
            return None
        first = _first_partial_read(activation.function, name, field)
        if first is None:
            return None
        return self._drop_record(f"{name}.{field}", field, first, statement.value, activation)

    def _position_dropped(
        self, statement: ast.Assign, target: ast.Tuple, scope: Scope, activation: Activation
    ) -> Flag | None:
        """``batch, _ = prepare(...)`` where the callee returns a flag at that position."""
        assert isinstance(statement.value, ast.Call)
        for arm in self._resolver.evaluate(statement.value.func, scope):
            if not isinstance(arm.value, FunctionRef):
                continue
            for index, item in enumerate(target.elts):
                if not (isinstance(item, ast.Name) and item.id.startswith("_")):
                    continue
                name = self._returned_name(arm.value.function, index)
                if name is not None:
                    return self._drop_record(name, name, statement, statement.value, activation)
        return None

    def _returned_name(self, function: FunctionInfo, index: int) -> str | None:
        for node in ast.walk(function.node):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                if index < len(node.value.elts):
                    name = last_name(node.value.elts[index])
                    if name in self._results:
                        return name
        return None

    def _drop_record(
        self, text: str, field: str, at: ast.stmt, call: ast.expr, activation: Activation
    ) -> Flag:
        module = activation.function.module
        result = self._result(activation)
        source = None
        if result is not None and isinstance(result.value, ast.Name):
            source = _assigned_line(activation.function, result.value.id)
        return Flag(
            name=field,
            span=module.span(at),
            holder=activation.function.id,
            status=FlagStatus.DROPPED,
            phase="",
            decides=False,
            text=text,
            source_line=call.lineno,
            result_line=result.lineno if result is not None else None,
            result_source_line=source,
        )

    def _flag_field(self, node: ast.expr, scope: Scope) -> str | None:
        for arm in self._resolver.evaluate(node, scope):
            value = arm.value
            if isinstance(value, Instance):
                for cls in self._resolver.types.mro(value.cls):
                    for name in cls.fields:
                        if name in self._results:
                            return name
        return None


def _targets(
    target: ast.expr, value: ast.expr
) -> Iterator[tuple[str, ast.expr, ast.expr, int | None]]:
    if isinstance(target, ast.Name | ast.Attribute):
        yield last_name(target), target, value, None
    elif isinstance(target, ast.Tuple):
        same = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
        for index, item in enumerate(target.elts):
            if isinstance(item, ast.Name | ast.Attribute):
                part = value.elts[index] if same and isinstance(value, ast.Tuple) else value
                yield last_name(item), item, part, None if same else index


def _reads(node: ast.expr, name: str) -> bool:
    return any(
        isinstance(n, ast.Name | ast.Attribute) and last_name(n) == name for n in ast.walk(node)
    )


def _assigned_line(function: FunctionInfo, name: str) -> int | None:
    for node in ast.walk(function.node):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return node.lineno
    return None


def _first_partial_read(function: FunctionInfo, name: str, field: str) -> ast.stmt | None:
    """The first statement that takes the record apart; ``None`` when its flag is read or
    the record goes on whole."""
    attributes: set[int] = set()
    first: ast.stmt | None = None
    for node in ast.walk(function.node):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == name:
                if node.attr == field:
                    return None
                attributes.add(id(node.value))
    for node in ast.walk(function.node):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            if id(node) not in attributes:
                return None
    for statement in ast.walk(function.node):
        if isinstance(statement, ast.Assign | ast.Expr | ast.Return | ast.AugAssign):
            reads = any(id(n) in attributes for n in ast.walk(statement))
            if reads and (first is None or statement.lineno < first.lineno):
                first = statement
    return first
