"""Verify goes through the pass that asks the graph runner.

**Before**

    logits_output, flag = self.target_worker.model_runner.forward_extend(forward_batch)

**After**

    verify_output = self.target_worker.model_runner.forward(forward_batch)
    logits_output, flag = (verify_output.logits_output, verify_output.can_run_graph)

A worker that calls the model, or the eager half of a pass, never gets to the runner's test. The
pass that asks is found in the tree: the method of the model runner that leads to the test. Where
the result is read as a worker's result, the worker's own method is called instead. What cannot
replay still runs eager, behind the same call.

Preconditions: every way of verify misses the test; the batch is a bare name; the shape of the
result is known from the pass's own `return`. Proof: a scan of the result, in which verify can
replay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from specmap.codemap.graph import EdgeStatus, Phase
from specmap.codemap.remedy import Change, Proposal, Rewrite, Safety
from specmap.codemap.source import Span, qualname_of
from specmap.codemap.verdict import PhaseName
from specmap.fix.facts import Facts, facts_of
from specmap.fix.lost import Part, bypassing, lost, places
from specmap.fix.tree import Source, Tree, assigned, mentions, statements, walk

_WIDTH = 88


@dataclass(frozen=True)
class _Pass:
    """The pass that asks the runner: its name, and the fields of its result."""

    name: str
    logits: str = ""
    flag: str = ""


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose to send each verify that misses the runner through the target's pass."""
    facts = facts_of(tree)
    sites: dict[tuple[str, int], list[str]] = {}
    for worker, phase in lost(tree, facts):
        if bypassing(phase, tree, facts):
            sites.setdefault(_site(tree, phase), []).append(worker.id)
    for site, workers in _calls_of_models(tree, facts):
        sites.setdefault(site, workers)
    through = _pass(tree, facts) if sites else None
    for (holder, line), workers in sorted(sites.items()):
        source, function = tree.source_of(holder), tree.function(holder)
        call = _call(tree, source, function, line) if function is not None else None
        if function is None or call is None:
            continue
        refused, changes = _routed(tree, facts, source, function, call, through, holder)
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


def _site(tree: Tree, phase: Phase) -> tuple[str, int]:
    """The last function on the way of verify that belongs to no model runner, and its call."""
    outside = [
        (holder, line)
        for holder, line in phase.arms[0].chain
        if qualname_of(holder).partition(".")[0] not in tree.names.scan.model_runner
    ]
    return outside[-1] if outside else phase.arms[0].chain[0]


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


def _pass(tree: Tree, facts: Facts) -> _Pass | None:
    """Find the model runner's method that leads to the test, and what it returns."""
    classes = tree.names.scan.model_runner
    routes = [
        p.symbol for p in places(tree, facts)
        if p.part is Part.ROUTE and qualname_of(p.symbol).partition(".")[0] in classes
    ]  # fmt: skip
    halves = tree.names.lists["eager_halves"]
    routes = [r for r in routes if qualname_of(r).rpartition(".")[2] not in halves]
    if not routes:
        return None
    inner = routes[0]
    owner = inner.rpartition(".")[0]
    outer = sorted(
        e.caller for e in tree.codemap.edges
        if inner in e.callees and e.caller.rpartition(".")[0] == owner
        and not qualname_of(e.caller).rpartition(".")[2].startswith("_")
    )  # fmt: skip
    name = qualname_of(outer[0] if outer else inner).rpartition(".")[2]
    function = facts.scope(inner).function
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            keys = [k.arg or "" for k in node.value.keywords]
            logits = next((k for k in keys if k in tree.names.lists["logits"]), "")
            flag = next((k for k in keys if k in tree.names.lists["graph_flag"]), "")
            if logits and flag:
                return _Pass(name, logits, flag)
    return _Pass(name)


def _routed(
    tree: Tree,
    facts: Facts,
    source: Source,
    function: cst.FunctionDef,
    call: cst.Call,
    through: _Pass | None,
    holder: str,
) -> tuple[str, tuple[Change, ...]]:
    """The changes, or the precondition that forbids them."""
    receiver = _runner(tree, source, call)
    batch = _batch(source, call, _of_model(tree, source, call))
    statement = next((s for s in statements(function) if any(n is call for n in walk(s))), None)
    if through is None:
        return "the tree has no pass that asks a graph runner", ()
    if not batch:
        return "the batch is not a bare name", ()
    if statement is None or not isinstance(statement.body[0], cst.Assign):
        return "the result of the call is not assigned", ()
    routed = f"{receiver}.{through.name}({batch})"
    target = statement.body[0].targets[0].target
    bound = assigned(statement)
    if isinstance(target, cst.Tuple) and bound is None:
        if len(target.elements) != 2:
            return "the result is taken apart in another way than (output, flag)", ()
        if not through.logits:
            return "", (source.replace(call, routed),)
        name = "verify_output"
        if mentions(function, name):
            return f"the name {name} is taken", ()
        parts = f"({name}.{through.logits}, {name}.{through.flag})"
        wraps = source.extent(statement.body[0].value)
        change = Change(source.file, wraps[0], wraps[1], parts)
        return "", (source.before(statement, f"{name} = {routed}\n"), change)
    if bound is None:
        return "the result of the call is stored in no local name", ()
    if _read_as_result(tree, source, function, bound[0]):
        return _by_worker(tree, facts, source, statement, call, batch, receiver, holder)
    if not through.logits:
        return "what the pass returns is not known", ()
    return "", (source.replace(call, f"{routed}.{through.logits}"),)


def _runner(tree: Tree, source: Source, call: cst.Call) -> str:
    """The expression of the model runner whose method, or whose model, is called."""
    text = source.flat(call.func)
    model = tree.names.scan.model_attribute
    before, found, _ = f"{text}.".rpartition(f".{model}.")
    return before if found else text.rpartition(".")[0]


def _batch(source: Source, call: cst.Call, whole: bool) -> str:
    """The bare name that is the batch: the last of a model's arguments, else the first."""
    bare = [a.value.value for a in call.args if isinstance(a.value, cst.Name)]
    bare = [name for name in bare if name not in ("True", "False", "None")]
    return (bare[-1] if whole else bare[0]) if bare else ""


def _read_as_result(tree: Tree, source: Source, function: cst.FunctionDef, name: str) -> bool:
    fields = {*tree.names.lists["logits"], *tree.names.lists["graph_flag"]}
    return any(
        isinstance(n, cst.Attribute)
        and isinstance(n.value, cst.Name)
        and n.value.value == name
        and n.attr.value in fields
        for n in walk(function.body)
    )


def _by_worker(
    tree: Tree,
    facts: Facts,
    source: Source,
    statement: cst.SimpleStatementLine,
    call: cst.Call,
    batch: str,
    receiver: str,
    holder: str,
) -> tuple[str, tuple[Change, ...]]:
    """Call the method of the worker that holds the runner, as its signature wants it."""
    worker = receiver.rpartition(".")[0]
    method, names = _worker_method(tree, facts)
    if not worker or not method:
        return "the worker that holds the runner is not known", ()
    first, by_name = names[0], next((n for n in names[1:] if batch.endswith(n)), "")
    arguments = [batch] if batch.endswith(first) or not by_name else [
        f"{first}=None", f"{by_name}={batch}"
    ]  # fmt: skip
    arguments += [f"{n}=True" for n in tree.names.lists["verify_flag"] if n in names]
    if by_name and _planned(tree, facts, holder):
        arguments += [f"{n}=True" for n in tree.names.lists["planned"] if n in names]
    code = _formatted(source, statement, f"{worker}.{method}", arguments)
    return "", (source.replace(call, code),)


def _worker_method(tree: Tree, facts: Facts) -> tuple[str, list[str]]:
    """The method by which workers run the target, and its parameters."""
    flags = set(tree.names.lists["verify_flag"])
    for function in tree.codemap.functions:
        name = function.qualname.rpartition(".")[2]
        if name in tree.names.scan.entry:
            node = facts.scope(function.id).function
            names = [a.arg for a in node.args.args[1:]] if node is not None else []
            if flags & set(names):
                return name, names
    return "", []


def _planned(tree: Tree, facts: Facts, holder: str) -> bool:
    """Whether a function called before decides about the graph, and so plans the metadata."""
    routes = {p.symbol for p in places(tree, facts) if p.part is Part.ROUTE}
    return any(e.caller == holder and routes & set(e.callees) for e in tree.codemap.edges)


def _formatted(
    source: Source, statement: cst.SimpleStatementLine, name: str, arguments: list[str]
) -> str:
    """A call as a formatter writes it."""
    indent, joined = source.indent(statement), ", ".join(arguments)
    line = source.code(statement.body[0]).partition("\n")[0]
    before = line[: line.find("=") + 2] if "=" in line else ""
    if len(f"{indent}{before}{name}({joined})") <= _WIDTH:
        return f"{name}({joined})"
    if len(f"{indent}    {joined}") <= _WIDTH:
        return f"{name}(\n{indent}    {joined}\n{indent})"
    lines = "".join(f"{indent}    {argument},\n" for argument in arguments)
    return f"{name}(\n{lines}{indent})"


REWRITE = Rewrite(
    id="SPF105",
    name="verify-bypasses-runner",
    summary="Verify goes through the pass that asks the graph runner",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM105",),
    page=__doc__ or "",
)
