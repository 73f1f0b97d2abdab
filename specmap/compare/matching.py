"""Pairs things of an old map with things of a new one, the surest pairs first."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

_Old = TypeVar("_Old")
_New = TypeVar("_New")
Key = tuple[Callable[[_Old], Hashable | None], Callable[[_New], Hashable | None]]
"""How an old and a new thing are told to be the same; ``None`` is like nothing else."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def pair(
    old: Sequence[_Old],
    new: Sequence[_New],
    keys: Sequence[Key[_Old, _New]],
    fits: Callable[[_Old, _New], bool] = lambda _old, _new: True,
) -> tuple[list[tuple[_Old, _New]], list[_Old], list[_New]]:
    """Return the pairs, then what is only old and only new, each in its given order.

    Every key pairs what those before it left, in order; ``fits`` can refuse a pair.
    """
    pairs: list[tuple[_Old, _New]] = []
    left, right = list(old), list(new)
    for old_key, new_key in keys:
        waiting: dict[Hashable, list[_New]] = defaultdict(list)
        for item in right:
            key = new_key(item)
            if key is not None:
                waiting[key].append(item)
        alone = []
        for thing in left:
            key = old_key(thing)
            found = next((n for n in waiting.get(key, ()) if fits(thing, n)), None)
            if key is None or found is None:
                alone.append(thing)
            else:
                waiting[key].remove(found)
                right.remove(found)
                pairs.append((thing, found))
        left = alone
    return pairs, left, right


def renamed(text: str, words: Mapping[str, str]) -> str:
    """Return ``text`` with every whole word that ``words`` knows replaced."""
    return _WORD.sub(lambda found: words.get(found[0], found[0]), text) if words else text


def shape(text: str) -> str | None:
    """Return source text with its local names numbered, so that renamed locals look alike.

    Attributes, called names, names that are capitalised and ``self`` stay. ``None`` for
    text that is not Python, or that is no more than a name of its own.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    if not any(map(_tells, ast.walk(tree))):
        return None
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call)
              and isinstance(node.func, ast.Name)}  # fmt: skip
    numbers: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and _is_local(node.id, called):
            node.id = numbers.setdefault(node.id, f"_{len(numbers)}")
    return ast.unparse(tree)


def _tells(node: ast.AST) -> bool:
    """Tell whether an expression computes something, or reads what a local name holds."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return _is_local(node.value.id, set())
    return isinstance(node, ast.Call | ast.Compare | ast.BinOp | ast.Subscript | ast.BoolOp)


def skeleton(text: str) -> str:
    """Return source text with every name replaced by the same letter."""
    return _WORD.sub("x", " ".join(text.split()))


def _is_local(name: str, called: set[str]) -> bool:
    return name not in called and name not in ("self", "cls", "torch") and not name[:1].isupper()
