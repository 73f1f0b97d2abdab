"""Verify waits for the device once, not five times, where all requests are greedy.

**Before**

    accept_index_cpu = accept_index.tolist()
    predict_cpu = predict.tolist()
    ... appends the tokens of each request, and looks whether it is finished ...
    accept_index = accept_index[accept_index != -1]
    accept_tokens = predict[accept_index]
    evict_mask = torch.full_like(self.draft_token, True, dtype=torch.bool)
    evict_mask[accept_index] = False
    num_correct_drafts_cpu = num_correct_drafts.cpu()
    if page_size == 1:
        allocator.free(batch.out_cache_loc[evict_mask])

**After**

    verify_tail = None
    if page_size == 1 and sampling_info.is_all_greedy and ...:
        verify_tail = VerifyTail(accept_index, predict, batch.out_cache_loc)
        accept_index_cpu, predict_cpu = verify_tail.wait()
    else:
        ... as before ...
    ... appends the tokens, as before; a finished request sets verify_tail = None ...
    if verify_tail is not None:
        accept_index, accept_tokens, left_slots, num_correct_drafts_cpu = verify_tail.kept()
        allocator.free(left_slots)
    else:
        ... as before ...

All that the device does is launched before the one wait, while it still runs the target: packed
rows have the largest size that they can have, and the host cuts them when it knows their number.
Kept as it was, line by line: sampling, grammars, log-probabilities, penalties, biases, custom
logit processors, simulated acceptance, pages of more than one token, other devices, and every
step in which a request finishes.

Preconditions: the two lists are read one after the other; each statement above stands once, in
this order, in one block; where the loop cuts a row on the device it also says that a request
finished, and only there the lengths are counted again; the tree reads every flag that the guard
asks. That the accept kernel fills a row from its left and counts it right is its contract, which
no layer checks: serve with it before you trust it.
Proof: old and new code agree on random accepted rows; the emulated device counts fewer waits.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from specmap.codemap.remedy import Change, Layer, Obligation, Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.fix.sites import Wait, block_of, receiver, waits
from specmap.fix.tree import Source, Tree, assigned, mentions, walk

_HELPER, _TAIL, _LEFT = "VerifyTail", "verify_tail", "left_slots"
_FORMS = (
    r"(?P<x>\w+) = (?P=x)\[(?P=x) != -1\]",
    r"(?P<tokens>\w+) = {p}\[{x}\]",
    r"(?P<mask>\w+) = torch\.full_like\([\w.]+, True, dtype=torch\.bool\)",
    r"(?P<mask>\w+)\[{x}\] = False",
    r"(?P<copied>\w+) = (?P<lengths>\w+)\.cpu\(\)",
)
_OBLIGATION = Obligation(
    setup="width, more = shape\n"
    "width += 1\n"
    "nodes = width + more\n"
    "drafts = [abs(v) % width for v in flat] or [0]\n"
    "rows = [[i * nodes + (j if j == 0 else j + more * (i % 2)) if j <= n else -1\n"
    "         for j in range(width)] for i, n in enumerate(drafts)]\n"
    "x = torch.tensor(rows, dtype=torch.int32, device=device)\n"
    "p = (torch.arange(len(rows) * nodes + 1, device=device) * 7 % 31).to(torch.int32)\n"
    "n = torch.tensor(drafts, dtype=torch.int32, device=device)\n"
    "slots = torch.arange(len(rows) * nodes, device=device) + 100",
    old="a = x.tolist()\n"
    "b = p.tolist()\n"
    "kept = x[x != -1]\n"
    "tokens = p[kept]\n"
    "mask = torch.full_like(slots, True, dtype=torch.bool)\n"
    "mask[kept] = False\n"
    "counts = n.cpu()\n"
    "left = slots[mask]",
    new="tail = VerifyTail(x, p, slots)\n"
    "a, b = tail.wait()\n"
    "kept, tokens, left, counts = tail.kept()",
    inputs=(("shape", "shape"), ("flat", "ints")),
    results=("a", "b", "kept", "tokens", "counts", "left"),
    helper=_HELPER,
)


@dataclass(frozen=True)
class _Site:
    """The two lists read, and the block in which the rest must stand."""

    first: Wait
    second: Wait
    names: tuple[str, str]
    block: Sequence[cst.BaseStatement]

    @property
    def source(self) -> Source:
        return self.first.source

    def text(self, node: cst.CSTNode) -> str:
        """A simple statement on one line; empty for a compound one."""
        if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
            return ""
        return " ".join(self.source.code(node.body[0]).split())


@dataclass(frozen=True)
class _Rest:
    """What follows the loop: five statements, the test of the page size, the recount."""

    five: Sequence[cst.BaseStatement]
    freed: cst.If
    recount: cst.If
    found: dict[str, str]
    slots: str
    call: str


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose one wait for each verify that reads what was accepted with several."""
    for first, second in pairwise(waits(tree, "tolist")):
        if first.sync.holder != second.sync.holder or not first.statement or not second.statement:
            continue
        block = block_of(first.function, first.statement)
        place = next((i for i, s in enumerate(block) if s is first.statement), -1)
        if place + 1 >= len(block) or block[place + 1] is not second.statement:
            continue
        one, two = assigned(first.statement), assigned(second.statement)
        read = [_named(wait) for wait in (first, second)]
        if one is None or two is None or not all(read):
            continue
        site = _Site(first, second, (one[0], two[0]), block[place:])
        compacted = f"{read[0]} = {read[0]}[{read[0]} != -1]"
        if any(site.text(s) == compacted for s in site.block):
            yield _proposed(tree, site, read)


def _named(wait: Wait) -> str:
    tensor = receiver(wait.node)
    return tensor.value if isinstance(tensor, cst.Name) else ""


def _proposed(tree: Tree, site: _Site, read: list[str]) -> Proposal:
    guards = tree.names.lists["tail_guards"]
    rest, refused = _rest(site, read[0], read[1])
    refused = refused or _unknown(tree, site, guards)
    if rest is not None and not refused:
        refused = _cuts(site, rest)
    changes = _changes(site, rest, read, guards) if rest is not None and not refused else ()
    return Proposal(
        REWRITE.id,
        Span(site.source.file, site.first.line, site.second.span.end_line),
        site.first.sync.holder,
        f"what was accepted of {read[0]} and {read[1]} is read with several waits",
        changes,
        (f"only where {' and '.join(guards)}",) if changes else (),
        refused,
        helper=_HELPER,
    )


def _rest(site: _Site, index: str, tokens: str) -> tuple[_Rest | None, str]:
    """The statements that follow, or the first that is not as it must be."""
    compacted = f"{index} = {index}[{index} != -1]"
    at = next(i for i, s in enumerate(site.block) if site.text(s) == compacted)
    five, found = site.block[at : at + len(_FORMS)], {"x": index, "p": tokens}
    for form, statement in zip(_FORMS, five, strict=False):
        match = re.fullmatch(form.format(**found), site.text(statement))
        if match is None or any(found.get(k, v) != v for k, v in match.groupdict().items()):
            return None, f"line {site.source.lines(statement)[0]} is not what follows an accept"
        found |= match.groupdict()
    recount = site.block[at - 1]
    wanted = rf"{found['lengths']} = \({index} != -1\)\.sum\((dim=)?1\) - 1"
    if not isinstance(recount, cst.If) or not _is_one(site, recount, wanted):
        return None, "the lengths are not counted again where a request finished"
    for statement in site.block[at + len(_FORMS) :]:
        if isinstance(statement, cst.If) and mentions(statement, found["mask"]):
            call = _freed(site, statement, found["mask"])
            if call is None:
                break
            return _Rest(five, statement, recount, found, call[1], call[0]), ""
    return None, f"{found['mask']} is not used to free slots under a test of the page size"


def _is_one(site: _Site, test: cst.If, wanted: str) -> bool:
    """Whether a test of a name guards one statement, and nothing else."""
    body = test.body.body
    named = isinstance(test.test, cst.Name) and test.orelse is None and len(body) == 1
    return named and re.fullmatch(wanted, site.text(body[0])) is not None


def _freed(site: _Site, test: cst.If, mask: str) -> tuple[str, str] | None:
    """The call and the slots of ``if ... == 1: free(slots[mask])``."""
    body = test.body.body
    if len(body) != 1 or not re.fullmatch(r"\w+ == 1", site.source.flat(test.test)):
        return None
    match = re.fullmatch(rf"([\w.]+)\(([\w.]+)\[{mask}\]\)", site.text(body[0]))
    return (match[1], match[2]) if match else None


def _unknown(tree: Tree, site: _Site, guards: Sequence[str]) -> str:
    """Name what a guard asks and the tree never reads beside this function's own files."""
    texts = [t for f in tree.files if f.startswith(tree.names.scan.speculative)
             if (t := tree.text(f))]  # fmt: skip
    for guard in guards:
        asked = re.sub(r"^not | (==|is|<=|in) .*$", "", guard)
        if not any(re.search(rf"\b{re.escape(asked)}\b", text) for text in texts):
            return f"nothing in the tree reads {asked}, which the guard has to ask"
    if mentions(site.first.function, _TAIL) or mentions(site.first.function, _LEFT):
        return f"the name {_TAIL} or {_LEFT} is taken"
    return ""


def _cuts(site: _Site, rest: _Rest) -> str:
    """Say what changes before the device counts, where no request is said to have finished."""
    flag = site.source.code(rest.recount.test)
    at = next(i for i, s in enumerate(site.block) if s is rest.recount)
    between = site.block[2:at]
    inside = (n.body for s in between for n in walk(s) if isinstance(n, cst.IndentedBlock))
    for body in (between, *inside):
        said = [site.text(s) for s in body]
        for name in (rest.found["x"], rest.found["p"], rest.found["lengths"]):
            changed = rf"{name}(\[.*\])? [^=]*=[^=]|{name}\.\w+_\("
            if any(re.match(changed, text) for text in said) and f"{flag} = True" not in said:
                return f"{name} changes where {flag} is not set"
    return ""


def _changes(
    site: _Site, rest: _Rest, read: list[str], guards: Sequence[str]
) -> tuple[Change, ...]:
    source, found = site.source, rest.found
    indent = source.indent(site.block[0])
    lists, five = site.block[:2], rest.five
    asked = f"\n{indent}    and ".join(guards)
    names = ", ".join(site.names)
    made = (
        f"{_TAIL} = None\n{indent}if (\n{indent}    {asked}\n{indent}):\n"
        f"{indent}    {_TAIL} = {_HELPER}({', '.join(read)}, {rest.slots})\n"
        f"{indent}    {names} = {_TAIL}.wait()\n{indent}else:\n"
    )
    stored = f"{found['x']}, {found['tokens']}, {_LEFT}, {found['copied']}"
    one_line = f"{indent}    {stored} = {_TAIL}.kept()\n"
    if len(one_line) > 89:
        listed = "".join(f"{indent}        {n},\n" for n in stored.split(", "))
        one_line = f"{indent}    (\n{listed}{indent}    ) = {_TAIL}.kept()\n"
    kept = f"if {_TAIL} is not None:\n{one_line}{indent}else:\n"
    start = source.extent(rest.freed)[0]
    free = f"if {_TAIL} is not None:\n{indent}    {rest.call}({_LEFT})\n{indent}el"
    return (
        _wrapped(source, lists, made),
        source.after(rest.recount.body.body[-1], f"{_TAIL} = None\n"),
        _wrapped(source, five, kept),
        Change(source.file, start, start, free),
    )


def _wrapped(source: Source, block: Sequence[cst.BaseStatement], before: str) -> Change:
    """Put lines before statements, which go one step to the right."""
    indent = source.indent(block[0])
    start = source.extent(block[0])[0]
    _, end = source.statement(block[-1])
    moved = textwrap.indent(indent + source.text[start:end], "    ")
    return Change(source.file, start, end, before + moved)


REWRITE = Rewrite(
    id="SPF301",
    name="verify-tail",
    summary="Verify waits for the device once where all requests are greedy",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM201", "SPM202"),
    layers=(Layer.SYNTAX, Layer.MAP, Layer.EQUALITY, Layer.LEDGER, Layer.LIVE),
    page=__doc__ or "",
    obligation=_OBLIGATION,
)
