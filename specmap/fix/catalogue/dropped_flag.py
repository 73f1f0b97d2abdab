"""Whether the target's pass replayed is reported as it was (display only).

**Before**

    return logits_output, next_token_ids, seq_lens_cpu
    ...
    logits_output, next_token_ids, seq_lens_cpu = self.forward_target_extend(batch)
    return GenerationBatchResult(..., can_run_cuda_graph=False)

**After**

    return logits_output, next_token_ids, seq_lens_cpu, batch_result.can_run_cuda_graph
    ...
    logits_output, next_token_ids, seq_lens_cpu, can_run_cuda_graph = ...
    return GenerationBatchResult(..., can_run_cuda_graph=can_run_cuda_graph)

Only logs and metrics change: a flag that is reported decides nothing, and this rewrite brings no
pass back under its graph. Preconditions: the helper returns one tuple; it is called at one place
in all files of its class and its subclasses, and defined once there; that caller reports the
constant `False` at one place. Proof: the result parses and every name is bound; a scan finds
nothing new.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from specmap.codemap.graph import Flag, FlagStatus
from specmap.codemap.remedy import Change, Proposal, Rewrite, Safety
from specmap.codemap.source import Span, file_of
from specmap.fix.sites import block_of
from specmap.fix.tree import Source, Tree, mentions, statements, walk


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose to hand on each flag of a target's pass that a helper drops."""
    for flag in tree.codemap.flags:
        if flag.status is FlagStatus.DROPPED and not flag.decides and flag.source_line:
            yield from _threaded(tree, flag)


def _threaded(tree: Tree, flag: Flag) -> Iterator[Proposal]:
    helper, source = tree.function(flag.holder), tree.source_of(flag.holder)
    if helper is None:
        return
    name = flag.holder.rpartition(".")[2]
    output = _output(source, helper, flag.source_line or 0)
    tuples = [
        r.value for s in statements(helper)
        if isinstance(r := s.body[-1], cst.Return) and isinstance(r.value, cst.Tuple)
    ]  # fmt: skip
    callers = sorted({e.caller for e in tree.codemap.edges if flag.holder in e.callees})
    if not output or len(tuples) != 1 or not callers:
        return
    caller = tree.function(callers[0])
    told = _told(caller, flag.name) if caller is not None else []
    unpacked = _unpacked(caller, name) if caller is not None else None
    if caller is None or unpacked is None or not told:
        return
    refused = _open_world(tree, flag.holder, name)
    if len(callers) > 1:
        refused = f"{name} is called by {len(callers)} functions"
    elif len(told) > 1:
        refused = f"the caller reports {flag.name}=False at {len(told)} places"
    elif _collides(caller, unpacked, flag.name):
        refused = f"the caller has a name {flag.name} of its own"
    other = tree.source_of(callers[0])
    value = f"{output}.{flag.name}"
    changes = (
        _one_more(source, tuples[0], value),
        _one_more(other, unpacked, flag.name),
        other.replace(told[0].value, flag.name),
        *_annotation(source, helper),
    )
    yield Proposal(
        REWRITE.id,
        Span(source.file, *source.lines(tuples[0])),
        flag.holder,
        f"{name} drops {value}, and its caller reports False",
        () if refused else changes,
        (f"{name} is defined and called once in its class and its subclasses",),
        refused,
    )


def _output(source: Source, helper: cst.FunctionDef, line: int) -> str:
    """The name that holds the result of the pass."""
    for statement in statements(helper):
        small = statement.body[0]
        first, last = source.lines(statement)
        if isinstance(small, cst.Assign) and first <= line <= last:
            target = small.targets[0].target
            return target.value if isinstance(target, cst.Name) else ""
    return ""


def _told(caller: cst.FunctionDef, name: str) -> list[cst.Arg]:
    return [
        n for n in walk(caller.body)
        if isinstance(n, cst.Arg) and n.keyword is not None and n.keyword.value == name
        and isinstance(n.value, cst.Name) and n.value.value == "False"
    ]  # fmt: skip


def _unpacked(caller: cst.FunctionDef, name: str) -> cst.Tuple | None:
    """The tuple of names that takes the helper's result apart."""
    for statement in statements(caller):
        small = statement.body[0]
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call):
            called, target = small.value.func, small.targets[0].target
            if isinstance(called, cst.Attribute) and called.attr.value == name:
                return target if isinstance(target, cst.Tuple) else None
    return None


def _collides(caller: cst.FunctionDef, unpacked: cst.Tuple, name: str) -> bool:
    """Whether the name means something else where the result is taken apart, or after it."""
    statement = next(s for s in statements(caller) if any(n is unpacked for n in walk(s)))
    block = block_of(caller, statement)
    leaves = isinstance(block[-1], cst.SimpleStatementLine) and isinstance(
        block[-1].body[-1], cst.Return
    )
    return any(mentions(s, name) for s in block) or (
        not leaves and bool(mentions(caller.body, name))
    )


def _open_world(tree: Tree, holder: str, name: str) -> str:
    """Why the helper may be called or defined elsewhere; empty if it is not."""
    owner = holder.rpartition(".")[0]
    family = {file_of(c.id) for c in tree.codemap.classes if owner in c.mro}
    family |= {file_of(w.id) for w in tree.codemap.workers if owner in w.mro}
    texts = [tree.text(file) for file in sorted(family | {file_of(holder)})]
    calls = sum(len(re.findall(rf"\.{name}\(", text)) for text in texts)
    made = sum(len(re.findall(rf"def {name}\(", text)) for text in texts)
    if calls != 1:
        return f"{name} is called at {calls} places of its class and its subclasses"
    return "" if made == 1 else f"{name} is defined {made} times in its class and its subclasses"


def _one_more(source: Source, node: cst.Tuple, text: str) -> Change:
    """The change that puts one more element at the end of a tuple."""
    last = node.elements[-1]
    end = source.extent(last.value)[1]
    if isinstance(last.comma, cst.Comma) and len(node.elements) > 1:
        between = source.text[
            source.extent(node.elements[-2].value)[1] : source.extent(last.value)[0]
        ]
        return Change(source.file, end, end, f"{between}{text}")
    return Change(source.file, end, end, f", {text}")


def _annotation(source: Source, helper: cst.FunctionDef) -> Iterator[Change]:
    """One more type where the helper says that it returns a tuple of some."""
    returns = helper.returns.annotation if helper.returns is not None else None
    if isinstance(returns, cst.Subscript) and source.flat(returns.value) in ("Tuple", "tuple"):
        end = source.extent(returns.slice[-1].slice)[1]
        yield Change(source.file, end, end, ", bool")


REWRITE = Rewrite(
    id="SPF901",
    name="dropped-flag",
    summary="Whether the target's pass replayed is reported as it was",
    safety=Safety.DISPLAY,
    find=find,
    rules=("SPM102", "SPM103"),
    page=__doc__ or "",
)
