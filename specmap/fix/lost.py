"""Which workers lost the graph of verify, and the functions that decide about it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import libcst as cst

from specmap.codemap.condition import Condition, atoms_of, evaluate
from specmap.codemap.graph import Attribute, Phase, Worker
from specmap.codemap.source import file_of, qualname_of
from specmap.codemap.verdict import PhaseName, SinkKind
from specmap.fix.cuts import required
from specmap.fix.facts import Facts
from specmap.fix.tree import Source, Tree, assigned, statements, walk

_NO = ("return False", "return None")


class Part(StrEnum):
    """``runner`` the runner's own test, or a method that only a decision asks; ``route`` the code
    that asks it and replays; ``capture`` the code that makes the runner."""

    RUNNER = "runner"
    ROUTE = "route"
    CAPTURE = "capture"


@dataclass(frozen=True, slots=True)
class Place:
    """A function that takes part in the decision about verify.

    ``runner`` is a class id, ``attributes`` are the names of those that hold the runner,
    ``lines`` are those on which the function calls it, by the map.
    """

    symbol: str
    part: Part
    runner: str
    attributes: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


def lost(tree: Tree, facts: Facts) -> list[tuple[Worker, Phase]]:
    """Return the workers whose verify runs and never replays, although its width is fixed."""
    return [
        (worker, phase)
        for worker, phase in verifying(tree)
        if worker.reachable and never(phase.graph_when, facts)
    ]


def verifying(tree: Tree) -> Iterator[tuple[Worker, Phase]]:
    """Yield every worker that verifies with its target model."""
    for worker in tree.codemap.workers:
        for phase in worker.phases:
            if phase.name is PhaseName.VERIFY and phase.role == "target" and phase.arms:
                yield worker, phase


def never(condition: Condition, facts: Facts) -> bool:
    """Tell whether a condition is false for every verify batch."""
    return evaluate(condition, _settled(condition, facts)) is False


def causes(condition: Condition, facts: Facts) -> list[str]:
    """Return the tests that each alone keep a condition from ever being true, and where."""
    known = _settled(condition, facts)
    found = []
    for text, holds in sorted(known.items()):
        others = {other: value for other, value in known.items() if other != text}
        if evaluate(condition, known) is False and evaluate(condition, others) is not False:
            spans = sorted(a.span for a in atoms_of(condition) if a.text == text and a.span)
            place = f" ({spans[0]})" if spans else ""
            found.append(f"{text} is {str(holds).lower()} for every verify batch{place}")
    return found


def _settled(condition: Condition, facts: Facts) -> dict[str, bool]:
    truths = {a.text: facts.of_atom(a) for a in atoms_of(condition)}
    return {text: value for text, value in truths.items() if value is not None}


def runners(tree: Tree, facts: Facts) -> list[str]:
    """Return the graph runners of the target's passes that decode or verify."""
    names = tree.names.scan
    modes = {*names.modes["decode"], *facts.modes}
    captured = {c.runner for c in tree.codemap.hazards.captured_modes if c.mode in modes}
    held = {
        kind
        for attribute in _runner_attributes(tree)
        for assignment in attribute.assignments
        for kind in assignment.types
        if kind is not None
    }
    captured |= {kind for kind in held if (facts.captured(kind) or set()) & modes}
    return sorted(captured & held) or sorted(r for r in captured if facts.captures_verify(r))


def runner_attributes(tree: Tree, facts: Facts) -> list[str]:
    """Return the names of the attributes that hold such a runner, or what stands around it."""
    wanted = {kind for runner in runners(tree, facts) for kind in _around(tree, runner)}
    return sorted(
        {
            qualname_of(attribute.name).rpartition(".")[2]
            for attribute in _runner_attributes(tree)
            if any(kind in wanted for a in attribute.assignments for kind in a.types)
        }
    )


def _around(tree: Tree, runner: str) -> set[str]:
    """A runner's class, and those between the model runner and it on the way of verify."""
    found = {runner}
    for _, phase in verifying(tree):
        for arm in phase.arms:
            owners = [h.rpartition(".")[0] for h, _ in arm.chain if "." in qualname_of(h)]
            outside = [qualname_of(o) in tree.names.scan.model_runner for o in owners]
            if owners and owners[-1] == runner and True in outside:
                found.update(owners[len(outside) - outside[::-1].index(True) :])
    return found


def _runner_attributes(tree: Tree) -> list[Attribute]:
    classes = tree.names.scan.model_runner
    return [a for a in tree.codemap.attributes if qualname_of(a.name).partition(".")[0] in classes]


def places(tree: Tree, facts: Facts) -> list[Place]:
    """Return the functions that decide whether verify replays, each once."""
    kept = tree.kept.get("places")
    if isinstance(kept, list):
        return kept
    found: dict[str, Place] = {}
    names = tree.names.scan
    for runner in runners(tree, facts):
        for name in sorted(names.decisions):
            symbol = f"{runner}.{name}"
            if tree.function(symbol) is not None:
                found.setdefault(symbol, Place(symbol, Part.RUNNER, runner))
        for attribute in _runner_attributes(tree):
            for assignment in attribute.assignments:
                if runner in assignment.types and not assignment.from_outside:
                    holder = assignment.holder
                    found.setdefault(holder, Place(holder, Part.CAPTURE, runner))
        for symbol in _routes(tree, facts):
            held = tuple(runner_attributes(tree, facts))
            lines = tuple(_lines(tree, symbol, _around(tree, runner)))
            found.setdefault(symbol, Place(symbol, Part.ROUTE, runner, held, lines))
    _descend(tree, facts, found)
    tree.kept["places"] = sorted(found.values(), key=lambda place: place.symbol)
    return places(tree, facts)


def _descend(tree: Tree, facts: Facts, found: dict[str, Place]) -> None:
    """Add the functions that only decisions ask, until there are no more."""
    asked: dict[str, set[tuple[str, int]]] = {}
    calls: dict[str, set[tuple[str, int]]] = {}
    waiting = list(found.values())
    while waiting:
        place = waiting.pop()
        for symbol, line in _asks(tree, facts, place):
            asked.setdefault(symbol, set()).add((file_of(place.symbol), line))
        for symbol in asked:
            known = found.get(symbol)
            if known is not None and known.part is not Part.ROUTE:
                continue
            if symbol not in calls:
                calls[symbol] = _calls(tree, symbol)
            if calls[symbol] <= asked[symbol]:
                found[symbol] = replace(known or place, symbol=symbol, part=Part.RUNNER)
                waiting.append(found[symbol])


def _asks(tree: Tree, facts: Facts, place: Place) -> Iterator[tuple[str, int]]:
    """The functions of the tree that a decision asks, and the lines where it does."""
    function, source = tree.function(place.symbol), tree.source_of(place.symbol)
    if function is None or place.part is Part.CAPTURE:
        return
    parts = [p for value in decision(tree, place)[1] for p in required(value)]
    if place.part is Part.RUNNER:
        ifs = [n for n in walk(function.body) if isinstance(n, cst.If)]
        left = [n.test for n in ifs if source.code(n.body).rstrip().endswith(_NO)]
        parts += [p for test in left for p in required(test, holds=False)]
    else:
        parts += _receivers(source, function, place)
    for call in parts:
        if isinstance(call, cst.Call):
            asked = ast.parse(source.flat(call.func), mode="eval").body
            meant = facts.meant(asked, facts.scope(place.symbol))
            if meant is not None:
                yield meant[0], source.lines(call)[0]


def _receivers(source: Source, function: cst.FunctionDef, place: Place) -> list[cst.BaseExpression]:
    """What a function calls the runner on, where it asks for it: ``self.runner_for(batch)``."""
    return [
        n.func.value
        for n in walk(function.body)
        if isinstance(n, cst.Call)
        and isinstance(n.func, cst.Attribute)
        and source.lines(n)[0] in place.lines
    ]


def _calls(tree: Tree, symbol: str) -> set[tuple[str, int]]:
    """Where a function is called: by the map, and where its name is and the map does not know."""
    name = qualname_of(symbol).rpartition(".")[2]
    others: set[tuple[str, int]] = set()
    found: set[tuple[str, int]] = set()
    for edge in tree.codemap.edges:
        if symbol in edge.callees:
            found.add((edge.span.file, edge.span.line))
        elif edge.callees and edge.text.rpartition(".")[2] == name:
            others.add((edge.span.file, edge.span.line))
    word = re.compile(rf"(?<!def )\b{name}\(")
    for file in tree.files:
        text = tree.text(file)
        for call in word.finditer(text) if name in text else ():
            found.add((file, text.count("\n", 0, call.start()) + 1))
    return found - others


def _lines(tree: Tree, symbol: str, kinds: set[str]) -> list[int]:
    """The lines on which a function calls a method of some classes, by the map."""
    return sorted(
        edge.span.line
        for edge in tree.codemap.edges
        if edge.caller == symbol and kinds & {c.rpartition(".")[0] for c in edge.callees}
    )


def _routes(tree: Tree, facts: Facts) -> list[str]:
    """The functions on the way of verify that call a target's graph runner."""
    attributes = runner_attributes(tree, facts)
    on_way = {h for _, phase in verifying(tree) for arm in phase.arms for h, _ in arm.chain}
    asking = {d.holder for d in tree.codemap.decisions if d.kind == "route"}
    asking |= {flag.holder for flag in tree.codemap.flags if flag.decides}
    found = []
    kinds = {kind for runner in runners(tree, facts) for kind in _around(tree, runner)}
    replaying = {s for s in on_way if s.rpartition(".")[0] not in kinds and _lines(tree, s, kinds)}
    for symbol in sorted(on_way | asking):
        function = tree.function(symbol)
        called = symbol in replaying or (function and calls_one_of(function, attributes))
        if function is not None and called:
            found.append(symbol)
    return found


def calls_one_of(node: cst.CSTNode, attributes: Sequence[str]) -> bool:
    """Tell whether a method of a runner is called below: ``self.graph_runner.replay(...)``."""
    return any(
        isinstance(n, cst.Call)
        and isinstance(n.func, cst.Attribute)
        and isinstance(n.func.value, cst.Attribute)
        and n.func.value.attr.value in attributes
        for n in walk(node)
    )


def decision(tree: Tree, place: Place) -> tuple[set[str], list[cst.BaseExpression]]:
    """Return the names that a decision is made of, and the expressions that decide."""
    function, source = tree.function(place.symbol), tree.source_of(place.symbol)
    if function is None:
        return set(), []
    bound = [b for s in statements(function) if (b := assigned(s)) is not None]
    values: list[cst.BaseExpression] = []
    if place.part is Part.RUNNER:
        lasts = [s.body[-1] for s in statements(function)]
        values = [r.value for r in lasts if isinstance(r, cst.Return) and r.value is not None]
    elif place.part is Part.ROUTE:
        ifs = [n for n in walk(function.body) if isinstance(n, cst.If)]
        values = [n.test for n in ifs if _replays(source, n.body, place)]
    names: set[str] = set()
    waiting = list(values)
    while waiting:
        for part in required(waiting.pop()):
            read = part.func if isinstance(part, cst.Call) else part
            name = read.value if isinstance(read, cst.Name) else ""
            if name and name not in names:
                names.add(name)
                made_of = [v for n, v in bound if n == name]
                values += made_of
                waiting += made_of
    return names, values


def _replays(source: Source, node: cst.CSTNode, place: Place) -> bool:
    """Whether a method of the runner is called below, by the map or by the runner's name."""
    calls = (n for n in walk(node) if isinstance(n, cst.Call))
    known = any(source.lines(call)[0] in place.lines for call in calls) if place.lines else False
    return known or calls_one_of(node, place.attributes)


def bypassing(phase: Phase, tree: Tree, facts: Facts) -> bool:
    """Tell whether every way of a phase misses the code that asks the runner."""
    routes = set(_routes(tree, facts))
    return all(
        arm.kind is not SinkKind.GRAPH and not any(holder in routes for holder, _ in arm.chain)
        for arm in phase.arms
    )
