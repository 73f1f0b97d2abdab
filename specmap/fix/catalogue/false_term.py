"""A term that is false for every verify batch is taken out of the decision.

Forks lose the graph of verify by one term: a constant that was left `False`, a test of the
forward mode, a test that takes a verify batch of fixed width for one of variable width, or an
early `return` where the runner is made, or before the runner is asked. Such a term excludes
*every* verify batch, so that captured graphs are never replayed.

**Before**

    is_tree_supported = False
    return is_bs_supported and is_tree_supported

**After**

    return is_bs_supported

Preconditions: the number of verify tokens is fixed at launch; the target's runner captures the
verify mode; the term's value follows from the source (the mode's own methods, the algorithm's,
the numbers of a batch, a constant that is stored once). A flag that is only reported is no cause.
Proof: a scan of the result, in which verify can replay and no other phase changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from specmap.codemap.remedy import Change, Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.fix.cuts import operands, unwrapped, without
from specmap.fix.facts import Facts, facts_of
from specmap.fix.lost import Part, Place, calls_one_of, decision, lost, places
from specmap.fix.scope import Scope
from specmap.fix.tree import Source, Tree, assigned, mentions, statements, walk

_PURE = frozenset({"numel", "size", "dim", "len", "bool", "getattr", "isinstance"})


@dataclass(frozen=True)
class _Cut:
    """A term that can go, with what goes along, and its value for verify."""

    node: cst.CSTNode
    text: str
    changes: tuple[Change, ...]
    value: str = "false"


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose to take out each term that excludes all verify batches of a worker."""
    facts = facts_of(tree)
    wanting = lost(tree, facts)
    if not wanting:
        return
    variable = [w.name for w, p in wanting if p.static_shape is None or not p.static_shape.fixed]
    workers = tuple(w.id for w, _ in wanting if w.name not in variable)
    for place in places(tree, facts):
        function, source = tree.function(place.symbol), tree.source_of(place.symbol)
        scope = facts.scope(place.symbol)
        for cut in _cuts(source, function, scope, facts, place) if function is not None else ():
            line, end = source.lines(cut.node)
            refused = ""
            if not workers:
                refused = f"the number of verify tokens of {', '.join(variable)} is not fixed"
            elif not facts.captures_verify(place.runner):
                refused = f"{place.runner.rpartition('::')[2]} captures no graph for verify"
            yield Proposal(
                REWRITE.id,
                Span(source.file, line, end),
                place.symbol,
                f"{cut.text}: {cut.value} for every verify batch",
                () if refused else cut.changes,
                (f"{source.file}:{line}: {cut.text}", "the number of verify tokens is fixed"),
                refused,
                workers or tuple(worker.id for worker, _ in wanting),
            )


def _cuts(
    source: Source, function: cst.FunctionDef, scope: Scope, facts: Facts, place: Place
) -> Iterator[_Cut]:
    """Yield the terms that exclude verify, and the tests that leave early for it."""
    names, values = decision(facts.tree, place)
    alone = not _prefill_is_out(facts, place)
    for value in values:
        yield from _terms(source, function, value, scope, facts, alone)
    for node in walk(function.body):
        if isinstance(node, cst.If):
            leaves = _leaves(node, place, names, facts, source)
            if leaves or _detours(node, place, function, facts, source):
                yield from _early(source, node, scope, facts)


def _terms(
    source: Source, function: cst.FunctionDef, value: cst.BaseExpression, scope: Scope,
    facts: Facts, alone: bool,
) -> Iterator[_Cut]:  # fmt: skip
    """Yield the conjuncts that are false for verify, where something else is left.

    ``alone`` says that nothing before this decision keeps prefill away from the graph.
    """
    chain = operands(unwrapped(value), cst.And)
    dead = [i for i, o in enumerate(chain) if _settled(source, o, scope, facts) is False]
    if alone:
        # A test that also keeps prefill away from the graph has to stay, in a wider form.
        dead = [i for i in dead if not facts.keeps_prefill_out(source.flat(chain[i]), scope)]
    dead = [i for i in dead if not _guards(chain[i], chain[i + 1 :], source)]
    if len(chain) == len(dead) == 1 and _others_decide(source, function, value, scope, facts):
        yield _Cut(value, source.flat(value), (source.replace(value, "True"),))
    if len(dead) == len(chain):
        return
    for index in dead:
        operand = chain[index]
        along = _binding(source, function, operand)
        changes = (without(source, chain, index), *along)
        yield _Cut(operand, source.flat(operand), changes)


def _others_decide(
    source: Source, function: cst.FunctionDef, value: cst.BaseExpression, scope: Scope, facts: Facts
) -> bool:
    """Whether a function that ends with a value says no before it, for what is not known."""
    last = function.body.body[-1]
    end = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    if not isinstance(end, cst.Return) or end.value is not value:
        return False
    return any(
        isinstance(s, cst.If)
        and facts.truth(source.flat(s.test), scope) is None
        and source.code(s.body).rstrip().endswith(("return False", "return None"))
        for s in function.body.body
    )


def _settled(source: Source, term: cst.BaseExpression, scope: Scope, facts: Facts) -> bool | None:
    """The truth of a term for verify, where no test of another kind would go with it."""
    text = source.flat(term)
    return facts.truth(text, scope) if facts.whole(text, scope) else None


def _prefill_is_out(facts: Facts, place: Place) -> bool:
    """Whether the code that asks a runner has a test of its own that keeps prefill from it."""
    tree = facts.tree
    prefill = Facts(tree, tree.names.scan.modes["prefill"])
    way = {
        holder
        for worker in tree.codemap.workers
        for phase in worker.phases
        if phase.name is PhaseName.TARGET_PREFILL
        for arm in phase.arms
        for holder, _ in arm.chain
    }
    routes = [p for p in places(tree, facts) if p.part is Part.ROUTE and p.symbol in way]
    if place.part is not Part.RUNNER or not routes:
        return False
    return all(_sorts_out(tree, facts, prefill, route) for route in routes)


def _sorts_out(tree: Tree, facts: Facts, prefill: Facts, route: Place) -> bool:
    """Whether a term of a decision is false for prefill and not for verify."""
    source, scope = tree.source_of(route.symbol), facts.scope(route.symbol)
    values = decision(tree, route)[1]
    terms = [source.flat(o) for v in values for o in operands(unwrapped(v), cst.And)]
    return any(
        prefill.truth(t, scope) is False and facts.truth(t, scope) is not False for t in terms
    )


def _guards(term: cst.BaseExpression, later: list[cst.BaseExpression], source: Source) -> bool:
    """Whether a term keeps later ones from reading what is ``None``; it has to go with them."""
    text = source.flat(term)
    name = text.removesuffix(" is not None")
    return text != name and any(name in source.flat(other) for other in later)


def _binding(
    source: Source, function: cst.FunctionDef, operand: cst.BaseExpression
) -> tuple[Change, ...]:
    """The assignment of a name that nothing else reads goes with the term."""
    if not isinstance(operand, cst.Name) or mentions(function.body, operand.value) != 2:
        return ()
    for statement in statements(function):
        bound = assigned(statement)
        if bound is not None and bound[0] == operand.value:
            pure = all(_reads(n) for n in walk(bound[1]) if isinstance(n, cst.Call | cst.Await))
            return (source.drop(statement),) if pure else ()
    return ()


def _reads(call: cst.CSTNode) -> bool:
    """Whether a call only asks something."""
    function = call.func if isinstance(call, cst.Call) else None
    name = function.attr if isinstance(function, cst.Attribute) else function
    text = name.value if isinstance(name, cst.Name) else ""
    return text in _PURE or text.startswith("is_")


def _leaves(node: cst.If, place: Place, names: set[str], facts: Facts, source: Source) -> bool:
    """Whether an ``if`` does nothing but say something and give the graph up."""
    if not isinstance(node.body, cst.IndentedBlock) or not node.body.body:
        return False
    *before, last = node.body.body
    if not isinstance(last, cst.SimpleStatementLine) or not _only_says(before, source, facts):
        return False
    end, bound = last.body[-1], assigned(last)
    if bound is not None:
        return bound[0] in names and source.flat(bound[1]) == "False"
    if not isinstance(end, cst.Return) or len(last.body) != 1:
        return False
    value = "None" if end.value is None else source.flat(end.value)
    return value in {Part.RUNNER: ("False", "None"), Part.CAPTURE: ("None",)}.get(place.part, ())


def _detours(
    node: cst.If, place: Place, function: cst.FunctionDef, facts: Facts, source: Source
) -> bool:
    """Whether an ``if`` returns before the graph is asked, and what it does is done without it.

    That is an eager half of a pass, and what stands behind the ``if`` too.
    """
    if place.part is not Part.ROUTE or not isinstance(node.body, cst.IndentedBlock):
        return False
    *before, last = node.body.body
    if not isinstance(last, cst.SimpleStatementLine) or not isinstance(last.body[0], cst.Return):
        return False
    if calls_one_of(node.body, place.attributes) or not all(map(_local, before)):
        return False
    end = source.extent(node)[1]
    done = {
        source.flat(n.func) for n in walk(function.body)
        if isinstance(n, cst.Call) and source.extent(n)[0] > end
    }  # fmt: skip
    halves = facts.tree.names.lists["eager_halves"]
    called = [source.flat(n.func) for n in walk(node.body) if isinstance(n, cst.Call)]
    return bool(called) and all(c in done or c.rpartition(".")[2] in halves for c in called)


def _local(statement: cst.BaseStatement) -> bool:
    """Whether a statement only binds local names, or calls something."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    small = statement.body[0]
    if isinstance(small, cst.Expr):
        return True
    targets = [t.target for t in small.targets] if isinstance(small, cst.Assign) else []
    names = [e.value for t in targets if isinstance(t, cst.Tuple) for e in t.elements]
    names += [t for t in targets if not isinstance(t, cst.Tuple)]
    return bool(names) and all(isinstance(n, cst.Name) for n in names)


def _only_says(body: list[cst.BaseStatement], source: Source, facts: Facts) -> bool:
    """Whether statements only tell the operator something."""
    says = facts.says
    return all(
        isinstance(s, cst.SimpleStatementLine)
        and all(isinstance(e, cst.Expr) for e in s.body)
        and source.code(s).strip().split("(")[0].split(".")[0] in says
        for s in body
    )


def _early(source: Source, node: cst.If, scope: Scope, facts: Facts) -> Iterator[_Cut]:
    """Yield a test that holds for verify and gives the graph up, or its part that does."""
    chain = operands(unwrapped(node.test), cst.Or)
    true = [i for i, o in enumerate(chain) if _settled(source, o, scope, facts) is True]
    if len(true) == len(chain) and node.orelse is None:
        text = f"if {source.flat(node.test)}"
        yield _Cut(node, text, (source.drop(node),), "holds")
    elif len(true) < len(chain):
        for index in true:
            change = without(source, chain, index)
            yield _Cut(chain[index], source.flat(chain[index]), (change,), "holds")


REWRITE = Rewrite(
    id="SPF101",
    name="verify-excluded",
    summary="A term that is false for every verify batch leaves the decision",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM101", "SPM105"),
    page=__doc__ or "",
)
