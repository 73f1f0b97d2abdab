"""Two `tolist()` in a row become one copy to the host.

**Before**

    accept_index_cpu = accept_index.tolist()
    predict_cpu = predict.tolist()

**After**

    accept_index_cpu, predict_cpu = packed_tolist(accept_index, predict)

Preconditions: both wait for the device; they stand one after the other; the second does not read
what the first stores; all that the source stores under both names has the same dtype. The helper
is written into the file. Proof: old and new code agree on random inputs; the emulated device counts
fewer waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from specmap.codemap.remedy import Change, Layer, Obligation, Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.fix.dtypes import dtype_of
from specmap.fix.facts import Facts, facts_of
from specmap.fix.sites import Wait, block_of, reads, receiver, waits
from specmap.fix.tree import Tree, assigned

_OBLIGATION = Obligation(
    setup="kept = {'dtype': torch.int32, 'device': device}\n"
    "x = torch.arange(rows[0] * rows[1], **kept).reshape(rows)\n"
    "y = torch.tensor(flat, **kept)",
    old="a = x.tolist()\nb = y.tolist()",
    new="a, b = packed_tolist(x, y)",
    inputs=(("rows", "shape"), ("flat", "ints")),
    results=("a", "b"),
    helper="packed_tolist",
)


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose one copy for each pair of lists read one after the other."""
    for first, second in pairwise(waits(tree, "tolist")):
        if first.sync.holder != second.sync.holder or not first.statement or not second.statement:
            continue
        block = block_of(first.function, first.statement)
        position = next((i for i, s in enumerate(block) if s is first.statement), -1)
        if position + 1 < len(block) and block[position + 1] is second.statement:
            yield from _packed(first, second, facts_of(tree))


def _packed(first: Wait, second: Wait, facts: Facts) -> Iterator[Proposal]:
    one, two = (assigned(w.statement) if w.statement else None for w in (first, second))
    if one is None or two is None or one[1] is not first.node or two[1] is not second.node:
        return
    source, scope = first.source, facts.scope(first.sync.holder)
    texts = [source.flat(r) for w in (first, second) if (r := receiver(w.node)) is not None]
    dtypes = [dtype_of(text, scope, facts) for text in texts]
    refused = ""
    if one[0] in reads(second.node):
        refused = f"the second reads {one[0]}"
    elif not all(dtypes):
        refused = "the source does not say that both have the same dtype"
    elif dtypes[0] != dtypes[1]:
        refused = f"they have different dtypes, {dtypes[0]} and {dtypes[1]}"
    start = source.extent(first.statement or first.node)[0]
    end = source.extent(second.node)[1]
    code = f"{one[0]}, {two[0]} = packed_tolist({', '.join(texts)})"
    yield Proposal(
        REWRITE.id,
        Span(source.file, first.line, second.span.end_line),
        first.sync.holder,
        f"{' and '.join(texts)} are read with two copies",
        () if refused else (Change(source.file, start, end, code),),
        (f"both are {dtypes[0]}",) if dtypes[0] else (),
        refused,
        helper="packed_tolist",
    )


REWRITE = Rewrite(
    id="SPF201",
    name="packed-tolist",
    summary="Two lists read one after the other come with one copy",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM201",),
    layers=(Layer.SYNTAX, Layer.MAP, Layer.EQUALITY, Layer.LEDGER),
    page=__doc__ or "",
    obligation=_OBLIGATION,
)
