"""A sum of a tensor that the host keeps a copy of is computed on the host.

**Before**

    total = torch.sum(batch.seq_lens).item()

**After**

    total = batch.seq_lens_cpu.sum().item()

Preconditions: no test around the place asks whether the copy is there; the function computes with
the copy (a mere mention may pass None on). That both are in step is not visible in one function:
it is an invariant of the running server. Proof: so this is never proven by the source alone, and
is only applied with `--unsafe`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Layer, Proposal, Rewrite, Safety
from specmap.fix.sites import tests_around, waits
from specmap.fix.tree import Tree, walk


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose the host's copy for each sum that waits for the device."""
    for wait in waits(tree, "item"):
        text = wait.source.flat(wait.node)
        for tensor, mirror in tree.names.pairs("host_mirrors"):
            match = re.fullmatch(
                rf"torch\.sum\(([\w.]+)\.{tensor}\)\.item\(\)|([\w.]+)\.{tensor}\.sum\(\)\.item\(\)",
                text,
            )
            if match is None:
                continue
            copy = f"{match[1] or match[2]}.{mirror}"
            around = [wait.source.flat(t.test) for t, _ in tests_around(wait.function, wait.node)]
            asked = next((t for t in around if mirror in t), "")
            refused = ""
            if asked:
                refused = f"this branch depends on whether {copy} is there: {asked}"
            elif not any(_computes(n, wait.source.flat, copy) for n in walk(wait.function.body)):
                refused = f"nothing in the function shows that {copy} is not None"
            yield Proposal(
                REWRITE.id,
                wait.span,
                wait.sync.holder,
                f"{text} waits for the device",
                () if refused else (wait.source.replace(wait.node, f"{copy}.sum().item()"),),
                (f"the function computes with {copy}",) if not refused else (),
                refused,
            )


def _computes(node: cst.CSTNode, flat: object, copy: str) -> bool:
    """Whether a node is arithmetic, an attribute or an index of the copy."""
    inner: cst.CSTNode | None = None
    if isinstance(node, cst.BinaryOperation):
        inner = node.left
    elif isinstance(node, cst.Attribute | cst.Subscript):
        inner = node.value
    return isinstance(inner, cst.Attribute) and callable(flat) and flat(inner) == copy


REWRITE = Rewrite(
    id="SPF205",
    name="host-mirror",
    summary="A sum of what the host has a copy of is computed on the host",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM201",),
    layers=(Layer.SYNTAX, Layer.MAP, Layer.EQUALITY),
    page=__doc__ or "",
)
