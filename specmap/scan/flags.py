"""Graph flags: where each is made, handed on or dropped, and which pass it speaks of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from specmap.codemap.graph import Flag, FlagStatus, Guard
from specmap.codemap.source import Span
from specmap.scan.drops import Drops, reports
from specmap.scan.flagphases import FlagPhases, FlagPlace
from specmap.scan.guards import Bound, Path
from specmap.scan.met import Met
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.phases import Phases
from specmap.scan.records import guards_of
from specmap.scan.resolver import Resolver
from specmap.scan.values import FunctionRef, Instance, Scope
from specmap.scan.walk import Walk
from specmap.scan.walked import Activation, Hop


class Flags:
    """Finds the flags in the functions that one worker's walks went through."""

    def __init__(self, resolver: Resolver, phases: Phases) -> None:
        self._resolver = resolver
        self._where = FlagPhases(resolver, phases)
        names = resolver.vocabulary.flags
        self._names = frozenset().union(*names.values())
        self._results = names["result"] | names["runner"]
        self._drops = Drops(resolver, self._results)

    def of_walk(self, walk: Walk, met: Met) -> list[Flag]:
        """Return the flags of one function as one walk saw it."""
        found = []
        activation = met.activation
        named = not self._names.isdisjoint(activation.function.words)
        if named:
            found += [self._flag(p, walk, met) for p in self._places(met)]
        first, last = activation.passes
        if last > first or named:
            found += self._dropped(walk, met)
        return found

    def _places(self, met: Met) -> Iterator[FlagPlace]:
        activation = met.activation
        for seen in activation.seen:
            for node in nodes_in(seen.node):
                if not isinstance(node, ast.Call):
                    continue
                for keyword in node.keywords:
                    if keyword.arg in self._names:
                        yield FlagPlace(
                            keyword.arg,
                            keyword,
                            keyword.value,
                            seen.scope,
                            seen.path,
                            met.passes_at(seen.passes),
                            reported=True,
                        )
        yield from self._assigned(met)
        yield from self._returned(met)

    def _assigned(self, met: Met) -> Iterator[FlagPlace]:
        """Assignments whose target is a flag: a name, an attribute, a place in a tuple."""
        activation = met.activation
        for statement in activation.function.facts.assigns:
            if not any(self._is_flag(target) for target in statement.targets):
                continue
            seen = next((s for s in activation.seen if s.node is statement.value), None)
            if seen is None:
                continue
            for target in statement.targets:
                for name, node, value, position in _targets(target, statement.value):
                    if name in self._names:
                        passes = met.passes_at(seen.passes)
                        yield FlagPlace(
                            name, node, value, seen.scope, seen.path, passes, False, position
                        )

    def _is_flag(self, target: ast.expr) -> bool:
        items = target.elts if isinstance(target, ast.Tuple) else [target]
        return any(last_name(item) in self._names for item in items)

    def _returned(self, met: Met) -> Iterator[FlagPlace]:
        """Old releases hand the flag on as one position of a returned tuple."""
        activation = met.activation
        position = self._flag_position(activation)
        if position is None:
            return
        name = sorted(self._resolver.vocabulary.flags["result"])[0]
        for seen in activation.seen:
            node = seen.node
            if isinstance(node, ast.Tuple) and self._is_returned(activation, node):
                if position < len(node.elts) and not isinstance(node.elts[position], ast.Starred):
                    value = node.elts[position]
                    passes = met.passes_at(seen.passes)
                    yield FlagPlace(
                        name, value, value, seen.scope, seen.path, passes, True, position
                    )

    def _is_returned(self, activation: Activation, node: ast.expr) -> bool:
        assert activation.run is not None
        return any(item.value is node for item in activation.run.returns)

    def _flag_position(self, activation: Activation) -> int | None:
        """The position at which some return of the function names a flag."""
        for value in activation.function.facts.returned:
            if isinstance(value, ast.Tuple):
                for index, item in enumerate(value.elts):
                    if (
                        isinstance(item, ast.Name | ast.Attribute)
                        and last_name(item) in self._results
                    ):
                        return index
        return None

    def _flag(self, place: FlagPlace, walk: Walk, met: Met) -> Flag:
        activation = met.activation
        module = activation.function.module
        chain = self._chain(place.value, place.scope)
        constant = place.value.value if isinstance(place.value, ast.Constant) else None
        status = self._status(place, constant, activation)
        span = module.span(place.node)
        end = max(span.end_line, module.span(place.value).end_line)
        span = Span(span.file, span.line, end)
        source = self._source_line(place, chain, status)
        decides = not place.reported and _decides(place, met)
        return Flag(
            name=place.name,
            span=span,
            holder=activation.function.id,
            status=status,
            phase=self._where.of(place, walk, met, decides),
            decides=decides,
            value=constant if isinstance(constant, bool) else None,
            text=module.text(place.value),
            guards=self._guards(place.path, met, place.node),
            source_line=source,
            source_chain=tuple(line for line, _ in chain)
            if status is FlagStatus.PROPAGATED
            else (),
            result_line=self._result_line(place, activation),
            tuple_position=place.position,
            workers=(walk.worker.cls.id,),
        )

    def _result_line(self, place: FlagPlace, activation: Activation) -> int | None:
        """The line on which the function hands this flag to its caller."""
        if place.reported or not isinstance(place.node, ast.Name):
            return None
        for keyword in reports(activation.function, self._results):
            if _reads(keyword.value, place.name):
                return keyword.lineno
        return None

    def _status(self, place: FlagPlace, constant: object, activation: Activation) -> FlagStatus:
        if isinstance(constant, bool):
            return FlagStatus.CONSTANT
        decisions = self._resolver.vocabulary.decisions
        for node in nodes_in(place.value):
            if isinstance(node, ast.Call) and last_name(node.func) in decisions:
                return FlagStatus.COMPUTED
        if isinstance(place.value, ast.BoolOp | ast.Compare | ast.UnaryOp):
            return FlagStatus.COMPUTED
        if isinstance(place.node, ast.Name) and not place.reported:
            if not _is_loaded(place.node.id, activation.function):
                return FlagStatus.DROPPED
        return FlagStatus.PROPAGATED

    def _source_line(
        self, place: FlagPlace, chain: list[tuple[int, str]], status: FlagStatus
    ) -> int | None:
        if status is FlagStatus.CONSTANT:
            return None
        if status is FlagStatus.COMPUTED:
            decisions = self._resolver.vocabulary.decisions
            for node in nodes_in(place.value):
                if isinstance(node, ast.Call) and last_name(node.func) in decisions:
                    return node.lineno
            return place.value.lineno
        if status is FlagStatus.DROPPED:
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

    def _inside(
        self, target: FunctionRef, index: tuple[int | None, ...], depth: int
    ) -> list[tuple[int, str]]:
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

    def _guards(self, path: Path, met: Met, at: ast.AST) -> tuple[Guard, ...]:
        """The tests in the function, and those of its callers inside the worker."""
        folder = self._resolver.vocabulary.speculative
        guards: tuple[Guard, ...] = ()
        for hop in met.chain:
            if hop.function.module.file.startswith(f"{folder}/"):
                guards += guards_of(hop.path, hop.function, hop.node)
        return guards + guards_of(path, met.function, at)

    def _dropped(self, walk: Walk, met: Met) -> Iterator[Flag]:
        """Calls whose result carries a flag that the function never reads nor hands on."""
        activation = met.activation
        by_node = {id(seen.node): seen for seen in reversed(activation.seen)}
        for statement in activation.function.facts.assigns:
            seen = by_node.get(id(statement.value))
            if seen is None or not isinstance(statement.value, ast.Call):
                continue
            if len(statement.targets) != 1:
                continue
            target = statement.targets[0]
            flag = self._drops.by(target, statement, seen.scope, activation)
            if flag is None:
                continue
            yield replace(
                flag,
                phase=self._where.of_call(statement.value, walk, met, met.passes_at(seen.passes)),
                guards=self._guards(seen.path, met, statement.node),
                workers=(walk.worker.cls.id,),
            )


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


def _decides(place: FlagPlace, met: Met) -> bool:
    """Whether a test reads the flag later, in its function or where that hands it back to."""
    if isinstance(place.node, ast.Attribute):
        return True
    name, node, function = place.name, place.node, met.function
    for hop in reversed(met.chain):
        if _is_tested_after(function, name, node):
            return True
        given = _given(hop, _handed_back(function, name))
        if given is None:
            return False
        name, node, function = given, hop.node, hop.function
    return _is_tested_after(function, name, node)


def _is_tested_after(function: FunctionInfo, name: str, node: ast.AST) -> bool:
    line = getattr(node, "lineno", 0)
    loops = [n for n in nodes_in(function.node) if isinstance(n, ast.For | ast.While)]
    for test in function.facts.tests:
        if _reads(test, name):
            inside = (loop.lineno <= min(line, test.lineno) for loop in loops)
            ends = (max(line, test.lineno) <= (loop.end_lineno or 0) for loop in loops)
            if test.lineno > line or any(map(all, zip(inside, ends, strict=True))):
                return True
    return False


def _handed_back(function: FunctionInfo, name: str) -> tuple[int, ...] | None:
    """Where a function's result holds a local: ``()`` all of it, a place in a tuple, or not."""
    for value in function.facts.returned:
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        for index, item in enumerate(items):
            if isinstance(item, ast.Name) and item.id == name:
                return (index,) if isinstance(value, ast.Tuple) else ()
    return None


def _given(hop: Hop, index: tuple[int, ...] | None) -> str | None:
    """The local that a caller gives a place of a call's result to."""
    for assigned in hop.function.facts.assigns if index is not None else ():
        for target in assigned.targets if assigned.value is hop.node else ():
            item: ast.expr | None = target
            for place in index or ():
                items = target.elts if isinstance(target, ast.Tuple) else []
                item = items[place] if place < len(items) else None
            if isinstance(item, ast.Name):
                return item.id
    return None


def _is_loaded(name: str, function: FunctionInfo) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in nodes_in(function.node)
    )


def _reads(node: ast.expr, name: str) -> bool:
    return any(
        isinstance(n, ast.Name | ast.Attribute) and last_name(n) == name for n in nodes_in(node)
    )
