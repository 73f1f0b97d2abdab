"""The exact source of the cycle, by libcst: comments of calls, and a check of the guards.

libcst costs ten times what ``ast`` does, and its positions three times that. So only the
functions of the cycle are parsed, each from its own lines: those on a chain of a phase, and
those that hold a decision or a flag. Both parsers see the same statements in the same
order; the lines come from ``ast``, the text from libcst.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from specmap.codemap.graph import CallEdge, CodeMap, Function, Problem
from specmap.scan.index import Tree
from specmap.scan.nodes import children

_LONGEST = 200
# Stands above a method, so that it keeps its indentation: a dedent would change its strings.
_ABOVE = "if True:\n"
_COMMENT = re.compile(r"#.*$", re.M)
_BLANK = re.compile(r"[\s\\]+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, or the head of a compound one, by lines of its file."""

    first: int
    last: int
    node: cst.CSTNode
    comment: str

    def holds(self, first: int, last: int) -> bool:
        """Whether these lines are all its own."""
        return self.first <= first and last <= self.last


def annotate(code_map: CodeMap, tree: Tree) -> CodeMap:
    """Add the comments of the calls on the cycle.

    A function that libcst cannot read, and a guard that is no test in the concrete source,
    are noted as problems; the map is not partial for that.
    """
    calls: dict[str, list[CallEdge]] = defaultdict(list)
    cycle = _cycle(code_map)
    for edge in code_map.edges:
        if edge.caller in cycle:
            calls[edge.caller].append(edge)
    comments: dict[tuple[str, int, int], str] = {}
    problems: list[Problem] = []
    for function in code_map.functions:
        if function.id not in calls:
            continue
        try:
            statements = read(function, tree)
        except (cst.ParserSyntaxError, SyntaxError, RecursionError, _Apart) as error:
            problems.append(_unread(function, error))
            continue
        for edge in calls[function.id]:
            comments[_place(edge)] = _comment_at(statements, edge)
        problems += _false_guards(function, calls[function.id], statements)
    edges = tuple(
        replace(edge, comment=found) if (found := comments.get(_place(edge))) else edge
        for edge in code_map.edges
    )
    return replace(code_map, edges=edges, problems=(*code_map.problems, *problems))


def _cycle(code_map: CodeMap) -> set[str]:
    arms = (a for w in code_map.workers for p in w.phases for a in p.arms)
    return {
        *(symbol for arm in arms for symbol, _ in arm.chain),
        *(decision.holder for decision in code_map.decisions),
        *(flag.holder for flag in code_map.flags),
    }


def _place(edge: CallEdge) -> tuple[str, int, int]:
    return edge.caller, edge.span.line, edge.span.end_line


def _unread(function: Function, error: Exception) -> Problem:
    reason = " ".join(str(getattr(error, "message", error)).split()) or type(error).__name__
    text = f"comments and guards of {function.qualname} not read: {reason}"
    return Problem(function.span.file, function.span.line, text, partial=False)


# libcst's parser takes the cube of the nesting depth.
_MAX_DEPTH = 300


class _Apart(Exception):  # noqa: N818
    """The two parsers do not see the same statements."""


def read(function: Function, tree: Tree) -> list[Statement]:
    """Return the statements of a function with their comments, in source order.

    Raises:
        ParserSyntaxError, SyntaxError: one of the parsers refuses the lines.
    """
    span = function.span
    module = tree.module_at(span.file)
    lines = module.lines[span.line - 1 : span.end_line] if module else []
    text = b"\n".join(lines).decode("utf-8", "replace") + "\n"
    above = _ABOVE if text[:1].isspace() else ""
    abstract = ast.parse(above + text)
    if _depth(abstract) > _MAX_DEPTH:
        raise _Apart(f"nested deeper than {_MAX_DEPTH} levels")
    concrete = cst.parse_module(above + text)
    slice_ = _Slice([b"", *lines] if above else lines, span.line - (2 if above else 1))
    return list(_paired(concrete.body, abstract.body, slice_, ""))


def _depth(tree: ast.AST) -> int:
    """Return how deep a tree nests, without recursion."""
    deepest, pending = 0, [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        pending += [(child, depth + 1) for child in children(node)]
    return deepest


@dataclass(frozen=True, slots=True)
class _Slice:
    """The lines that are parsed; ``offset`` added to a line of theirs gives the file's."""

    lines: Sequence[bytes]
    offset: int

    def may_comment(self, first: int, last: int) -> bool:
        """Whether a comment can stand between the first and the last of these lines."""
        return any(b"#" in line for line in self.lines[first - 1 : last - 1])


def _paired(
    concrete: Sequence[cst.CSTNode], abstract: Sequence[ast.stmt], slice_: _Slice, above: str
) -> Iterator[Statement]:
    """Yield the statements of one block; ``above`` is the comment of the head it follows."""
    flat = [pair for line in concrete for pair in _small(line)]
    if len(flat) != len(abstract):
        raise _Apart("libcst and ast disagree on its statements")
    for index, ((node, line), stmt) in enumerate(zip(flat, abstract, strict=True)):
        blocks = list(_blocks(node))
        bodies = list(_bodies(stmt))
        first, last = stmt.lineno, stmt.end_lineno or stmt.lineno
        if bodies:
            last = max(first, bodies[0][0].lineno - 1)
        inner = _inner(node) if slice_.may_comment(first, last) else []
        own = [*_leading(line), *inner, *_trailing(line)]
        comment = " ".join(filter(None, ("" if index else above, *own)))
        yield Statement(first + slice_.offset, last + slice_.offset, node, comment)
        if len(blocks) != len(bodies):
            raise _Apart("libcst and ast disagree on its blocks")
        for (head, block), body in zip(blocks, bodies, strict=True):
            heading = " ".join(own if head is node else [*_leading(head), *_trailing(head)])
            named = isinstance(node, cst.FunctionDef | cst.ClassDef)
            yield from _paired(block, body, slice_, "" if named else heading)


def _small(line: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """Yield the statements on one line, each with that line."""
    if isinstance(line, cst.SimpleStatementLine):
        yield from ((small, line) for small in line.body)
    else:
        yield line, line


def _blocks(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, Sequence[cst.CSTNode]]]:
    """Yield the heads and statements of the blocks of a compound statement."""
    if isinstance(node, cst.Match):
        yield from ((case, case.body.body) for case in node.cases)
        return
    body = getattr(node, "body", None)
    if not isinstance(body, cst.BaseSuite):
        return
    yield node, body.body
    yield from ((handler, handler.body.body) for handler in getattr(node, "handlers", ()))
    orelse = getattr(node, "orelse", None)
    if isinstance(orelse, cst.If):
        yield orelse, [orelse]
    elif orelse is not None:
        yield orelse, orelse.body.body
    final = getattr(node, "finalbody", None)
    if final is not None:
        yield final, final.body.body


def _bodies(stmt: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement in the same order."""
    if isinstance(stmt, ast.Match):
        yield from (case.body for case in stmt.cases)
        return
    body: list[ast.stmt] = getattr(stmt, "body", [])
    if body:
        yield body
        yield from (handler.body for handler in getattr(stmt, "handlers", ()))
        yield from filter(None, (getattr(stmt, "orelse", ()), getattr(stmt, "finalbody", ())))


def _leading(node: cst.CSTNode) -> list[str]:
    """Return the comment lines directly above a statement."""
    found: list[str] = []
    for line in getattr(node, "leading_lines", ()):
        found = [*found, _words(line.comment)] if line.comment else []
    return found


def _trailing(node: cst.CSTNode) -> list[str]:
    """Return the comment behind a statement or behind the colon of its head."""
    body = getattr(node, "body", None)
    holder = getattr(body, "header", None) or getattr(body, "trailing_whitespace", None)
    space = holder or getattr(node, "trailing_whitespace", None)
    return [_words(space.comment)] if space is not None and space.comment else []


class _Comments(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def visit_Comment(self, node: cst.Comment) -> None:  # noqa: N802
        self.found.append(_words(node))


def _inner(node: cst.CSTNode) -> list[str]:
    """Return the comments between the lines of a statement, or of the test of its head."""
    part = getattr(node, "test", None) if hasattr(node, "leading_lines") else node
    reader = _Comments()
    if part is not None:
        part.visit(reader)
    return reader.found


def _words(comment: cst.Comment) -> str:
    return comment.value.lstrip("#").strip()


def _comment_at(statements: Sequence[Statement], edge: CallEdge) -> str:
    holder = _innermost(statements, edge.span.line, edge.span.end_line)
    text = holder.comment if holder else ""
    return textwrap.shorten(text, _LONGEST, placeholder=" \N{HORIZONTAL ELLIPSIS}")


def _innermost(statements: Sequence[Statement], first: int, last: int) -> Statement | None:
    around = [s for s in statements if s.holds(first, last)]
    return min(reversed(around), key=lambda s: s.last - s.first, default=None)


class _Tests(cst.CSTVisitor):
    """Collects what is tested inside a statement, its blocks left out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> bool:  # noqa: N802
        return False

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.If | cst.While | cst.IfExp | cst.CompIf | cst.Assert):
            self.found.add(_test_text(node.test))
        elif isinstance(node, cst.BooleanOperation):
            self.found.update(map(_test_text, (node.left, node.right)))
        return super().on_visit(node)


def _test_text(node: cst.BaseExpression) -> str:
    """Return the text of a test without the parentheses around it."""
    return _bare(cst.Module([]).code_for_node(node.with_changes(lpar=(), rpar=())))


def _bare(text: str) -> str:
    """Return text without white space and comments."""
    return _BLANK.sub("", _COMMENT.sub("", text))


def _false_guards(
    function: Function, edges: Sequence[CallEdge], statements: Sequence[Statement]
) -> Iterator[Problem]:
    """Yield a problem for each guard of this function that is no test on its lines."""
    guards = dict.fromkeys(g for e in edges for g in e.guards if g.holder == function.id)
    tests: dict[int, set[str]] = {}
    for guard in guards:
        holder = _innermost(statements, guard.span.line, guard.span.end_line)
        if holder is None or not _is_test(_bare(guard.text), holder.node, tests):
            text = f"guard {guard.text!r} is no test in the source; please report this"
            yield Problem(guard.span.file, guard.span.line, text, partial=False)


def _is_test(text: str, node: cst.CSTNode, tests: dict[int, set[str]]) -> bool:
    """Whether a statement tests this; ``tests`` keeps what the statements met so far test."""
    if isinstance(node, cst.If | cst.While) and _test_text(node.test) == text:
        return True
    if id(node) not in tests:
        reader = _Tests()
        node.visit(reader)
        tests[id(node)] = reader.found
    return text in tests[id(node)]
