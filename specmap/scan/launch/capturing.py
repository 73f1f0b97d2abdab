"""The batch sizes that a decode runner captures, by the release's own runner code."""

from __future__ import annotations

import ast

from specmap.scan.launch.carrying import Carriers
from specmap.scan.launch.interpreter import Interpreter
from specmap.scan.launch.values import (
    Box,
    Carrier,
    Class,
    Function,
    Raised,
    Scope,
    Unknown,
    is_known,
    merged,
    reasons_of,
)
from specmap.scan.vocabulary import LaunchWords

# Two sizes of the KV cache, in tokens, between which the number of requests is monotone: where
# both give the same number, so does every size between them.
SMALL_CACHE, LARGE_CACHE = 8192, 10**9


def pool_bounds(run: Interpreter, carriers: Carriers, words: LaunchWords) -> object:
    """Return the requests that are held with a small and with a large KV cache, as a pair."""
    return tuple(_pool_at(run, carriers, words, n) for n in (SMALL_CACHE, LARGE_CACHE))


def _agreed(run: Interpreter, answers: list[object]) -> object:
    """Return the answer for both sizes of the cache, if it is one."""
    if answers[0] == answers[1] and isinstance(answers[0], int | tuple) and is_known(answers[0]):
        run.machine.assumptions.add(f"the KV cache holds at least {SMALL_CACHE} tokens")
        return answers[0]
    return Unknown(merged(*map(reasons_of, answers)) or ("KV cache capacity",))


def _pool_at(run: Interpreter, carriers: Carriers, words: LaunchWords, tokens: int) -> object:
    machine = run.machine
    machine.capacity = tokens
    for name, result in words.pool.items():
        found = carriers.of_runner(name)
        if found is None:
            continue
        owner, runner, call = found
        depth = machine.heap.push()
        try:
            passed = _passed(run, carriers, owner, runner, name.rpartition(".")[2])
            value = machine.invoke(call, [tokens, *passed], {})
            for part in words.pool_size if result == "pool" else ():
                value = machine.attribute(runner if part == words.pool_size[0] else value, part)
        finally:
            machine.heap.take(depth)
        return value
    return Unknown(("the request pool",))


def _passed(
    run: Interpreter, carriers: Carriers, owner: Class, runner: Carrier, method: str
) -> list[object]:
    """Return what a class passes to its own method behind the first argument, the KV capacity."""
    scope = Scope(None)
    scope.slots.update(dict.fromkeys(carriers.settings_names, carriers.settings()), self=runner)
    for node in (node for cls in owner.mro() for node in ast.walk(cls.node)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"self.{method}":
            return [run.machine.evaluate(argument, scope) for argument in node.args[1:]]
    return []


def capture_sizes(run: Interpreter, carriers: Carriers, words: LaunchWords) -> object:
    """Return the batch sizes at capture, ascending, or why they cannot be told.

    Raises:
        Raised: the runner stops the start, whatever the size of the cache.
    """
    answers: list[object] = []
    failed: list[Raised] = []
    for size in (SMALL_CACHE, LARGE_CACHE):
        try:
            answers.append(_captured(run, carriers, words, _pool_at(run, carriers, words, size)))
        except Raised as raised:
            failed.append(raised)
            answers.append(Unknown((raised.message or raised.kind,)))
    if len(failed) == len(answers):
        raise failed[0]
    return _agreed(run, answers)


def _captured(
    run: Interpreter, carriers: Carriers, words: LaunchWords, pool: object
) -> tuple[int, ...] | Unknown:
    """Return the list of a draft runner; the target's may hold more tokens a request."""
    for name in words.capture:
        function = carriers.dotted(name)
        if isinstance(function, Function):
            sizes = _listed(run, words, function, pool)
            width = run.machine.attribute(carriers.settings(), words.capture_width)
            if len(function.node.args.args) > 1 and isinstance(width, int):
                wide = _listed(run, words, function, pool, width)
                if _top(sizes) != _top(wide):
                    return Unknown(("one list of captured sizes for draft and target",))
            return sizes
    return Unknown(("the list at capture",))


def _top(sizes: tuple[int, ...] | Unknown) -> int | None:
    return None if isinstance(sizes, Unknown) else max(sizes, default=0)


def _listed(
    run: Interpreter, words: LaunchWords, function: Function, pool: object, *width: int
) -> tuple[int, ...] | Unknown:
    machine = run.machine
    runner = Carrier("model_runner")
    holder = runner
    for part in words.pool_size[:-1]:
        inner = Carrier(f"{holder.label}.{part}")
        holder.slots[part] = inner
        holder = inner
    holder.slots[words.pool_size[-1]] = pool
    depth = machine.heap.push()
    try:
        result = machine.invoke(function, [runner, *width], {})
        first = result[0] if isinstance(result, tuple) and result else result
        content = machine.content(first) if isinstance(first, Box) else first
    finally:
        machine.heap.take(depth)
    if isinstance(content, tuple) and all(isinstance(size, int) for size in content):
        return tuple(size for size in content if isinstance(size, int))
    return Unknown(reasons_of(content) or ("the list at capture",))
