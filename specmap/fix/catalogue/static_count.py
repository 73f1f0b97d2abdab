"""A mask index whose count the host knows becomes `nonzero_static`.

**Before**

    free(batch.out_cache_loc[evict_mask])

**After**

    free(select_static(batch.out_cache_loc, evict_mask, count))

Preconditions: the mask is made full and loses the accepted tokens at one place, whose number the
function has on the host, in a list that is bound before the index; nothing changes the mask
between the count and the index: a call that takes the mask may write it, and a count that is too
old frees slots twice or loses them.
`torch.nonzero(mask)` is no repair: it waits just the same. Proof: old and new code agree on random
masks; the emulated device counts fewer waits.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Layer, Obligation, Proposal, Rewrite, Safety
from specmap.fix.sites import Wait, reads, tests_around, waits
from specmap.fix.tree import Tree, assigned, statements, walk

_OBLIGATION = Obligation(
    setup="mask = torch.tensor(bits, dtype=torch.bool)\nx = torch.arange(len(bits))\n"
    "count = sum(bits)",
    old="kept = x[mask]",
    new="kept = select_static(x, mask, count)",
    inputs=(("bits", "bits"),),
    results=("kept",),
    helper="select_static",
)


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose a fixed size for each mask index whose count is on the host."""
    for wait in waits(tree, "mask-index"):
        node = wait.node
        if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
            continue
        index = node.slice[0].slice
        if not isinstance(index, cst.Index) or not isinstance(index.value, cst.Name):
            continue
        mask = index.value.value
        lists = _accepted(tree, wait, mask)
        count, refused = "", ""
        if not lists or not _starts_full(wait, mask):
            refused = "the host does not know how many elements there are"
        else:
            name, line = lists[0]
            count = f"{mask}.numel() - len({name}) - sum({name})"
            writer = _written(wait, mask, line)
            if line > wait.line:
                refused = f"{name} is bound at line {line}, after the index"
            elif writer:
                refused = f"{writer} takes {mask} between the count and the index"
        values = wait.source.flat(node.value)
        code = f"select_static({values}, {mask}, {count})"
        yield Proposal(
            REWRITE.id,
            wait.span,
            wait.sync.holder,
            f"{wait.source.flat(node)} waits for the number of elements",
            () if refused else (wait.source.replace(node, code),),
            (f"the host counts the accepted tokens in {lists[0][0]}",) if lists else (),
            refused,
            helper="select_static",
        )


def _accepted(tree: Tree, wait: Wait, mask: str) -> list[tuple[str, int]]:
    """Lists of accept lengths of the function: the mask starts full and loses accepted tokens."""
    known = tree.names.lists["accept_lists"]
    return [
        (bound[0], wait.source.lines(s)[0])
        for s in statements(wait.function)
        if (bound := assigned(s)) is not None and bound[0] in known
        and wait.source.flat(bound[1]).endswith(".tolist()")
    ]  # fmt: skip


def _starts_full(wait: Wait, mask: str) -> bool:
    """Whether a mask is made full of True and only loses what is stored through one index."""
    made = [b[1] for s in statements(wait.function) if (b := assigned(s)) and b[0] == mask]
    full = [v for v in made if isinstance(v, cst.Call) and "full" in wait.source.flat(v.func)
            and any(wait.source.flat(a.value) == "True" for a in v.args)]  # fmt: skip
    stores = [
        n for n in walk(wait.function.body)
        if isinstance(n, cst.Assign) and isinstance(n.targets[0].target, cst.Subscript)
        and wait.source.flat(n.targets[0].target.value) == mask
    ]  # fmt: skip
    cleared = [s for s in stores if wait.source.flat(s.value) == "False"]
    return len(full) == len(made) == 1 and len(cleared) == len(stores) == 1


def _written(wait: Wait, mask: str, since: int) -> str:
    """The call that may write the mask on the way to the index."""
    blocks = [test.body for test, inside in tests_around(wait.function, wait.node) if inside]
    other = [t for t, inside in tests_around(wait.function, wait.node) if not inside]
    skipped = {id(n) for t in other for n in walk(t.body)}
    for call in walk(blocks[-1] if blocks else wait.function.body):
        if not isinstance(call, cst.Call) or id(call) in skipped:
            continue
        first = wait.source.lines(call)[0]
        passed = any(isinstance(a.value, cst.Name) and a.value.value == mask for a in call.args)
        if passed and since <= first < wait.line and mask in reads(call):
            return f"{wait.source.flat(call.func)} at line {first}"
    return ""


REWRITE = Rewrite(
    id="SPF204",
    name="static-count",
    summary="A mask index whose count the host knows gets a fixed size",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM202",),
    layers=(Layer.SYNTAX, Layer.MAP, Layer.EQUALITY, Layer.LEDGER),
    page=__doc__ or "",
    obligation=_OBLIGATION,
)
