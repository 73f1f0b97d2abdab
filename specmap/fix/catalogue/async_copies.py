"""Several copies to the host in a row are made without waiting, and waited for where they are used.

**Before**

    next_token_cpu = spec_info.retrive_next_token.cpu()
    next_sibling_cpu = spec_info.retrive_next_sibling.cpu()
    batch_result = self.target_worker.forward_batch_generation(batch)
    ... uses of both ...

**After**

    host_copies = HostCopies(spec_info.retrive_next_token, spec_info.retrive_next_sibling)
    batch_result = self.target_worker.forward_batch_generation(batch)
    next_token_cpu, next_sibling_cpu = host_copies.wait()

Preconditions: two or more copies stand in a row; no name that is stored is also read by one of the
copies; all uses stand in one block, which the copies lead to: the same block, or one under a test
with the same text; something stands between the copies and the first use. Proof: old and new
code agree on random inputs; the emulated device counts fewer waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import libcst as cst

from specmap.codemap.remedy import Change, Layer, Obligation, Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.fix.sites import Wait, block_of, reads, receiver, tests_around, waits
from specmap.fix.tree import Tree, assigned, mentions, statements

_NAME = "host_copies"
_OBLIGATION = Obligation(
    setup="x = torch.arange(rows[0] * rows[1], device=device).reshape(rows)\n"
    "y = torch.tensor(flat, device=device)",
    old="a = x.cpu()\nb = y.cpu()\nz = x + 1",
    new="c = HostCopies(x, y)\nz = x + 1\na, b = c.wait()",
    inputs=(("rows", "shape"), ("flat", "ints")),
    results=("a", "b", "z"),
    helper="HostCopies",
)


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose one transfer for each run of copies."""
    for _, group in groupby(waits(tree, "cpu"), key=lambda wait: wait.sync.holder):
        for run in _runs(list(group)):
            yield _one_transfer(run)


def _runs(found: list[Wait]) -> Iterator[list[Wait]]:
    """Copies that stand in a row in one block, each stored in a name."""
    run: list[Wait] = []
    for wait in found:
        bound = assigned(wait.statement) if wait.statement is not None else None
        if bound is None or bound[1] is not wait.node or wait.statement is None:
            continue
        block = block_of(wait.function, wait.statement)
        place = next((i for i, s in enumerate(block) if s is wait.statement), 0)
        if run and place and block[place - 1] is run[-1].statement:
            run.append(wait)
            continue
        if len(run) > 1:
            yield run
        run = [wait]
    if len(run) > 1:
        yield run


def _one_transfer(run: list[Wait]) -> Proposal:
    first, source, function = run[0], run[0].source, run[0].function
    copies = [w.statement for w in run if w.statement is not None]
    names = [b[0] for s in copies if (b := assigned(s)) is not None]
    tensors = [source.flat(r) for w in run if (r := receiver(w.node)) is not None]
    users = [
        s for s in statements(function)
        if not any(s is c for c in copies) and any(mentions(s, n) for n in names)
    ]  # fmt: skip
    refused = _why_not(run, names, users, copies)
    changes: tuple[Change, ...] = ()
    if not refused:
        start, end = source.extent(copies[0])[0], source.extent(copies[-1])[1]
        start = source.extent(copies[0].body[0])[0]
        end = source.extent(copies[-1].body[-1])[1]
        indent = source.indent(copies[0])
        arguments = "".join(f"{indent}    {t},\n" for t in tensors)
        made = f"{_NAME} = HostCopies(\n{arguments}{indent})"
        wait = source.before(users[0], f"{', '.join(names)} = {_NAME}.wait()\n")
        changes = (Change(source.file, start, end, made), wait)
    return Proposal(
        REWRITE.id,
        Span(source.file, first.line, run[-1].span.end_line),
        first.sync.holder,
        f"{len(run)} copies to the host, one wait each",
        changes,
        (f"all uses of {', '.join(names)} stand in one block",) if not refused else (),
        refused,
        helper="HostCopies",
    )


def _why_not(
    run: list[Wait],
    names: list[str],
    users: list[cst.SimpleStatementLine],
    copies: list[cst.SimpleStatementLine],
) -> str:
    function, source = run[0].function, run[0].source
    shadowed = [n for n in names if any(n in reads(w.node) for w in run)]
    if shadowed:
        return f"{shadowed[0]} is stored and read by the copies"
    if mentions(function, _NAME):
        return f"the name {_NAME} is taken"
    blocks = [block_of(function, user) for user in users]
    if not users or any(not any(s is blocks[0][0] for s in b[:1]) for b in blocks):
        return "the copies are used in more than one block"
    total = sum(mentions(function.body, n) for n in names)
    seen = sum(mentions(s, n) for s in [*users, *copies] for n in names)
    if total != seen:
        return "a copy is used in the head of a statement"
    here, there = (
        [(source.flat(t.test), inside) for t, inside in tests_around(function, s)]
        for s in (copies[0], users[0])
    )
    if here != there or source.lines(users[0])[0] < run[0].line:
        return "the copies do not lead to their use on every way"
    block = block_of(function, copies[-1])
    after = next((i + 1 for i, s in enumerate(block) if s is copies[-1]), 0)
    if after < len(block) and block[after] is users[0]:
        return "the copies are used at once: nothing overlaps them"
    return ""


REWRITE = Rewrite(
    id="SPF202",
    name="async-copies",
    summary="Several copies to the host are made without waiting",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM201",),
    layers=(Layer.SYNTAX, Layer.MAP, Layer.EQUALITY, Layer.LEDGER),
    page=__doc__ or "",
    obligation=_OBLIGATION,
)
