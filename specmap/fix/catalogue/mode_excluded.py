"""The test of the forward mode that leads to the graph also holds for verify.

**Before**

    def is_cuda_graph(self):
        return self == ForwardMode.DECODE or self == ForwardMode.IDLE

**After**

    def is_cuda_graph(self):
        return self == ForwardMode.DECODE or self == ForwardMode.TARGET_VERIFY or ...

Where the test is a method for one mode only (`is_decode`), the method stays as it is and the
decision asks for verify beside it. Where a function gives verify another mode before the test, the
arm that does so goes, if only the decision asks that function.

Preconditions: the target's runner captures the verify mode; the test holds for another mode that
the runner captures; the number of verify tokens is fixed at launch. Other places that ask the
same method are listed in the record. Proof: a scan of the result, in which verify can replay.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Change, Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.fix.cuts import operands, unwrapped
from specmap.fix.facts import Facts, facts_of
from specmap.fix.lost import Part, Place, decision, lost, places
from specmap.fix.tree import Source, Tree, walk


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose to let each mode test of the route hold for verify."""
    facts = facts_of(tree)
    wanting = lost(tree, facts)
    workers = tuple(w.id for w, p in wanting if p.static_shape and p.static_shape.fixed)
    seen: set[str] = set()
    for place in places(tree, facts) if workers else ():
        if place.part is Part.CAPTURE:
            continue
        for node in _excluding(tree, facts, place):
            method = _mode_method(tree, facts, node)
            if method and method not in seen:
                seen.add(method)
                yield from _tested(tree, facts, place, node, method, workers)
            elif isinstance(node, cst.Call):
                for proposal in _mapped(tree, facts, place, node, workers):
                    if proposal.what not in seen:
                        seen.add(proposal.what)
                        yield proposal


def _excluding(tree: Tree, facts: Facts, place: Place) -> Iterator[cst.CSTNode]:
    """Yield what the terms of a decision are made of that are false for verify."""
    source, scope = tree.source_of(place.symbol), facts.scope(place.symbol)
    for value in decision(tree, place)[1]:
        for term in operands(unwrapped(value), cst.And):
            if facts.excludes(source.flat(term), scope):
                yield from walk(term)


def _tested(
    tree: Tree, facts: Facts, place: Place, node: cst.CSTNode, method: str,
    workers: tuple[str, ...],
) -> Iterator[Proposal]:  # fmt: skip
    """A method of the mode that holds for another mode of the runner, and not for verify."""
    source = tree.source_of(place.symbol)
    captured = {c.mode for c in tree.codemap.hazards.captured_modes if c.runner == place.runner}
    holds = facts.mode_methods.get(method, frozenset())
    if not holds & captured or holds & set(facts.modes):
        return
    refused = "" if facts.captures_verify(place.runner) else (
        f"{place.runner.rpartition('::')[2]} captures no graph for verify"
    )  # fmt: skip
    single = len(holds) == 1
    changed = _beside(source, facts, node) if single else _widened(tree, facts, method)
    line = source.lines(node)[0]
    where, change = changed or (Span(source.file, line, line), None)
    if change is None:
        refused = refused or f"{method} is handed on and asked elsewhere"
    uses = sum(tree.text(file).count(f".{method}") for file in tree.files)
    yield Proposal(
        REWRITE.id,
        where,
        place.symbol if single else f"{facts.mode_place}.{method}",
        f"{method} holds for {', '.join(sorted(holds))}, and for no mode of verify",
        () if refused or change is None else (change,),
        (f"{method} is asked at {uses} places of the map's files",),
        refused,
        workers,
    )


def _mapped(
    tree: Tree, facts: Facts, place: Place, call: cst.Call, workers: tuple[str, ...]
) -> Iterator[Proposal]:
    """A function that gives verify the mode of another pass before the mode is tested."""
    asking, scope = tree.source_of(place.symbol), facts.scope(place.symbol)
    node = ast.parse(asking.flat(call), mode="eval").body
    if not isinstance(node, ast.Call) or (meant := facts.meant(node.func, scope)) is None:
        return
    modes = facts.modes_of(node, scope)
    if modes is None or modes & set(facts.modes):
        return
    symbol, name = meant[0], meant[1].name
    source, function = tree.source_of(symbol), tree.function(symbol)
    word = re.compile(rf"(?<!def )\b{name}\(")
    uses = sum(len(word.findall(tree.text(file))) for file in tree.files)
    asked = sum(
        len(word.findall(tree.source_of(p.symbol).code(value)))
        for p in places(tree, facts)
        for value in decision(tree, p)[1]
    )
    arms = [n for n in walk(function.body) if isinstance(n, cst.If)] if function else []
    inside = facts.inside(node, scope)
    meaning = [n for n in arms if n.orelse is None and facts.truth(source.flat(n.test), inside)]
    line = source.lines(meaning[0] if meaning else function)[0] if function else 0
    refused = ""
    if len(meaning) != 1:
        refused = f"{name} says so in no test of its own that can go"
    elif uses != asked:
        refused = f"{name} is asked at {uses - asked} other places"
    yield Proposal(
        REWRITE.id,
        Span(source.file, line, line),
        symbol,
        f"{name} says {', '.join(sorted(modes))} for verify",
        () if refused else (source.drop(meaning[0]),),
        (f"the decision asks {asking.flat(call)}",),
        refused,
        workers,
    )


def _mode_method(tree: Tree, facts: Facts, node: cst.CSTNode) -> str:
    """The method of the forward mode that a node names: ``batch.forward_mode.is_x``."""
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Attribute):
        if node.value.attr.value in tree.names.scan.mode_attribute:
            return node.attr.value if node.attr.value in facts.mode_methods else ""
    return ""


def _widened(tree: Tree, facts: Facts, method: str) -> tuple[Span, Change] | None:
    """One more mode in a method of the mode's enum."""
    symbol = f"{facts.mode_place}.{method}"
    function, source = tree.function(symbol), tree.source_of(symbol)
    if function is None:
        return None
    returns = [n for n in walk(function.body) if isinstance(n, cst.Return) and n.value]
    if len(returns) != 1 or returns[0].value is None:
        return None
    chain = operands(returns[0].value, cst.Or)
    first = source.flat(chain[0])
    compared = ast.parse(first, mode="eval").body
    if not isinstance(compared, ast.Compare) or not isinstance(compared.ops[0], ast.Eq):
        return None
    enum = ast.unparse(compared.comparators[0]).rpartition(".")[0]
    end = source.extent(chain[0])[1]
    between = source.text[end : source.extent(chain[1])[0]] if len(chain) > 1 else " or "
    added = f"{between}{ast.unparse(compared.left)} == {enum}.{facts.modes[0]}"
    line = source.lines(returns[0])[0]
    return Span(source.file, line, line), Change(source.file, end, end, added)


def _beside(source: Source, facts: Facts, node: cst.CSTNode) -> tuple[Span, Change] | None:
    """A test for verify beside the one for another mode, where that is called."""
    wanted = [n for n, holds in facts.mode_methods.items() if holds == frozenset(facts.modes)]
    start, end = source.extent(node)
    if not wanted or not isinstance(node, cst.Attribute) or source.text[end : end + 2] != "()":
        return None
    test = source.text[start : end + 2]
    batch = source.flat(node.value)
    line = source.lines(node)[0]
    text = f"({test} or {batch}.{min(wanted)}())"
    return Span(source.file, line, line), Change(source.file, start, end + 2, text)


REWRITE = Rewrite(
    id="SPF103",
    name="mode-excluded",
    summary="The mode test before the graph also holds for verify",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM107",),
    page=__doc__ or "",
)
