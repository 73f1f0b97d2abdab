"""Verify goes through the pass that asks the graph runner.

**Before**

    logits_output, flag = self.target_worker.model_runner.forward_extend(forward_batch)

**After**

    verify_output = self.target_worker.model_runner.forward(forward_batch)
    logits_output, flag = (verify_output.logits_output, verify_output.can_run_graph)

A worker that calls the model, or the eager half of a pass, never gets to the runner's test. The
pass that asks is found in the tree: the method of the model runner that leads to the test. The
result keeps its shape: logits alone, or logits and flag. Where it is read as a worker's result,
the worker's own method is called instead. What cannot replay still runs eager, behind the same
call.

Preconditions: every way of verify misses the test; the pass that asks takes every argument that is
given; what both passes return is known from their own `return` statements. Proof: a scan of the
result, in which verify can replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from specmap.codemap.graph import Arm, EdgeStatus
from specmap.codemap.remedy import Change, Proposal, Rewrite, Safety
from specmap.codemap.source import Span, qualname_of
from specmap.codemap.verdict import PhaseName
from specmap.fix.facts import Facts, facts_of
from specmap.fix.lost import Part, bypassing, lost, places
from specmap.fix.passes import Pass, Shape, asking_pass, called_pass, worker_method
from specmap.fix.tree import Source, Tree, assigned, mentions, statements, walk

_WIDTH = 88
_OUTPUT = "verify_output"


@dataclass(frozen=True)
class _Site:
    """A call that misses the test; ``receiver`` is the expression of the model runner."""

    holder: str
    source: Source
    call: cst.Call
    statement: cst.SimpleStatementLine | None
    receiver: str


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose to send each verify that misses the runner through the target's pass."""
    facts = facts_of(tree)
    sites: dict[tuple[str, int], list[str]] = {}
    for worker, phase in lost(tree, facts):
        if bypassing(phase, tree, facts):
            for site in {_site(tree, arm) for arm in phase.arms}:
                sites.setdefault(site, []).append(worker.id)
    for site, workers in _calls_of_models(tree, facts):
        sites.setdefault(site, workers)
    through = asking_pass(tree, facts) if sites else None
    for (holder, line), workers in sorted(sites.items()):
        source, function = tree.source_of(holder), tree.function(holder)
        call = _call(tree, source, function, line) if function is not None else None
        if function is None or call is None:
            continue
        statement = next((s for s in statements(function) if any(n is call for n in walk(s))), None)
        made = _Site(holder, source, call, statement, _runner(tree, source, call))
        refused, changes = _routed(tree, facts, function, made, through)
        yield Proposal(
            REWRITE.id,
            Span(source.file, *source.lines(call)),
            holder,
            f"{source.flat(call.func)} misses the graph runner",
            changes,
            (f"the pass that asks the runner is {through.name}" if through else "",),
            refused,
            tuple(workers),
        )


def _calls_of_models(tree: Tree, facts: Facts) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """Yield calls of a target's model itself in the mode of verify, with the workers' ids."""
    model = tree.names.scan.model_attribute
    for edge in tree.codemap.edges:
        direct = edge.status is EdgeStatus.EXTERNAL and f".{model}." in f"{edge.text}."
        if direct and set(edge.forward_modes) & set(facts.modes):
            owner = edge.caller.rpartition(".")[0]
            workers = [
                w.id for w in tree.codemap.workers
                if owner in w.mro and not any(p.role == "target" and p.arms for p in w.phases
                                              if p.name is PhaseName.VERIFY)
            ]  # fmt: skip
            if workers:
                yield (edge.caller, edge.span.line), workers


def _site(tree: Tree, arm: Arm) -> tuple[str, int]:
    """The last function on the way of verify that belongs to no model runner, and its call."""
    outside = [
        (holder, line)
        for holder, line in arm.chain
        if qualname_of(holder).partition(".")[0] not in tree.names.scan.model_runner
    ]
    return outside[-1] if outside else arm.chain[0]


def _call(tree: Tree, source: Source, function: cst.FunctionDef, line: int) -> cst.Call | None:
    """The call at a line that runs the model: of a runner's method, or of the model itself."""
    calls = [n for n in walk(function.body) if isinstance(n, cst.Call)]
    near = [c for c in calls if source.lines(c)[0] <= line <= source.lines(c)[1] and c.args]
    named = [c for c in near if _runs(tree, source, c) or _of_model(tree, source, c)]
    return min(named, key=lambda c: source.extent(c)[0] - source.extent(c)[1], default=None)


def _runs(tree: Tree, source: Source, call: cst.Call) -> bool:
    """Whether a call's name begins as those of passes do."""
    name = source.flat(call.func).rpartition(".")[2]
    return name.startswith(tree.names.lists["passes"])


def _of_model(tree: Tree, source: Source, call: cst.Call) -> bool:
    model = tree.names.scan.model_attribute
    return f".{model}." in f"{source.flat(call.func)}."


def _routed(
    tree: Tree, facts: Facts, function: cst.FunctionDef, site: _Site, through: Pass | None
) -> tuple[str, tuple[Change, ...]]:
    """The changes, or the precondition that forbids them."""
    if through is None:
        return "the tree has no pass that asks a graph runner", ()
    whole = _of_model(tree, site.source, site.call)
    called = called_pass(tree, facts, site.holder, site.source, site.call)
    if whole:
        called = Pass(tree.names.scan.model_attribute, (), Shape.LOGITS)
    if called is None or Shape.UNKNOWN in (called.shape, through.shape):
        return "what the call returns is not known", ()
    arguments, refused = _arguments(site, called, through, whole)
    if refused:
        return refused, ()
    bound = assigned(site.statement) if site.statement is not None else None
    if whole and bound is not None and _read_as_result(tree, site.source, function, bound[0]):
        return _by_worker(tree, facts, site, arguments[0])
    planned = [n for n in tree.names.lists["planned"] if n in through.parameters]
    given = [a for a in arguments[1:] if a.partition("=")[0] in planned]
    if planned and _planned(tree, facts, site.holder):
        arguments += [] if given else [f"{planned[0]}=True"]
    else:  # what was planned was the eager pass
        arguments = [a for a in arguments if a not in given]
    return _same_shape(function, site, called, through, arguments)


def _same_shape(
    function: cst.FunctionDef, site: _Site, called: Pass, through: Pass, arguments: list[str]
) -> tuple[str, tuple[Change, ...]]:
    """Call the pass that asks, in an expression of the old call's shape."""
    source, call, statement = site.source, site.call, site.statement
    name = f"{site.receiver}.{through.name}"
    same = called.shape is through.shape
    if same and (called.logits, called.flag) == (through.logits, through.flag):
        return "", (source.replace(call, _formatted(site, name, arguments)),)
    if called.shape is Shape.LOGITS:
        if statement is not None and _takes_apart(statement, call):
            return "the result of the call is taken apart", ()
        part = through.part("", 0)
        return "", (source.replace(call, _formatted(site, name, arguments, part)),)
    if called.shape is not Shape.PAIR:
        return "the passes return objects with different fields", ()
    picked = _picked(source, function, call)
    if picked is not None:
        part = through.part("", picked[1])
        return "", (source.replace(picked[0], _formatted(site, name, arguments, part)),)
    if statement is None or _value(statement) is not call:
        return "the result of the call is used inside an expression", ()
    if mentions(function, _OUTPUT):
        return f"the name {_OUTPUT} is taken", ()
    routed = _formatted(site, name, arguments, before=f"{_OUTPUT} = ")
    start, indent = source.extent(statement)[0], source.indent(statement)
    both = [through.part(_OUTPUT, 0), through.part(_OUTPUT, 1)]
    parts = f"({', '.join(both)})"
    rest = len(source.code(statement).strip()) - len(source.code(call))
    if len(indent) + rest + len(parts) > _WIDTH:
        parts = "(\n" + "".join(f"{indent}    {part},\n" for part in both) + f"{indent})"
    first = Change(source.file, start, start, f"{_OUTPUT} = {routed}\n{indent}")
    return "", (first, source.replace(call, parts))


def _value(statement: cst.SimpleStatementLine) -> cst.BaseExpression | None:
    """The expression that a statement stores or returns."""
    small = statement.body[0] if len(statement.body) == 1 else None
    return small.value if isinstance(small, cst.Assign | cst.AnnAssign | cst.Return) else None


def _takes_apart(statement: cst.SimpleStatementLine, call: cst.Call) -> bool:
    small = statement.body[0]
    return _value(statement) is call and (
        isinstance(small, cst.Assign) and isinstance(small.targets[0].target, cst.Tuple)
    )


def _picked(
    source: Source, function: cst.FunctionDef, call: cst.Call
) -> tuple[cst.Subscript, int] | None:
    """The subscript that picks the logits or the flag: ``call[0]`` or ``call[1]``."""
    for node in walk(function.body):
        if isinstance(node, cst.Subscript) and node.value is call and len(node.slice) == 1:
            index = source.flat(node).rpartition("[")[2]
            return (node, int(index[0])) if index in ("0]", "1]") else None
    return None


def _arguments(site: _Site, called: Pass, through: Pass, whole: bool) -> tuple[list[str], str]:
    """The batch, and the other arguments by name; or why they cannot be given on."""
    source, found = site.source, {}
    if any(a.star for a in site.call.args):
        return [], "the call hands on arguments that the source does not name"
    if whole:
        last = site.call.args[-1]
        extra = [a.keyword.value for a in site.call.args[:-1] if a.keyword is not None]
        if not isinstance(last.value, cst.Name | cst.Attribute) or extra:
            return [], "the batch is not the last of the model's arguments"
        return [source.flat(last.value)], ""
    for index, argument in enumerate(site.call.args):
        known = called.parameters[index : index + 1] or ("",)
        name = argument.keyword.value if argument.keyword is not None else known[0]
        found[name] = source.flat(argument.value)
    batch = found.pop(called.parameters[0] if called.parameters else "", "")
    unknown = [name for name in found if name not in through.parameters]
    if not batch or unknown:
        return [], f"{through.name} takes no {unknown[0] or 'such argument'}" if unknown else (
            "the call is given no batch"
        )  # fmt: skip
    return [batch, *(f"{name}={text}" for name, text in found.items())], ""


def _runner(tree: Tree, source: Source, call: cst.Call) -> str:
    """The expression of the model runner whose method, or whose model, is called."""
    text = source.flat(call.func)
    model = tree.names.scan.model_attribute
    before, found, _ = f"{text}.".rpartition(f".{model}.")
    return before if found else text.rpartition(".")[0]


def _read_as_result(tree: Tree, source: Source, function: cst.FunctionDef, name: str) -> bool:
    fields = {*tree.names.lists["logits"], *tree.names.lists["graph_flag"]}
    return any(
        isinstance(n, cst.Attribute)
        and isinstance(n.value, cst.Name)
        and n.value.value == name
        and n.attr.value in fields
        for n in walk(function.body)
    )


def _by_worker(tree: Tree, facts: Facts, site: _Site, batch: str) -> tuple[str, tuple[Change, ...]]:
    """Call the method of the worker that holds the runner, as its signature wants it."""
    worker = site.receiver.rpartition(".")[0]
    method, names = worker_method(tree, facts)
    if not worker or not method:
        return "the worker that holds the runner is not known", ()
    first, by_name = names[0], next((n for n in names[1:] if batch.endswith(n)), "")
    arguments = [batch] if batch.endswith(first) or not by_name else [
        f"{first}=None", f"{by_name}={batch}"
    ]  # fmt: skip
    arguments += [f"{n}=True" for n in tree.names.lists["verify_flag"] if n in names]
    if by_name and _planned(tree, facts, site.holder):
        arguments += [f"{n}=True" for n in tree.names.lists["planned"] if n in names]
    code = _formatted(site, f"{worker}.{method}", arguments)
    return "", (site.source.replace(site.call, code),)


def _planned(tree: Tree, facts: Facts, holder: str) -> bool:
    """Whether a function called before decides about the graph, and so plans the metadata."""
    routes = {p.symbol for p in places(tree, facts) if p.part is Part.ROUTE}
    return any(e.caller == holder and routes & set(e.callees) for e in tree.codemap.edges)


def _formatted(
    site: _Site, name: str, arguments: list[str], after: str = "", before: str | None = None
) -> str:
    """A call as a formatter writes it; ``before`` is what shall stand before it on its line."""
    source, place = site.source, site.statement or site.call
    indent, joined = source.indent(place), ", ".join(arguments)
    if before is None:
        start = source.extent(site.call)[0]
        before = source.text[:start].rpartition("\n")[2].lstrip()
    if len(f"{indent}{before}{name}({joined}){after}") <= _WIDTH:
        return f"{name}({joined}){after}"
    if len(f"{indent}    {joined}") <= _WIDTH:
        return f"{name}(\n{indent}    {joined}\n{indent}){after}"
    lines = "".join(f"{indent}    {argument},\n" for argument in arguments)
    return f"{name}(\n{lines}{indent}){after}"


REWRITE = Rewrite(
    id="SPF105",
    name="verify-bypasses-runner",
    summary="Verify goes through the pass that asks the graph runner",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM105",),
    allows=("SPM102",),
    page=__doc__ or "",
)
