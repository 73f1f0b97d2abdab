"""Moves a run of statements of a function into a helper, as a careful maintainer would.

The text is cut by lines, so everything else keeps its form. A block is refused unless the
move keeps the behaviour: no jump leaves it, and every value that is needed afterwards is
certainly assigned inside.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

Def = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Block:
    """The statements from ``first`` to ``last`` (lines) of ``owner``, and the new name."""

    file: str
    owner: str
    first: int
    last: int
    helper: str


def extract(tree: Path, block: Block) -> None:
    """Rewrite one file below ``tree``: the block becomes a call of a new helper.

    Raises:
        ValueError: the lines are no run of statements, or moving them changes behaviour.
    """
    path = tree / block.file
    source = path.read_text(encoding="utf-8")
    module = ast.parse(source)
    function = _function(module, block.owner)
    statements = _run(function, block.first, block.last)
    _refuse_jumps(statements)
    inside = {id(node) for s in statements for node in ast.walk(s)}
    outside = [node for node in ast.walk(function) if id(node) not in inside]
    taken = _taken(function, statements, outside)
    given = _given(statements, outside, block.last)
    lines = source.splitlines(keepends=True)
    path.write_text(_rewritten(lines, block, function, taken, given), encoding="utf-8")


def _function(module: ast.Module, qualname: str) -> Def:
    body: list[ast.stmt] = module.body
    for part in qualname.split("."):
        node = next(n for n in body if isinstance(n, Def | ast.ClassDef) and n.name == part)
        body = node.body
    if not isinstance(node, Def):
        raise ValueError(f"{qualname} is no function")
    return node


def _run(function: Def, first: int, last: int) -> list[ast.stmt]:
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if not isinstance(body, list):
                continue
            found = [s for s in body if first <= s.lineno and (s.end_lineno or 0) <= last]
            if found and found[0].lineno == first and found[-1].end_lineno == last:
                return found
    raise ValueError(f"lines {first}-{last} are no run of statements in {function.name}")


def _refuse_jumps(statements: Iterable[ast.stmt]) -> None:
    jumps = ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Break | ast.Continue
    names = ast.Nonlocal | ast.Global | ast.Delete | Def | ast.Lambda | ast.NamedExpr
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, jumps | names):
                raise ValueError(f"line {statement.lineno}: {type(node).__name__} cannot move")


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> Iterator[ast.Name]:
    return (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, context))


def _taken(function: Def, block: list[ast.stmt], outside: list[ast.AST]) -> list[str]:
    """Return the parameters and locals that the block reads before it sets them."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    known = {a.arg: None for a in every} | {n.id: None for n in _names(outside, ast.Store)}
    read = {n.id for s in block for n in _names(ast.walk(s), ast.Load)}
    fresh = _set_before_use(block)
    return [n for n in known if n in read and n not in fresh and n not in {"self", *dir(builtins)}]


def _set_before_use(block: list[ast.stmt]) -> set[str]:
    """Return the names that a plain statement of the block sets before any reads them."""
    fresh: set[str] = set()
    read: set[str] = set()
    for statement in block:
        read |= {n.id for n in _names(ast.walk(statement), ast.Load)}
        fresh |= certainly_set([statement]) - read
    return fresh


def certainly_set(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that every way through the statements assigns."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            found |= {n.id for n in _names(ast.walk(statement), ast.Store)}
        elif isinstance(statement, ast.With):
            found |= certainly_set(statement.body)
        elif isinstance(statement, ast.If):
            found |= certainly_set(statement.body) & certainly_set(statement.orelse)
    return found


def _given(block: list[ast.stmt], outside: list[ast.AST], last: int) -> list[str]:
    """Return the names that the block sets and later code reads."""
    stored = dict.fromkeys(n.id for s in block for n in _names(ast.walk(s), ast.Store))
    later = {n.id for n in _names(outside, ast.Load) if n.lineno > last}
    given = [name for name in stored if name in later]
    if missing := set(given) - certainly_set(block):
        raise ValueError(f"not certainly assigned in the block: {sorted(missing)}")
    return given


def _rewritten(
    lines: list[str], block: Block, function: Def, taken: list[str], given: list[str]
) -> str:
    method = "." in block.owner
    moved = textwrap.dedent("".join(lines[block.first - 1 : block.last]))
    indent = lines[block.first - 1][: -len(lines[block.first - 1].lstrip())]
    receiver = "self." if method else ""
    result = f"{', '.join(given)} = " if given else ""
    call = f"{indent}{result}{receiver}{block.helper}({', '.join(taken)})\n"
    notes = {a.arg: a.annotation for a in [*function.args.args, *function.args.kwonlyargs]}
    parameters = [f"{n}: {ast.unparse(note)}" if (note := notes.get(n)) else n for n in taken]
    head = f"def {block.helper}({', '.join((['self'] if method else []) + parameters)}):\n"
    body = textwrap.indent(moved, "    ")
    back = f"    return {', '.join(given)}\n" if given else ""
    helper = textwrap.indent(head + body + back, "    " if method else "")
    end = function.end_lineno or 0
    tail = lines[block.last : end]
    return "".join([*lines[: block.first - 1], call, *tail, "\n", helper, *lines[end:]])
