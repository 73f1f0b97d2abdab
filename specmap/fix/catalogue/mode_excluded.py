"""The test of the forward mode that leads to the graph also holds for verify.

**Before**

    def is_cuda_graph(self):
        return self == ForwardMode.DECODE or self == ForwardMode.IDLE

**After**

    def is_cuda_graph(self):
        return self == ForwardMode.DECODE or self == ForwardMode.TARGET_VERIFY or ...

Where the test is a method for one mode only (`is_decode`), the method stays as it is and the
decision asks for verify beside it.

Preconditions: the target's runner captures the verify mode; the test holds for another mode that
the runner captures; the number of verify tokens is fixed at launch. Other places that ask the
same method are listed in the record. Proof: a scan of the result, in which verify can replay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Change, Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.fix.cuts import operands
from specmap.fix.facts import Facts, facts_of
from specmap.fix.lost import Part, decision, lost, places
from specmap.fix.tree import Source, Tree, walk


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose to let each mode test of the route hold for verify."""
    facts = facts_of(tree)
    wanting = lost(tree, facts)
    workers = tuple(w.id for w, p in wanting if p.static_shape and p.static_shape.fixed)
    seen: set[str] = set()
    for place in places(tree, facts) if workers else ():
        function = tree.function(place.symbol)
        if function is None or place.part is Part.CAPTURE:
            continue
        source = tree.source_of(place.symbol)
        _, values = decision(function, place)
        for node in [n for value in values for n in walk(value)]:
            method = _mode_method(tree, facts, node)
            captured = {
                c.mode for c in tree.codemap.hazards.captured_modes if c.runner == place.runner
            }
            holds = facts.mode_methods.get(method, frozenset())
            if not holds & captured or holds & set(facts.modes) or method in seen:
                continue
            seen.add(method)
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
