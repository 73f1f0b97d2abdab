"""A launch setting that turns graphs off for good is left as the operator set it.

**Before**

    server_args.disable_cuda_graph = True
    self.tp_worker = TpModelWorker(server_args=server_args)

**After**

    self.tp_worker = TpModelWorker(server_args=server_args)

A draft runner is built with graphs off and captures its own later; the old value is put back. A
store that is never undone also takes the target's graphs.

Preconditions: the function neither saves nor stores the setting elsewhere, so that nothing puts
it back; nothing but the launch leads there: under a test the store is refused, because the test
may have its reason.
Proof: a scan of the result finds nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Proposal, Rewrite, Safety
from specmap.codemap.source import Span, symbol_id
from specmap.fix.facts import Facts, facts_of
from specmap.fix.tree import Source, Tree, definitions, statements, walk


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose to take away each store that turns the target's graphs off for good."""
    facts = facts_of(tree)
    switches = tree.names.lists["switches"]
    for file in tree.files:
        text = tree.text(file)
        if not file.startswith(tree.names.scan.scope) or not any(
            f".{switch} = True" in text for switch in switches
        ):
            continue
        source = tree.source(file)
        for name, function in _functions(source):
            for statement in statements(function):
                target = _switched(source, statement, switches)
                if target:
                    yield from _proposed(source, name, function, statement, target, facts)


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
    tests = [
        n for n in walk(function.body)
        if isinstance(n, cst.If) and any(inner is statement for inner in walk(n))
    ]  # fmt: skip
    unsettled = [t for t in tests if facts.truth(source.flat(t.test), facts.scope(symbol)) is None]
    refused = ""
    if unsettled:
        refused = (
            f"it stands under a test that may have its reason: {source.flat(unsettled[0].test)}"
        )
    line = source.lines(statement)[0]
    yield Proposal(
        REWRITE.id,
        Span(source.file, line, line),
        symbol,
        f"{target} = True is never undone",
        () if refused else (source.drop(statement),),
        (f"{name} neither saves {target} nor puts it back",),
        refused,
    )


REWRITE = Rewrite(
    id="SPF106",
    name="graphs-disabled",
    summary="A setting that turns graphs off for good is left as it was set",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM112",),
    page=__doc__ or "",
)
