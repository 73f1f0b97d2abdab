"""Which shared code a worker comes to: not what stands under tests that contradict it."""

from __future__ import annotations

import ast
from collections import defaultdict
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
        self._leads: dict[int, tuple[Subtree, bool]] = {}
        self._asked: dict[int, tuple[Path, tuple[int, ...]]] = {}
        self._conditions: dict[tuple[int, ...], tuple[Path, Condition]] = {}

    def of(self, walk: Walk, impossible: Impossible) -> Iterator[tuple[Activation, int]]:
        """Yield each function once with each number of passes before it."""
        seen: dict[int, set[int]] = defaultdict(set)
        for use in walk.used:
            if self._leads_to(use.subtree) and not self._excluded(use.chain[-1], impossible):
                for activation in self._below(use.subtree, impossible, seen[use.passes]):
                    yield activation, use.passes

    def _leads_to(self, subtree: Subtree) -> bool:
        """Whether something below a subtree is wanted, whoever the worker is."""
        if id(subtree) not in self._leads:
            self._find_leads(subtree)
        return self._leads[id(subtree)][1]

    def _find_leads(self, subtree: Subtree) -> None:
        stack, leading = [subtree], []
        region: dict[int, Subtree] = {}
        callers: dict[int, list[Subtree]] = defaultdict(list)
        while stack:
            current = stack.pop()
            if id(current) in region:
                continue
            if id(current) in self._leads:
                leading += [current] if self._leads[id(current)][1] else []
                continue
            region[id(current)] = current
            # All are asked, in the order of the walk: a device may be told by what came before.
            leading += [current] if [a for a in current.activations if self._wanted(a)] else []
            for inner in current.inner:
                callers[id(inner.subtree)].append(current)
                stack.append(inner.subtree)
        self._leads |= {key: (one, False) for key, one in region.items()}
        for found in leading:
            self._leads[id(found)] = found, True
            leading += [one for one in callers[id(found)] if not self._leads[id(one)][1]]

    def _below(
        self, subtree: Subtree, impossible: Impossible, seen: set[int]
    ) -> Iterator[Activation]:
        stack = [subtree]
        while stack:
            current = stack.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            yield from filter(self._wanted, current.activations)
            for inner in current.inner:
                if self._leads_to(inner.subtree) and not self._excluded(
                    inner.chain[-1], impossible
                ):
                    stack.append(inner.subtree)

    def excludes(self, path: Path, impossible: Impossible) -> bool:
        """Whether a worker never takes a path, whoever calls the function for it.

        Shared code was walked for its first caller: a test of an argument, or of a local
        name, tells about that caller only, and so it excludes nobody.
        """
        if id(path) not in self._asked:
            tests = tuple(item for item in path if _asks_no_caller(item))
            key = tuple(map(id, tests))
            self._asked[id(path)] = path, key
            if key not in self._conditions:
                self._conditions[key] = (tests, self._resolver.condition(tests))
        key = self._asked[id(path)][1]
        return bool(key) and impossible(self._conditions[key][1])

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
