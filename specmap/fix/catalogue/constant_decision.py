"""A decision that was made a constant `False` asks the graph runner again.

**Before**

    can_run_graph = False
    if can_run_graph:
        ret = self.graph_runner.replay(forward_batch)

**After**

    can_run_graph = bool(
        mode_check()
        and self.graph_runner
        and self.graph_runner.can_run(forward_batch)
    )

The expression is read off the code that it guards: the runner that replays, its own test, and
the batch that it is given. Where prefill comes through the same function, a test of the forward
mode is added: one that was left there unused, else the mode's method that holds for what the
runner captures and not for prefill.

Preconditions: the flag chooses the path (a flag that is only reported is no cause) and is bound
once; the call that it guards is a call of the target's graph runner; the batch is bound before.
Proof: a scan of the result, in which the phase can replay and no prefill got the graph; that a
second decision stands elsewhere (SPM104) is said again, because the first one is back.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from specmap.codemap.graph import Flag, FlagStatus
from specmap.codemap.remedy import Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.fix.facts import Facts, facts_of
from specmap.fix.lost import Part, Place, calls_one_of, lost, places
from specmap.fix.tree import Source, Tree, assigned, mentions, statements, walk

_WIDTH = 88


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose the decision that each constant flag stands for."""
    facts = facts_of(tree)
    routes = {p.symbol: p for p in places(tree, facts) if p.part is Part.ROUTE}
    workers = tuple(worker.id for worker, _ in lost(tree, facts))
    for flag in tree.codemap.flags:
        place = routes.get(flag.holder)
        if flag.status is FlagStatus.CONSTANT and flag.value is False and flag.decides and place:
            yield from _restored(tree, facts, flag, place, workers)


def _restored(
    tree: Tree, facts: Facts, flag: Flag, place: Place, workers: tuple[str, ...]
) -> Iterator[Proposal]:
    source, function = tree.source_of(place.symbol), tree.function(place.symbol)
    if function is None:
        return
    stores = [s for s in statements(function) if (b := assigned(s)) and b[0] == flag.name]
    here = [s for s in stores if source.lines(s)[0] == flag.span.line]
    guarded = _guarded(source, function, flag.name, place)
    if not here or not guarded:
        return
    refused = "" if len(stores) == 1 else f"{flag.name} is bound {len(stores)} times"
    asked = next((d for d in sorted(tree.names.scan.decisions)
                  if tree.function(f"{place.runner}.{d}") is not None), "")  # fmt: skip
    if not asked:
        refused = f"{place.runner.rpartition('::')[2]} has no test of its own"
    runner, batch = guarded
    terms = [runner, f"{runner}.{asked}({batch})"]
    if _serves_prefill(tree, place.symbol):
        test = _mode_test(tree, facts, source, function, place, batch)
        refused = refused or ("" if test else "prefill comes here too, and no mode test tells it")
        terms.insert(0, test)
    bound = assigned(here[0])
    value = bound[1] if bound else here[0]
    prefix = f"{source.indent(here[0])}{flag.name} = "
    yield Proposal(
        REWRITE.id,
        Span(source.file, flag.span.line, flag.span.line),
        place.symbol,
        f"{flag.name} = {flag.text} becomes {' and '.join(terms)}",
        () if refused else (source.replace(value, _formatted(prefix, terms)),),
        (f"{flag.name} guards a call of {runner}, and is bound once",),
        refused,
        workers,
    )


def _guarded(
    source: Source, function: cst.FunctionDef, name: str, place: Place
) -> tuple[str, str] | None:
    """The runner and the batch of the call that a flag guards."""
    for node in walk(function.body):
        if not isinstance(node, cst.If) or not mentions(node.test, name):
            continue
        for call in walk(node.body):
            if isinstance(call, cst.Call) and calls_one_of(call, place.attributes) and call.args:
                function_ = call.func
                if isinstance(function_, cst.Attribute) and isinstance(
                    call.args[0].value, cst.Name
                ):
                    return source.flat(function_.value), source.flat(call.args[0].value)
    return None


def _serves_prefill(tree: Tree, symbol: str) -> bool:
    prefill = (PhaseName.TARGET_PREFILL, PhaseName.DRAFT_PREFILL)
    return any(
        holder == symbol
        for worker in tree.codemap.workers
        for phase in worker.phases
        if phase.name in prefill
        for arm in phase.arms
        for holder, _ in arm.chain
    )


def _mode_test(
    tree: Tree,
    facts: Facts,
    source: Source,
    function: cst.FunctionDef,
    place: Place,
    batch: str,
) -> str:
    """A test of the forward mode: one that stands there unused, else the mode's own."""
    attributes = tree.names.scan.mode_attribute
    for statement in statements(function):
        bound = assigned(statement)
        if bound is None or mentions(function.body, bound[0]) != 1:
            continue
        text = source.flat(bound[1])
        if any(f"{batch}.{attribute}." in text for attribute in attributes):
            return bound[0] if text.endswith(")") else f"{bound[0]}()"
    captured = {c.mode for c in tree.codemap.hazards.captured_modes if c.runner == place.runner}
    prefill = set(tree.names.scan.modes["prefill"])
    fitting = [
        (len(holds), name)
        for name, holds in facts.mode_methods.items()
        if captured <= holds and not holds & prefill
    ]
    return f"{batch}.{min(attributes)}.{min(fitting)[1]}()" if fitting else ""


def _formatted(prefix: str, terms: list[str]) -> str:
    """A conjunction as a formatter writes it."""
    joined = " and ".join(terms)
    indent = " " * (len(prefix) - len(prefix.lstrip()))
    if len(f"{prefix}bool({joined})") <= _WIDTH:
        return f"bool({joined})"
    if len(f"{indent}    {joined}") <= _WIDTH:
        return f"bool(\n{indent}    {joined}\n{indent})"
    lines = f"\n{indent}    and ".join(terms)
    return f"bool(\n{indent}    {lines}\n{indent})"


REWRITE = Rewrite(
    id="SPF102",
    name="constant-decision",
    summary="A decision that is a constant asks the graph runner again",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM101",),
    page=__doc__ or "",
    allows=("SPM104",),
)
