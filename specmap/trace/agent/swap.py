"""Giving a live function other code, and its own code back."""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import types

from .reasons import NOTE, WHY, Reasons
from .why import Asked, Function, rewrite

_FEATURES = 0
for _name in __future__.all_feature_names:
    _FEATURES |= getattr(__future__, _name).compiler_flag


class RefusedError(Exception):
    """A function that cannot be rewritten, with the reason."""


class Swap:
    """One rewritten function; ``apply`` and ``restore`` take effect at its next call.

    What the new code calls stays in the function's globals: a frame may still be running it.
    """

    def __init__(self, function: types.FunctionType, asked: list[Asked], reasons: Reasons) -> None:
        self.function, self.own = function, function.__code__
        self.code, self.missing = rewritten(function, asked, reasons)
        self._given = {WHY: reasons.why, NOTE: reasons.note}

    def apply(self) -> None:
        """Run the rewritten code from now on."""
        self.function.__globals__.update(self._given)
        self.function.__code__ = self.code

    def restore(self) -> None:
        """Run the function's own code again; frames that are running keep what they have."""
        self.function.__code__ = self.own


def rewritten(
    function: types.FunctionType, asked: list[Asked], reasons: Reasons
) -> tuple[types.CodeType, list[int]]:
    """Return a function's new code and the targets of which nothing was found.

    Raises:
        RefusedError: its source is missing, or does not give its code.
    """
    own = function.__code__
    node = _tree(function)
    missing = rewrite(node, asked, reasons)
    module = _enclosed(node, function)
    flags = own.co_flags & _FEATURES
    made = compile(module, own.co_filename, "exec", flags=flags, dont_inherit=True)
    code = _inside(made, own.co_name)
    if code is None or code.co_freevars != own.co_freevars:
        raise RefusedError("its closure cannot be rebuilt")
    if code.co_varnames[: own.co_argcount] != own.co_varnames[: own.co_argcount]:
        raise RefusedError("its source is not that of its code")
    changes: dict[str, object] = {"co_firstlineno": own.co_firstlineno}
    if hasattr(own, "co_qualname"):
        changes["co_qualname"] = own.co_qualname
    return code.replace(**changes), missing  # type: ignore[arg-type]


def _tree(function: types.FunctionType) -> Function:
    """Return the definition's tree, with the file's line numbers and columns."""
    own = function.__code__
    lines = linecache.getlines(own.co_filename, function.__globals__)
    block = inspect.getblock(lines[own.co_firstlineno - 1 :]) if lines else []
    if not block:
        raise RefusedError("its source is missing")
    inside = block[0][:1].isspace()
    try:
        tree = ast.parse("if 1:\n" * inside + "".join(block))
    except SyntaxError as error:
        raise RefusedError("its source cannot be parsed alone") from error
    node = tree.body[0].body[0] if inside else tree.body[0]  # type: ignore[attr-defined]
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise RefusedError("it is no plain function")
    if node.name != own.co_name:
        raise RefusedError("its source is not that of its code")
    ast.increment_lineno(node, own.co_firstlineno - 1 - inside)
    node.decorator_list = []
    return node


def _enclosed(node: Function, function: types.FunctionType) -> ast.Module:
    """Return a module with the function in its class (private names) and closure."""
    body: list[ast.stmt] = [node]
    parents = function.__qualname__.split(".")[:-1]
    if parents and parents[-1] != "<locals>":
        body = [ast.ClassDef(parents[-1], [], [], body, [])]
    free = [name for name in function.__code__.co_freevars if name != "__class__"]
    bound = [ast.Assign([ast.Name(one, ast.Store())], ast.Constant(None)) for one in free]
    nothing = ast.arguments([], [], None, [], [], None, [])
    outer = ast.FunctionDef("_specmap_outer", nothing, [*bound, *body], [])
    for new in (outer, *body):
        if "type_params" in new._fields and new is not node:
            new.type_params = []  # type: ignore[attr-defined]
    return ast.fix_missing_locations(ast.Module([outer], []))


def _inside(code: types.CodeType, name: str) -> types.CodeType | None:
    """Return the outermost code object of a name."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name:
                return constant
            found = _inside(constant, name)
            if found is not None:
                return found
    return None
