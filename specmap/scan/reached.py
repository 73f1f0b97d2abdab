"""Which shared code a worker comes to: not what stands under tests that contradict it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from specmap.codemap.condition import Condition
from specmap.scan.guards import Exit, Path, Test, Unseen
from specmap.scan.nodes import nodes_in
from specmap.scan.resolver import Resolver
from specmap.scan.walk import Walk
from specmap.scan.walked import Activation, Hop, Subtree

Impossible = Callable[[Condition], bool]
"""Whether a condition cannot hold where one worker runs."""


class Reached:
    """Lists the functions of shared code that are ``wanted``, for one worker after another."""

    def __init__(self, resolver: Resolver, wanted: Callable[[Activation], bool]) -> None:
        self._resolver = resolver
        self._wanted = wanted
        # What has an id here is held, so that the id stays the id of one object.
        self._below: dict[int, tuple[Subtree, list[Activation]]] = {}
        self._conditions: dict[tuple[int, ...], tuple[Path, Condition]] = {}

    def of(self, walk: Walk, impossible: Impossible) -> Iterator[tuple[Activation, int]]:
        """Yield each function with the number of passes before it."""
        kept: dict[int, list[Activation]] = {}
        for use in walk.used:
            subtree = use.subtree
            if not self._all(subtree) or self._excluded(use.chain[-1], impossible):
                continue
            if id(subtree) not in kept:
                found = _below(subtree, lambda hop: self._excluded(hop, impossible), self._all)
                kept[id(subtree)] = [a for a in found if self._wanted(a)]
            yield from ((activation, use.passes) for activation in kept[id(subtree)])

    def _all(self, subtree: Subtree) -> list[Activation]:
        """What is wanted below a subtree, whoever the worker is."""
        key = id(subtree)
        if key not in self._below:
            found = [a for a in _below(subtree) if self._wanted(a)]
            self._below[key] = (subtree, found)
        return self._below[key][1]

    def excludes(self, path: Path, impossible: Impossible) -> bool:
        """Whether a worker never takes a path, whoever calls the function for it.

        Shared code was walked for its first caller: a test of an argument, or of a local
        name, tells about that caller only, and so it excludes nobody.
        """
        tests = tuple(item for item in path if _asks_no_caller(item))
        if not tests:
            return False
        key = tuple(map(id, tests))
        if key not in self._conditions:
            self._conditions[key] = (tests, self._resolver.condition(tests))
        return impossible(self._conditions[key][1])

    def _excluded(self, hop: Hop, impossible: Impossible) -> bool:
        return self.excludes(hop.path, impossible)


def _asks_no_caller(item: Test | Exit | Unseen) -> bool:
    """Whether a test reads ``self`` and global names only."""
    if isinstance(item, Exit):
        return all(map(_asks_no_caller, item.path))
    if isinstance(item, Unseen):
        return False
    function = item.scope.frame.function
    local = {*item.scope.env, *(function.positions if function is not None else ())} - {"self"}
    return all(node.id not in local for node in nodes_in(item.node) if isinstance(node, ast.Name))


def _below(
    subtree: Subtree,
    excluded: Callable[[Hop], bool] = lambda hop: False,
    holds: Callable[[Subtree], object] = lambda subtree: True,
) -> Iterator[Activation]:
    stack, seen = [subtree], set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield from current.activations
        for inner in current.inner:
            if holds(inner.subtree) and not excluded(inner.chain[-1]):
                stack.append(inner.subtree)
