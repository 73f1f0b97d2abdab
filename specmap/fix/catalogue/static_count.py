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
from specmap.fix.sites import Wait, bare_uses, bindings, mutations, tests_around, waits
from specmap.fix.tree import Tree, assigned, statements, walk

_OBLIGATION = Obligation(
    setup="mask = torch.tensor(bits, dtype=torch.bool, device=device)\n"
    "x = torch.arange(len(bits), device=device)\n"
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
            if line > wait.line:
                refused = f"{name} is bound at line {line}, after the index"
            else:
                refused = _changed(wait, mask) or _recounted(wait, name)
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
    """Whether a mask is made full of True, once, and cleared through one index."""
    made = [b[1] for s in statements(wait.function) if (b := assigned(s)) and b[0] == mask]
    full = [v for v in made if isinstance(v, cst.Call) and "full" in wait.source.flat(v.func)
            and any(wait.source.flat(a.value) == "True" for a in v.args)]  # fmt: skip
    return len(full) == len(bindings(wait.function, mask)) == len(_cleared(wait, mask)) == 1


def _cleared(wait: Wait, mask: str) -> list[cst.AssignTarget]:
    """The stores of False through an index of the mask."""
    return [
        n.targets[0] for n in walk(wait.function.body)
        if isinstance(n, cst.Assign) and isinstance(n.targets[0].target, cst.Subscript)
        and wait.source.flat(n.targets[0].target.value) == mask
        and wait.source.flat(n.value) == "False"
    ]  # fmt: skip


def _changed(wait: Wait, mask: str) -> str:
    """Why the mask may hold other elements than the host counts when it is an index."""
    source, function = wait.source, wait.function
    other = [test for test, inside in tests_around(function, wait.node) if not inside]
    skipped = {id(n) for test in other for n in walk(test.body)}
    loops = [n for n in walk(function.body) if isinstance(n, cst.For | cst.While)]
    again = any(node is wait.node for loop in loops for node in walk(loop))
    known = {id(n) for n in _cleared(wait, mask)}
    calls = [n for n in walk(function.body) if isinstance(n, cst.Call)]
    for use in [*mutations(function, mask), *bare_uses(function, mask)]:
        line = source.lines(use)[0]
        if id(use) in known or id(use) in skipped or (line >= wait.line and not again):
            continue
        taking = [c for c in calls if any(a.value is use for a in c.args)]
        if taking:
            first = source.lines(taking[0])[0]
            called = f"{source.flat(taking[0].func)} at line {first}"
            return f"{called} takes {mask} between the count and the index"
        return f"{mask} may be changed at line {line}"
    return ""


def _recounted(wait: Wait, name: str) -> str:
    """Why the host's list may hold other numbers than the device accepted."""
    changes = [*bindings(wait.function, name)[1:], *mutations(wait.function, name)]
    return f"{name} is changed at line {wait.source.lines(changes[0])[0]}" if changes else ""


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
