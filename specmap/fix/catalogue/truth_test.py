"""A tensor that may be missing is compared with None.

**Before**

    if logits_output.hidden_states:

**After**

    if logits_output.hidden_states is not None:

The truth of a tensor waits for the device, and raises where it has more than one element.
Preconditions: the whole test is an attribute; a class of the tree declares that attribute as an
optional tensor. Proof: no layer beyond syntax and map is needed: for None both are false, for a
tensor the old test raises or reads one element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Proposal, Rewrite, Safety
from specmap.codemap.source import Span, symbol_id
from specmap.fix.tree import Source, Tree, definitions, walk

_OPTIONAL = r"Optional\[(torch\.)?Tensor\]|Tensor \| None|Tensor = None"


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose the comparison for each such test in the workers' own files."""
    declared: dict[str, str] = {}
    for file in tree.files:
        if not file.startswith(tree.names.scan.speculative):
            continue
        source = tree.source(file)
        for holder, function in _methods(source):
            for node in walk(function.body):
                if isinstance(node, cst.If) and isinstance(node.test, cst.Attribute):
                    name = node.test.attr.value
                    if name not in declared:
                        declared[name] = _declaration(tree, name)
                    if declared[name]:
                        yield _compared(source, holder, node.test, declared[name])


def _methods(source: Source) -> Iterator[tuple[str, cst.FunctionDef]]:
    for outer in definitions(source.module):
        inside = definitions(outer.body) if isinstance(outer, cst.ClassDef) else ()
        for inner in inside:
            if isinstance(inner, cst.FunctionDef):
                yield symbol_id(source.file, f"{outer.name.value}.{inner.name.value}"), inner


def _declaration(tree: Tree, name: str) -> str:
    """Where a class declares an attribute as an optional tensor; empty if it may be no tensor."""
    field = re.compile(rf"^    {re.escape(name)}: (.+[^,\n])$", re.MULTILINE)
    found = [(file, m[1]) for file in tree.files for m in field.finditer(tree.text(file))]
    optional = re.compile(_OPTIONAL)
    places = [file for file, annotation in found if optional.search(annotation)]
    tensors = all("Tensor" in annotation for _, annotation in found)
    return places[0] if places and tensors else ""


def _compared(source: Source, holder: str, test: cst.Attribute, declared: str) -> Proposal:
    text = source.flat(test)
    return Proposal(
        REWRITE.id,
        Span(source.file, *source.lines(test)),
        holder,
        f"the truth of {text} is the one of a tensor",
        (source.replace(test, f"{source.code(test)} is not None"),),
        (f"{test.attr.value} is declared as an optional tensor in {declared}",),
    )


REWRITE = Rewrite(
    id="SPF206",
    name="tensor-truth",
    summary="A tensor that may be missing is compared with None",
    safety=Safety.SAFE,
    find=find,
    rules=("SPM202",),
    page=__doc__ or "",
)
