"""A launch setting that turns graphs off for good is left as the operator set it.

**Before**

    server_args.disable_cuda_graph = True
    self.tp_worker = TpModelWorker(server_args=server_args)

**After**

    self.tp_worker = TpModelWorker(server_args=server_args)

A draft runner is built with graphs off and captures its own later; the old value is put back. A
store that is never undone also takes the target's graphs; so does one that is undone, where it is
the target that is built meanwhile. Of `off or speculates` the part that holds for every launch
with speculation goes.

Preconditions: the function neither saves nor stores the setting elsewhere, so that nothing puts
it back, or it builds a class that verifies and no draft before it puts the setting back; nothing
but the launch leads there: under a test the store is refused, because the test may have its reason.
Proof: a scan of the result, in which verify of the workers that ask for this setting can replay.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from specmap.codemap.condition import atoms_of
from specmap.codemap.remedy import Proposal, Rewrite, Safety
from specmap.codemap.source import Span, symbol_id
from specmap.fix.cuts import operands, without
from specmap.fix.facts import Facts, facts_of
from specmap.fix.lost import lost, verifying
from specmap.fix.sites import block_of, tests_around
from specmap.fix.tree import Source, Tree, definitions, statements, walk


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose to take away each store that turns the target's graphs off for good."""
    facts = facts_of(tree)
    switches = tree.names.lists["switches"]
    for file in tree.files:
        text = tree.text(file)
        if not file.startswith(tree.names.scan.scope) or not any(
            f".{switch} = " in text for switch in switches
        ):
            continue
        source = tree.source(file)
        for name, function in _functions(source):
            for statement in statements(function):
                target = _switched(source, statement, switches)
                if target:
                    yield from _proposed(source, name, function, statement, target, facts)
                yield from _meanwhile(source, name, function, statement, facts)


def _functions(source: Source) -> Iterator[tuple[str, cst.FunctionDef]]:
    for outer in definitions(source.module):
        if isinstance(outer, cst.FunctionDef):
            yield outer.name.value, outer
            continue
        for inner in definitions(outer.body):
            if isinstance(inner, cst.FunctionDef):
                yield f"{outer.name.value}.{inner.name.value}", inner


def _switched(source: Source, statement: cst.SimpleStatementLine, switches: tuple[str, ...]) -> str:
    """The setting that a statement turns on: ``server_args.disable_cuda_graph``."""
    small = statement.body[0]
    if not isinstance(small, cst.Assign) or source.flat(small.value) != "True":
        return ""
    target = small.targets[0].target
    named = isinstance(target, cst.Attribute) and target.attr.value in switches
    return source.flat(target) if named else ""


def _proposed(
    source: Source,
    name: str,
    function: cst.FunctionDef,
    statement: cst.SimpleStatementLine,
    target: str,
    facts: Facts,
) -> Iterator[Proposal]:
    switch = target.rpartition(".")[2]
    uses = [
        n for n in walk(function.body) if isinstance(n, cst.Attribute) and n.attr.value == switch
    ]
    if len(uses) > 1:
        return
    symbol = symbol_id(source.file, name)
    refused = _under_a_test(source, symbol, function, statement, facts)
    line = source.lines(statement)[0]
    yield Proposal(
        REWRITE.id,
        Span(source.file, line, line),
        symbol,
        f"{target} = True is never undone",
        () if refused else (source.drop(statement),),
        (f"{name} neither saves {target} nor puts it back",),
        refused,
        _asking(facts, switch),
    )


def _under_a_test(
    source: Source,
    symbol: str,
    function: cst.FunctionDef,
    statement: cst.SimpleStatementLine,
    facts: Facts,
) -> str:
    """Why a store may be meant: a test around it that the launch does not settle."""
    for test, _ in tests_around(function, statement):
        if facts.truth(source.flat(test.test), facts.scope(symbol)) is None:
            return f"it stands under a test that may have its reason: {source.flat(test.test)}"
    return ""


def _meanwhile(
    source: Source,
    name: str,
    function: cst.FunctionDef,
    statement: cst.SimpleStatementLine,
    facts: Facts,
) -> Iterator[Proposal]:
    """A store that is undone after the target was built."""
    names, small, symbol = facts.tree.names, statement.body[0], symbol_id(source.file, name)
    if not isinstance(small, cst.Assign) or source.file.startswith(names.scan.speculative):
        return
    target = small.targets[0].target
    if not isinstance(target, cst.Attribute) or target.attr.value not in names.lists["switches"]:
        return
    terms = operands(small.value, cst.Or)
    scope = facts.scope(symbol)
    off = [i for i, t in enumerate(terms) if facts.truth(source.flat(t), scope) is True]
    block = block_of(function, statement)
    place = next((i for i, s in enumerate(block) if s is statement), len(block))
    stores = [i for i, s in enumerate(block) if i > place and _stores(source, s, target)]
    if len(off) != 1 or not stores:
        return
    between = block[place + 1 : stores[0]]
    made = _built(source, function, between, facts)
    if not made:
        return
    change = without(source, terms, off[0]) if len(terms) > 1 else source.drop(statement)
    text = source.flat(target)
    line = source.lines(statement)[0]
    refused = _under_a_test(source, symbol, function, statement, facts)
    yield Proposal(
        REWRITE.id,
        Span(source.file, line, line),
        symbol,
        f"{text} holds while {made}, the target, is built",
        () if refused else (change,),
        (f"{source.flat(terms[off[0]])} holds for every launch with speculation",),
        refused,
        _asking(facts, target.attr.value),
    )


def _asking(facts: Facts, switch: str) -> tuple[str, ...]:
    """The workers whose verify replays as a setting says, or else those that lost their graph."""
    asking = tuple(
        worker.id
        for worker, phase in verifying(facts.tree)
        if worker.reachable
        and any(atom.text.endswith(f".{switch}") for atom in atoms_of(phase.graph_when))
    )
    return asking or tuple(worker.id for worker, _ in lost(facts.tree, facts))


def _stores(source: Source, statement: cst.CSTNode, target: cst.Attribute) -> bool:
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Assign) and any(
        source.flat(t.target) == source.flat(target) for t in small.targets
    )


def _built(
    source: Source, function: cst.FunctionDef, body: list[cst.BaseStatement], facts: Facts
) -> str:
    """The class that verifies and that statements build, where they build no draft."""
    calls = [n for s in body for n in walk(s) if isinstance(n, cst.Call)]
    marks = facts.tree.names.scan.launch_words.draft_marks
    if any(a.keyword is not None and a.keyword.value in marks for c in calls for a in c.args):
        return ""
    verifying = _verifying(facts)
    for call in calls:
        if isinstance(call.func, cst.Name):
            name = call.func.value
            for meant in (name, *_given(source, function, name)):
                if meant in verifying:
                    return meant
    return ""


def _verifying(facts: Facts) -> set[str]:
    """The names of the classes whose pass takes a word for verify: those that run a target."""
    names = facts.tree.names
    words = names.lists["verify_flag"]
    found = set()
    for function in facts.tree.codemap.functions:
        owner, _, method = function.qualname.rpartition(".")
        if method in names.scan.entry and owner:
            own = facts.scope(function.id).function
            if own is not None and any(a.arg in words for a in own.args.args):
                found.add(owner)
    return found


def _given(source: Source, function: cst.FunctionDef, name: str) -> set[str]:
    """What the callers in the same file hand to a parameter."""
    parameters = [p.name.value for p in function.params.params if p.name.value != "self"]
    if name not in parameters:
        return set()
    place = parameters.index(name)
    found = set()
    for call in walk(source.module):
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            continue
        if call.func.attr.value == function.name.value:
            plain = [a.value for a in call.args if a.keyword is None]
            named = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
            value = named.get(name, plain[place] if place < len(plain) else None)
            found.add(value.value if isinstance(value, cst.Name) else "")
    return found


REWRITE = Rewrite(
    id="SPF106",
    name="graphs-disabled",
    summary="A setting that turns graphs off for good is left as it was set",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM112",),
    page=__doc__ or "",
)
