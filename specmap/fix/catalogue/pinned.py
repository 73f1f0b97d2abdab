"""A list goes to the device from pinned memory, without waiting.

**Before**

    lengths = torch.tensor(unfinished_index, dtype=torch.int64, device=predict.device)

**After**

    lengths = torch.tensor(unfinished_index, dtype=torch.int64, pin_memory=True).to(
        predict.device, non_blocking=True
    )

Preconditions: the list's elements are host numbers. That is known where the list comes from
`tolist()`, or is a list that the function fills with `range` or `enumerate` counters; a list
comprehension over what the source does not type may hold device scalars, and each of those waits
by itself, hidden behind the pinned copy. The function runs in every cycle and is not captured.
Proof: old and new code agree on random inputs; the emulated device counts fewer waits.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Layer, Obligation, Proposal, Rewrite, Safety
from specmap.fix.sites import Wait, bindings, mutations, waits
from specmap.fix.tree import Tree, assigned, statements, walk

_OBLIGATION = Obligation(
    setup="",
    old="t = torch.tensor(values, dtype=torch.int64, device=device)",
    new="t = torch.tensor(values, dtype=torch.int64, pin_memory=pinned).to(\n"
    "    device, non_blocking=True\n)",
    inputs=(("values", "ints"),),
    results=("t",),
)


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose a pinned copy for each list that is copied to the device in a cycle."""
    for wait in waits(tree, "host-to-device"):
        call = wait.node
        if not isinstance(call, cst.Call) or wait.source.flat(call.func) != "torch.tensor":
            continue
        device = next((a for a in call.args if a.keyword and a.keyword.value == "device"), None)
        if (
            device is None
            or not call.args
            or any(a.keyword and a.keyword.value == "pin_memory" for a in call.args)
        ):
            continue
        refused = _not_host(wait, call.args[0].value, tree.names.scan.cpu_names)
        once = tree.names.lists["once"]
        name = wait.function.name.value
        if any(name.startswith(word) for word in once):
            refused = f"{name} does not run in every cycle"
        place = wait.source.extent(device)
        text = wait.source.flat(device.value)
        end = wait.source.extent(call)[1]
        first = wait.source.replace(device, "pin_memory=True")
        last = type(first)(wait.source.file, end, end, f".to({text}, non_blocking=True)")
        yield Proposal(
            REWRITE.id,
            wait.span,
            wait.sync.holder,
            f"{wait.source.flat(call)[:80]} copies pageable memory",
            () if refused or place[1] > end else (first, last),
            ("the list holds host numbers",) if not refused else (),
            refused,
        )


def _not_host(wait: Wait, value: cst.BaseExpression, cpu_names: tuple[str, ...]) -> str:
    """Why the elements may be on the device; empty where they are host numbers."""
    if isinstance(value, cst.ListComp):
        element = wait.source.flat(value.elt)
        counted = wait.source.flat(value.for_in.iter).startswith(("range(", "enumerate("))
        if element.startswith("len(") or (isinstance(value.elt, cst.Name) and counted):
            return ""
        return f"{element} may be a device scalar: one wait for each element"
    if isinstance(value, cst.Attribute) and value.attr.value.endswith(cpu_names):
        return ""
    if not isinstance(value, cst.Name):
        return f"what {wait.source.flat(value)} holds is not known"
    return _filled(wait, value.value)


def _appends(wait: Wait, call: cst.Call, name: str) -> bool:
    return wait.source.flat(call.func) == f"{name}.append"


def _filled(wait: Wait, name: str) -> str:
    """Why a list of the function may hold device scalars, by all that it is filled with."""
    counters = set()
    for node in walk(wait.function.body):
        if isinstance(node, cst.For) and isinstance(node.iter, cst.Call):
            target = node.target
            first = target.elements[0].value if isinstance(target, cst.Tuple) else target
            if wait.source.flat(node.iter.func) in ("range", "enumerate"):
                counters.add(wait.source.flat(first))
    values = [b[1] for s in statements(wait.function) if (b := assigned(s)) and b[0] == name]
    changes = mutations(wait.function, name)
    other = [c for c in changes if not (isinstance(c, cst.Call) and _appends(wait, c, name))]
    if other or len(bindings(wait.function, name)) != len(values):
        return f"the type of the elements of {name} is not known"
    if (
        not changes
        and any(wait.source.flat(v).endswith(".tolist()") for v in values)
        and len(values) == 1
    ):
        return ""
    added = [
        n.args[0].value for n in walk(wait.function.body)
        if isinstance(n, cst.Call) and wait.source.flat(n.func) == f"{name}.append" and n.args
    ]  # fmt: skip
    plain = all(isinstance(a, cst.Name) and a.value in counters for a in added)
    empty = all(wait.source.flat(v) == "[]" for v in values)
    if values and added and plain and empty:
        return ""
    return f"the type of the elements of {name} is not known"


REWRITE = Rewrite(
    id="SPF203",
    name="pinned-upload",
    summary="A list goes to the device from pinned memory, without waiting",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM205",),
    layers=(Layer.SYNTAX, Layer.MAP, Layer.EQUALITY, Layer.LEDGER),
    page=__doc__ or "",
    obligation=_OBLIGATION,
)
