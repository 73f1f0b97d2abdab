"""Raising and catching."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from specmap.scan.launch.comparing import truth_of
from specmap.scan.launch.library import Library
from specmap.scan.launch.loops import Loops
from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import (
    Class,
    External,
    Raised,
    Scope,
    Unknown,
    merged,
)


class Raising(Loops):
    """Runs ``raise``, ``assert`` and ``try``: a raise under an unknown test may happen."""

    def __init__(
        self, machine: Machine, builtin: Callable[[str], object], library: Library
    ) -> None:
        super().__init__(machine, builtin)
        self.library = library
        self._handled: list[Raised] = []

    def _assert(self, node: ast.Assert, scope: Scope) -> bool:
        machine = self.machine
        truth = truth_of(machine, machine.evaluate(node.test, scope))
        if truth is True:
            return True
        text = self.library.text(node.test)
        message = f"assert {text}"
        if node.msg is not None:
            said = machine.evaluate(node.msg, scope)
            message = said if isinstance(said, str) else ast.unparse(node.msg)
        raised = Raised("AssertionError", message)
        raised.explicit = True
        raised.file, raised.line, raised.end_line = machine.here()
        word = "false" if truth is False else "unknown"
        raised.tests = (*machine.tests, (text, raised.file, raised.line, word))
        if truth is False:
            raise raised
        machine.may_stop(raised, merged(machine.why, truth.reasons))
        return True

    def _raise(self, node: ast.Raise, scope: Scope) -> bool:
        if node.exc is None and self._handled:
            raise self._handled[-1]
        raised = self._made(node.exc, scope) if node.exc else Raised("Exception", "raised again")
        raised.explicit = True
        raise raised

    def _made(self, exc: ast.expr, scope: Scope) -> Raised:
        call = exc if isinstance(exc, ast.Call) else None
        value = self.machine.evaluate(call.func if call else exc, scope)
        message = ""
        if call and call.args:
            said = self.machine.evaluate(call.args[0], scope)
            message = said if isinstance(said, str) else ast.unparse(call.args[0])
        if isinstance(value, Class):
            return Raised(value.name, message, value)
        if isinstance(value, External):
            return Raised(value.name.rpartition(".")[2], message)
        return Raised("Exception", message)

    def _try(self, node: ast.Try, scope: Scope) -> bool:
        machine = self.machine
        depth, hazards = machine.heap.push(), machine.hazards
        catches = not all(_raises_again(handler) for handler in node.handlers)
        machine.tries += catches
        frames = len(machine.calls), len(machine.loops)
        try:
            falls = machine.execute(node.body, scope)
        except Raised as raised:
            machine.heap.commit(depth)
            del machine.calls[frames[0] :], machine.loops[frames[1] :]
            machine.tries -= catches
            falls = self._handle(node, raised, scope)
        else:
            machine.tries -= catches
            if catches and machine.hazards > hazards:
                falls = self._both(node, depth, falls, scope)
            else:
                machine.heap.commit(depth)
                falls = falls and machine.execute(node.orelse, scope)
        return machine.execute(node.finalbody, scope) and falls

    def _both(self, node: ast.Try, depth: int, falls: bool, scope: Scope) -> bool:
        """The body may have raised anywhere: join its end with what the handlers do."""
        machine = self.machine
        written = machine.heap.take(depth)
        why = ("whether a call raises",)

        def normal() -> bool:
            machine.heap.apply(written)
            return falls and machine.execute(node.orelse, scope)

        def handler(item: ast.ExceptHandler) -> Callable[[], bool]:
            def run() -> bool:
                machine.heap.join([written, {}], why)
                if item.name:
                    machine.heap.store(scope, item.name, Unknown(why))
                return machine.execute(item.body, scope)

            return run

        noted = len(machine.stops)
        falls = machine.branch(why, [normal, *map(handler, node.handlers)])
        del machine.stops[noted:]
        return falls

    def _handle(self, node: ast.Try, raised: Raised, scope: Scope) -> bool:
        for handler in node.handlers:
            if self._catches(handler, raised, scope):
                if handler.name:
                    self.machine.heap.store(scope, handler.name, raised.message)
                self._handled.append(raised)
                try:
                    return self.machine.execute(handler.body, scope)
                finally:
                    self._handled.pop()
        self.machine.execute(node.finalbody, scope)
        raise raised

    def _catches(self, handler: ast.ExceptHandler, raised: Raised, scope: Scope) -> bool:
        if handler.type is None:
            return True
        value = self.machine.evaluate(handler.type, scope)
        for kind in value if isinstance(value, tuple) else (value,):
            if isinstance(kind, Class) and isinstance(raised.value, Class):
                if kind in raised.value.mro():
                    return True
            elif isinstance(kind, External):
                names = raised.value.outside() if isinstance(raised.value, Class) else [raised.kind]
                if any(_is_subclass(name, kind.name.rpartition(".")[2]) for name in names):
                    return True
        return False


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only adds something to what was raised."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _is_subclass(kind: str, base: str) -> bool:
    left, right = getattr(builtins, kind, None), getattr(builtins, base, None)
    if not (isinstance(left, type) and isinstance(right, type)):
        return kind == base or base in ("Exception", "BaseException")
    return issubclass(left, right)
