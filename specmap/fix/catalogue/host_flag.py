"""A test of a tensor asks the host's own flag instead.

**Before**

    if not torch.all(sampling_info.top_ps == 1.0):

**After**

    if sampling_info.need_top_p_sampling:

Which tests have such a flag is listed in `rules/fix.toml`. Preconditions: the tree declares the
flag, and stores it again where batches are merged. The two differ where a setting is not 1.0 on
the host and rounds to 1.0 in float32: then the work is done although it changes nothing. Proof:
old and new test agree on random settings that float32 holds exactly; the emulated device counts
fewer waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Layer, Obligation, Proposal, Rewrite, Safety
from specmap.codemap.source import file_of
from specmap.fix.sites import waits
from specmap.fix.tree import Tree, walk

_OBLIGATION = Obligation(
    setup="values = torch.tensor(settings, dtype=torch.float32, device=device)\n"
    "flag = any(value != 1.0 for value in settings)",
    old="needed = not torch.all(values == 1.0)",
    new="needed = flag",
    inputs=(("settings", "probability"),),
    results=("needed",),
)


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose the flag for each test of a tensor that has one."""
    for wait in waits(tree, "truth-test"):
        text = wait.source.flat(wait.node)
        for pattern, flag in tree.names.pairs("host_flags"):
            match = re.fullmatch(re.escape(pattern).replace(r"\*", r"([\w.]+)"), text)
            if match is None:
                continue
            node, code = _target(wait.function, wait.node, flag.replace("*", match[1]))
            name = flag.rpartition(".")[2]
            refused = "" if _merged(tree, name) else f"no place merges {name} of two batches"
            yield Proposal(
                REWRITE.id,
                wait.span,
                wait.sync.holder,
                f"{text} waits for the device",
                () if refused else (wait.source.replace(node, code),),
                (f"{name} is kept by {_merged(tree, name)}",) if not refused else (),
                refused,
            )


def _target(
    function: cst.FunctionDef, node: cst.BaseExpression, code: str
) -> tuple[cst.BaseExpression, str]:
    """The node to replace: with the ``not`` around it where the flag says the opposite."""
    for outer in walk(function.body):
        if isinstance(outer, cst.UnaryOperation) and outer.expression is node:
            if isinstance(outer.operator, cst.Not) and code.startswith("not "):
                return outer, code.removeprefix("not ")
    return node, code


def _merged(tree: Tree, name: str) -> str:
    """The function that joins the flags of two batches."""
    listed = {f"{file_of(f.id)}" for f in tree.codemap.functions} | set(tree.files)
    for file in sorted(listed):
        text = tree.text(file)
        for match in re.finditer(rf"self\.{name} (\|=|=)[^\n]*", text):
            before = re.findall(r"def (\w+)", text[: match.start()])
            if before and "merge" in before[-1]:
                return f"{before[-1]}, {file}:{text.count(chr(10), 0, match.start()) + 1}"
    return ""


REWRITE = Rewrite(
    id="SPF207",
    name="host-flag",
    summary="A test of a tensor asks the flag that the host keeps",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM202",),
    layers=(Layer.SYNTAX, Layer.MAP, Layer.EQUALITY, Layer.LEDGER),
    page=__doc__ or "",
    obligation=_OBLIGATION,
)
