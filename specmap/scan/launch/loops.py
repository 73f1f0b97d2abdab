"""Loops, and leaving them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from specmap.scan.launch.binding import Binding
from specmap.scan.launch.comparing import truth_of
from specmap.scan.launch.machine import Exit, Frame, Machine
from specmap.scan.launch.values import (
    Lazy,
    Maybe,
    Scope,
    Unknown,
    merged,
    reasons_of,
)

MOST_ROUNDS = 20_000


class Loops(Binding):
    """Runs loops; the length of one may not be known."""

    def __init__(self, machine: Machine, builtin: Callable[[str], object]) -> None:
        super().__init__(machine, builtin)
        self._blind_depth = 0

    def _leave(self, frame: Frame, exits: list[Exit], depth: int, value: object = None) -> bool:
        exits.append(Exit(self.machine.heap.delta(depth), value))
        frame.why = merged(frame.why, self.machine.why)
        return False

    def _break(self, node: ast.Break, scope: Scope) -> bool:
        frame = self.machine.loops[-1]
        return self._leave(frame, frame.breaks, frame.depth)

    def _continue(self, node: ast.Continue, scope: Scope) -> bool:
        frame = self.machine.loops[-1]
        return self._leave(frame, frame.continues, frame.continue_depth)

    def _for(self, node: ast.For, scope: Scope) -> bool:
        source = self.machine.evaluate(node.iter, scope)
        items = self.machine.invoke(self.builtin("__each__"), [source], {})
        if not isinstance(items, tuple):
            return self._blind(node, scope, reasons_of(items), node.target)

        machine = self.machine

        def one(item: object, frame: Frame) -> bool:
            self.bind(node.target, item, scope)
            return self._round(node.body, scope, frame)

        def rounds(frame: Frame) -> bool:
            for item in items:
                if isinstance(item, Maybe):
                    falls = machine.branch(
                        item.reasons,
                        [lambda item=item: one(item.value, frame), lambda: True],  # type: ignore[misc]
                    )
                else:
                    falls = one(item, frame)
                if not falls:
                    return False
            return self.machine.execute(node.orelse, scope)

        return self._loop(rounds)

    def _while(self, node: ast.While, scope: Scope) -> bool:
        machine = self.machine

        def rounds(frame: Frame) -> bool:
            for _ in range(MOST_ROUNDS):
                truth = truth_of(machine, machine.evaluate(node.test, scope))
                if isinstance(truth, Unknown):
                    return self._blind(node, scope, truth.reasons, None)
                if not truth:
                    return machine.execute(node.orelse, scope)
                if not self._round(node.body, scope, frame):
                    return False
            return self._blind(node, scope, ("a long loop",), None)

        return self._loop(rounds)

    def _loop(self, rounds: Callable[[Frame], bool]) -> bool:
        machine = self.machine
        depth = machine.heap.push()
        frame = Frame(depth)
        machine.loops.append(frame)
        try:
            falls = rounds(frame)
        finally:
            machine.loops.pop()
        if not frame.breaks:
            machine.heap.commit(depth)
            return falls
        last = machine.heap.take(depth)
        deltas = [*([last] if falls else []), *(e.delta for e in frame.breaks)]
        machine.heap.join(deltas, frame.why)
        return True

    def _round(self, body: list[ast.stmt], scope: Scope, frame: Frame) -> bool:
        """Run one round; say whether another one follows."""
        heap = self.machine.heap
        frame.continues = []
        frame.continue_depth = depth = heap.push()
        falls = self.machine.execute(body, scope)
        if not frame.continues:
            heap.commit(depth)
            return falls
        last = heap.take(depth)
        deltas = [*([last] if falls else []), *(e.delta for e in frame.continues)]
        heap.join(deltas, frame.why)
        return True

    def _blind(
        self,
        node: ast.For | ast.While,
        scope: Scope,
        reasons: tuple[str, ...],
        target: ast.expr | None,
    ) -> bool:
        """Run a loop of unknown length: whatever its body writes is unknown after it."""
        machine = self.machine
        why = reasons or ("how often a loop runs",)

        def once() -> bool:
            if target is not None:
                self.bind(target, Unknown(why), scope)
            frame = Frame(machine.heap.push())
            frame.continue_depth = frame.depth
            machine.loops.append(frame)
            try:
                machine.execute(node.body, scope)
            finally:
                machine.loops.pop()
                written = [*machine.heap.delta(frame.depth)]
                written += [k for e in (*frame.breaks, *frame.continues) for k in e.delta]
                machine.heap.commit(frame.depth)
            for holder, slot in dict.fromkeys(written):
                if not isinstance(holder.slots.get(slot), Lazy):
                    machine.heap.store(holder, slot, Unknown(why))
            return True

        self._blind_depth += 1
        try:
            # An outer round runs the inner loops again, on what their first round wrote.
            for _ in range(2 if self._blind_depth == 1 else 1):
                machine.branch(why, [once, lambda: True])
        finally:
            self._blind_depth -= 1
        return True
