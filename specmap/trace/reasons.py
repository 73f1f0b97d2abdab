"""Why a pass did not replay, in words: the test that said no, with its numbers."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from specmap.codemap.source import canonical
from specmap.trace.names import TraceNames

NOT_CAPTURED = "no graph was captured"
NOT_NAMED = "a decision said no; which test is not known (the rank's .names file lacks it)"
_GRAPH = "graph"
_OFF = "disabled"


def disabled(phase: str, names: TraceNames, arguments: Mapping[str, Any]) -> str:
    """Return ``disabled (setting)`` where the launch turned this phase's graphs off, else ""."""
    for setting, where in names.disabled.items():
        without = where.startswith("!")
        fits = where == "all" or (where.lstrip("!") in phase) is not without
        if fits and arguments.get(setting) in (True, _OFF):
            return f"disabled ({setting})"
    return ""


def choose(items: Sequence[Mapping[str, Any]], names: TraceNames) -> Mapping[str, Any] | None:
    """Return the reason that says most: of the first decision, and no mere test of the mode.

    A conjunct that is itself a call comes last: what it called said why. ``inside`` is the
    method that an item was found in: where none is from the method that was called, the call
    is all that is known, and what other runners said after it is beside the point.
    """
    answered = {item.get("inside") for item in items}

    def weakness(item: Mapping[str, Any]) -> tuple[bool, bool]:
        asked = _asked(item) if item.get("call") else ""
        explained = not asked or asked in answered
        return _is_mode_test(item, names), bool(item.get("call")) and explained

    return min(items, key=weakness, default=None)


def _asked(item: Mapping[str, Any]) -> str:
    """Return the name of the method that a conjunct calls."""
    test = _parsed(str(item.get("conjunct", "")))
    called = test.func if isinstance(test, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else ""


def _is_mode_test(item: Mapping[str, Any], names: TraceNames) -> bool:
    text = str(item.get("conjunct", "")).removeprefix("not ").lstrip("(")
    return text.startswith(names.mode_tests)


def phrase(
    item: Mapping[str, Any] | None, phase: str, names: TraceNames, arguments: Mapping[str, Any]
) -> str:
    """Return a reason in words, such as ``bs 4 > largest captured 2``.

    ``item`` is a line of the rank's names, None where no decision was seen.
    """
    if item is None:
        return disabled(phase, names, arguments) or NOT_CAPTURED
    conjunct = canonical(str(item.get("conjunct", "")).removeprefix("return "))
    operands = item.get("operands")
    values = dict(operands) if isinstance(operands, dict) else {}
    how = {canonical(test): how for test, how in names.sizes.items()}.get(conjunct)
    if how is not None:
        said = _size(conjunct, how, values)
        if said:
            return said
    if _no_graph(conjunct, values):
        return disabled(phase, names, arguments) or f"{NOT_CAPTURED} ({_subject(conjunct)} is None)"
    other = _other_runner(conjunct)
    if other:
        return disabled(phase, names, arguments) or f"{NOT_CAPTURED} ({other})"
    if conjunct in ("", "False"):
        return disabled(phase, names, arguments) or "this runner never replays"
    compared = _compared(conjunct, values)
    if compared:
        return compared
    told = {name: value for name, value in values.items() if canonical(name) != conjunct}
    shown = ", ".join(f"{name} = {value}" for name, value in sorted(told.items()))
    return f"{conjunct} is false{f' ({shown})' if shown else ''}"


def _size(conjunct: str, how: str, values: Mapping[str, Any]) -> str:
    test = _parsed(conjunct)
    if not isinstance(test, ast.Compare):
        return ""
    size = _value(test.left, values)
    if size is None:
        return ""
    if how == "one of":
        return f"bs {size} not captured"
    largest = _value(test.comparators[0], values)
    return f"bs {size} > largest captured {'?' if largest is None else largest}"


_OPPOSITE: dict[type[ast.cmpop], str] = {
    ast.LtE: ">", ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.Eq: "!=", ast.NotEq: "==",
}  # fmt: skip


def _compared(conjunct: str, values: Mapping[str, Any]) -> str:
    """Say a comparison that failed as the one that holds, each side with its value."""
    test = _parsed(conjunct)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ""
    opposite = _OPPOSITE.get(type(test.ops[0]))
    sides = [_side(node, values) for node in (test.left, test.comparators[0])]
    return f"{sides[0]} {opposite} {sides[1]}" if opposite and all(sides) else ""


def _side(node: ast.expr, values: Mapping[str, Any]) -> str:
    if isinstance(node, ast.Constant):
        return ast.unparse(node)
    value = _value(node, values)
    return "" if value is None else f"{ast.unparse(node)} {value}"


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    wanted = ast.unparse(node)
    return next((value for name, value in values.items() if canonical(name) == wanted), None)


def _no_graph(conjunct: str, values: Mapping[str, Any]) -> bool:
    """Whether the test fails because what holds the graphs is None (or an empty list)."""
    subject = _subject(conjunct)
    if _GRAPH not in subject or "(" in subject:
        return False
    value = next((v for name, v in values.items() if canonical(name) == subject), None)
    return value is None or value == 0


def _other_runner(conjunct: str) -> str:
    """Say which class is in the place of what holds the graphs: ``not isinstance(x, C)``."""
    test = _parsed(conjunct)
    if isinstance(test, ast.UnaryOp) and isinstance(test.operand, ast.Call):
        call = test.operand
        if ast.unparse(call.func) == "isinstance" and len(call.args) == 2:
            holder, kind = (ast.unparse(argument) for argument in call.args)
            return f"{holder} is of class {kind}" if _GRAPH in holder else ""
    return ""


def _subject(conjunct: str) -> str:
    """Return what a test for None or for truth is about: ``x`` of ``x is not None``."""
    test = _parsed(conjunct)
    if isinstance(test, ast.UnaryOp):
        test = test.operand
    if isinstance(test, ast.Compare) and ast.unparse(test.comparators[0]) in ("None", "0"):
        test = test.left
    if isinstance(test, ast.Call) and ast.unparse(test.func) == "len" and test.args:
        test = test.args[0]
    return "" if test is None or isinstance(test, ast.Compare) else ast.unparse(test)


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
