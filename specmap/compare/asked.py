"""What the functions test that a graph decision calls, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import dedent

from specmap.codemap.graph import CallEdge, CodeMap, Decision, Function, Term
from specmap.codemap.source import Span, canonical, lines_of

ReadText = Callable[[str], str | None]
"""Returns the text of a file of a tree, ``None`` if there is none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One test in the body of a function that a decision calls.

    ``beside`` are the tests of which any one is enough for the graph where this one fails.
    """

    text: str
    span: Span
    beside: frozenset[str] = frozenset()


class Callees:
    """The functions that decisions call, and what they test."""

    def __init__(self, codemap: CodeMap, read: ReadText) -> None:
        self._functions = {function.id: function for function in codemap.functions}
        self._deciding = {d.holder for d in codemap.decisions if d.kind == "can_run"}
        self._edges: dict[str, list[CallEdge]] = {}
        for edge in codemap.edges:
            self._edges.setdefault(edge.caller, []).append(edge)
        self._read = read

    def of(self, decision: Decision, term: Term) -> list[Function]:
        """Return what a term calls, but for runners' tests, which are decisions themselves."""
        said = canonical(term.text)
        return [
            self._functions[callee]
            for edge in self._edges.get(decision.holder, ())
            if edge.span.file == term.span.file
            if term.span.line <= edge.span.line <= term.span.end_line
            if f"{edge.text}(" in said
            for callee in edge.callees
            if callee in self._functions and callee not in self._deciding
        ]

    def tests(self, function: Function, graph_when: bool) -> list[Asked]:
        """Return the tests of a function that lets the graph replay by what it returns."""
        span = function.span
        lines = lines_of(self._read(span.file) or "")[span.line - 1 : span.end_line]
        try:
            tree = ast.parse(dedent("\n".join(lines)))
        except SyntaxError:
            return []
        found = [
            Asked(test.text, Span(span.file, line, line), test.beside)
            for test in _tests(tree, graph_when)
            for line in [span.line + test.span.line - 1]
        ]
        return list(dict.fromkeys(found))


def _tests(tree: ast.Module, graph_when: bool) -> Iterator[Asked]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _leaves(node.value, graph_when)
        elif isinstance(node, ast.If):
            told = node.body[0]
            value = told.value if isinstance(told, ast.Return) else None
            lets = isinstance(value, ast.Constant) and bool(value.value) is graph_when
            others = frozenset(a.text for r in ast.walk(tree) if isinstance(r, ast.Return)
                               if r.value for a in _leaves(r.value, graph_when))  # fmt: skip
            for test in _leaves(node.test, lets):
                yield Asked(test.text, test.span, test.beside | others if lets else test.beside)


def _leaves(node: ast.expr, when: bool, beside: frozenset[str] = frozenset()) -> Iterator[Asked]:
    """Yield the operands of an expression that lets the graph replay where it is ``when``."""
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node, when = node.operand, not when
    if isinstance(node, ast.BoolOp):
        enough = isinstance(node.op, ast.Or) is when
        for value in node.values:
            others = frozenset(ast.unparse(v) for v in node.values if v is not value)
            yield from _leaves(value, when, beside | others if enough else beside)
    elif not isinstance(node, ast.Constant):
        yield Asked(ast.unparse(node), Span("", node.lineno, node.lineno), beside)
