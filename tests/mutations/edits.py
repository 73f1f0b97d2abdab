"""Small rewrites of Python source by libcst; places are lines of the text before any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider


class NotAppliedError(Exception):
    """An edit found nothing at its place."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One rewrite: ``kind`` says which, ``line`` where, ``target`` and ``code`` what.

    ``value``: the value assigned to ``target`` becomes ``code``. ``keyword``: the argument
    ``target=`` becomes ``code``, and goes where that is empty. ``add``: the call whose function
    reads ``target`` is given ``code``. ``insert``: ``code`` comes before the statement.
    ``expression``: the expression that reads ``target`` becomes ``code``. ``unless``: of an
    ``if`` the other arm stays. ``parameter``: the function loses its parameter ``target``.
    ``swap``: ``code`` comes instead of the statement.
    """

    kind: str
    line: int
    target: str = ""
    code: str = ""


def normal(text: str) -> str:
    """Return source text on one line, as the map writes it."""
    return " ".join(text.split())


def bare(text: str) -> str:
    """Return an expression's text without the parentheses around it and spaces inside."""
    text = text.replace("( ", "(").replace(" )", ")").replace(",)", ")")
    return text[1:-1] if text.startswith("(") and _closes_last(text) else text


def _closes_last(text: str) -> bool:
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return index == len(text) - 1
    return False


def apply(source: str, edits: Sequence[Edit]) -> str:
    """Return the source after the edits.

    Raises:
        NotAppliedError: one of them found nothing at its place.
    """
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    editor = _Editor(edits, wrapper.resolve(PositionProvider), wrapper.module)
    changed = wrapper.module.visit(editor)
    left = [edit for edit in edits if edit not in editor.done]
    if left:
        raise NotAppliedError(str(left[0]))
    return changed.code


class _Editor(cst.CSTTransformer):
    def __init__(
        self, edits: Sequence[Edit], places: Mapping[cst.CSTNode, object], module: cst.Module
    ) -> None:
        super().__init__()
        self._by_line: dict[int, list[Edit]] = {}
        for edit in edits:
            self._by_line.setdefault(edit.line, []).append(edit)
        self._expressions = [edit for edit in edits if edit.kind == "expression"]
        self._places = places
        self._module = module
        self.done: set[Edit] = set()

    def _place(self, node: cst.CSTNode) -> CodeRange:
        found = self._places[node]
        assert isinstance(found, CodeRange)
        return found

    def _edits(self, node: cst.CSTNode, *kinds: str) -> list[Edit]:
        here = self._by_line.get(self._place(node).start.line, [])
        return [edit for edit in here if edit.kind in kinds and edit not in self.done]

    def _code(self, node: cst.CSTNode) -> str:
        return normal(self._module.code_for_node(node))

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]:
        updated = super().on_leave(original_node, updated_node)
        if isinstance(original_node, cst.BaseExpression):
            place = self._place(original_node)
            for edit in self._expressions:
                if edit in self.done or not place.start.line <= edit.line <= place.end.line:
                    continue
                # A node's own parentheses belong to it, and stand before its first line.
                if bare(self._code(original_node)) == bare(edit.target):
                    self.done.add(edit)
                    return cst.parse_expression(f"({edit.code})")
        return updated

    def leave_Assign(  # noqa: N802
        self, original_node: cst.Assign, updated_node: cst.Assign
    ) -> cst.Assign:
        for edit in self._edits(original_node, "value"):
            for target in original_node.targets:
                if self._code(target.target).rpartition(".")[2] == edit.target:
                    self.done.add(edit)
                    return updated_node.with_changes(value=cst.parse_expression(edit.code))
        return updated_node

    def leave_Arg(  # noqa: N802
        self, original_node: cst.Arg, updated_node: cst.Arg
    ) -> cst.Arg | cst.RemovalSentinel:
        if original_node.keyword is not None:
            for edit in self._edits(original_node, "keyword"):
                if original_node.keyword.value == edit.target:
                    self.done.add(edit)
                    if not edit.code:
                        return cst.RemoveFromParent()
                    return updated_node.with_changes(value=cst.parse_expression(edit.code))
        return updated_node

    def leave_Call(  # noqa: N802
        self, original_node: cst.Call, updated_node: cst.Call
    ) -> cst.Call:
        for edit in self._edits(original_node, "add"):
            if self._code(original_node.func) == edit.target:
                self.done.add(edit)
                made = cst.parse_expression(f"f({edit.code})")
                assert isinstance(made, cst.Call)
                return updated_node.with_changes(args=[*_separated(updated_node.args), *made.args])
        return updated_node

    def leave_SimpleStatementLine(  # noqa: N802
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        return self._statement(original_node, updated_node)

    def leave_If(  # noqa: N802
        self, original_node: cst.If, updated_node: cst.If
    ) -> Any:
        for edit in self._edits(original_node, "unless"):
            self.done.add(edit)
            other = updated_node.orelse
            if other is None:
                return cst.RemoveFromParent()
            if isinstance(other, cst.Else) and isinstance(other.body, cst.IndentedBlock):
                return cst.FlattenSentinel(list(other.body.body))
            raise NotAppliedError(str(edit))
        return self._statement(original_node, updated_node)

    def leave_FunctionDef(  # noqa: N802
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> Any:
        for edit in self._edits(original_node, "parameter"):
            self.done.add(edit)
            kept = updated_node.params
            for part in ("params", "kwonly_params"):
                rest = [p for p in getattr(kept, part) if p.name.value != edit.target]
                kept = kept.with_changes(**{part: rest})
            return updated_node.with_changes(params=kept)
        return self._statement(original_node, updated_node)

    def _statement(self, original: cst.BaseStatement, updated: Any) -> Any:
        for edit in self._edits(original, "swap"):
            self.done.add(edit)
            return cst.FlattenSentinel(_statements(edit.code))
        before: list[cst.BaseStatement] = []
        for edit in self._edits(original, "insert"):
            self.done.add(edit)
            before += _statements(edit.code)
        return cst.FlattenSentinel([*before, updated]) if before else updated


def _statements(code: str) -> list[cst.BaseStatement]:
    return [s for s in cst.parse_module(code).body if isinstance(s, cst.BaseStatement)]


def _separated(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Arguments that another one may follow."""
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [a if isinstance(a.comma, cst.Comma) else a.with_changes(comma=comma) for a in args]
