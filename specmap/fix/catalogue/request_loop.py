"""A loop that shifts the tokens of each request becomes one shift of all of them.

**Before**

    pt = 0
    for i, extend_len in enumerate(batch.extend_lens):
        input_ids = batch.input_ids[pt : pt + extend_len]
        batch.input_ids[pt : pt + extend_len] = torch.cat(
            (input_ids[1:], self.verified_id[i].reshape(1))
        )
        pt += extend_len

**After**

    rotate_segments_(batch.input_ids, batch.extend_lens, self.verified_id)

Two launches a request become four in all. Preconditions: the loop reads as above, and nothing
reads its names afterwards; a class declares the lengths as a list of numbers, and none declares
an attribute of that name as a tensor; no comment stands in the loop. The helper, which is written
into the file, raises where a length is 0 or a request has more than one new token, as the loop
does. Proof: old and new code agree on random lengths, and what lies behind the last segment stays.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

import libcst as cst

from specmap.codemap.remedy import Layer, Obligation, Proposal, Rewrite, Safety
from specmap.codemap.source import Span, symbol_id
from specmap.fix.sites import block_of
from specmap.fix.tree import Source, Tree, assigned, definitions, mentions, walk

_HELPER = "rotate_segments_"
_LOOP = re.compile(
    r"for (?P<i>\w+), (?P<n>\w+) in enumerate\((?P<lengths>[\w.]+)\):\n"
    r"    (?P<part>\w+) = (?P<values>[\w.]+)\[(?P<p>\w+):(?P=p) \+ (?P=n)\]\n"
    r"    (?P=values)\[(?P=p):(?P=p) \+ (?P=n)\] = "
    r"torch\.cat\(\((?P=part)\[1:\], (?P<last>[\w.]+)\[(?P=i)\]\.reshape\(1\)\)\)\n"
    r"    (?P=p) \+= (?P=n)"
)
_OBLIGATION = Obligation(
    setup="lengths = [abs(v) % 4 + 1 for v in flat]\n"
    "x = torch.arange(sum(lengths) + 3, dtype=torch.int64, device=device) * 7\n"
    "last = -torch.arange(1, len(lengths) + 1, dtype=torch.int32, device=device)\n"
    "last = last.reshape([len(lengths), 1][: shape[0] % 2 + 1])",
    old="pt = 0\n"
    "for i, n in enumerate(lengths):\n"
    "    part = x[pt : pt + n]\n"
    "    x[pt : pt + n] = torch.cat((part[1:], last[i].reshape(1)))\n"
    "    pt += n",
    new="rotate_segments_(x, lengths, last)",
    inputs=(("flat", "ints"), ("shape", "shape")),
    results=("x",),
    helper=_HELPER,
)


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose one shift for each such loop in the workers' own files."""
    for file in tree.files:
        if file.startswith(tree.names.scan.speculative) and ".reshape(1)" in tree.text(file):
            source = tree.source(file)
            for holder, function in _functions(source):
                for loop in walk(function.body):
                    if isinstance(loop, cst.For):
                        yield from _shifted(tree, source, holder, function, loop)


def _functions(source: Source) -> Iterator[tuple[str, cst.FunctionDef]]:
    for outer in definitions(source.module):
        inside = definitions(outer.body) if isinstance(outer, cst.ClassDef) else ()
        for inner in inside:
            if isinstance(inner, cst.FunctionDef):
                yield symbol_id(source.file, f"{outer.name.value}.{inner.name.value}"), inner


def _shifted(
    tree: Tree, source: Source, holder: str, function: cst.FunctionDef, loop: cst.For
) -> Iterator[Proposal]:
    text = textwrap.dedent(source.code(loop)).strip()
    found = _LOOP.fullmatch(ast.unparse(ast.parse(text)))
    if found is None:
        return
    start = _start(function, loop)
    bound = assigned(start) if isinstance(start, cst.SimpleStatementLine) else None
    names = [found[key] for key in ("i", "n", "part", "p")]
    own = {name: mentions(loop, name) + (name == found["p"]) for name in names}
    read = next((n for n in names if mentions(function.body, n) != own[n]), "")
    refused = _no_list(tree, found["lengths"].rpartition(".")[2])
    if bound is None or bound[0] != found["p"] or source.flat(bound[1]) != "0":
        refused = f"{found['p']} = 0 does not lead to the loop"
    elif read:
        refused = f"{read} is used outside the loop"
    elif "#" in text:
        refused = "a comment stands in the loop"
    code = f"{_HELPER}({found['values']}, {found['lengths']}, {found['last']})"
    yield Proposal(
        REWRITE.id,
        Span(source.file, *source.lines(loop)),
        holder,
        f"{found['values']} is shifted request by request",
        () if refused or start is None else (source.drop(start), source.replace(loop, code)),
        (f"{found['lengths']} is a list of numbers",) if not refused else (),
        refused,
        helper=_HELPER,
    )


def _start(function: cst.FunctionDef, loop: cst.For) -> cst.BaseStatement | None:
    """The statement before a loop, or before the test whose body begins with it."""
    place: cst.CSTNode = loop
    for _ in range(2):
        block = block_of(function, place)
        index = next((i for i, s in enumerate(block) if s is place), 0)
        if index:
            return block[index - 1]
        tests = [n for n in walk(function.body) if isinstance(n, cst.If) and place in n.body.body]
        if not tests:
            return None
        place = tests[0]
    return None


def _no_list(tree: Tree, name: str) -> str:
    """Why the lengths may not be numbers of the host, by all classes that declare them."""
    # A parameter ends with a comma, a field does not.
    field = re.compile(rf"^    {re.escape(name)}: ([^=,\n]+)(=[^\n]*[^,\n])?$", re.MULTILINE)
    found = {m[1].strip() for file in tree.files for m in field.finditer(tree.text(file))}
    if any("Tensor" in annotation for annotation in found):
        return f"{name} may be a tensor: a class declares it so"
    if not any("List[int]" in annotation or "list[int]" in annotation for annotation in found):
        return f"no class says that {name} is a list of numbers"
    return ""


REWRITE = Rewrite(
    id="SPF208",
    name="request-loop",
    summary="The tokens of all requests are shifted at once",
    safety=Safety.REVIEW,
    find=find,
    layers=(Layer.SYNTAX, Layer.MAP, Layer.EQUALITY),
    page=__doc__ or "",
    obligation=_OBLIGATION,
)
