"""Executing statements, with both arms joined where a test is not known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from specmap.scan.launch.comparing import truth_of
from specmap.scan.launch.library import Library
from specmap.scan.launch.machine import Machine
from specmap.scan.launch.narrowing import narrow
from specmap.scan.launch.raising import Raising
from specmap.scan.launch.values import (
    Box,
    Instance,
    Raised,
    Scope,
    Unknown,
)


class Statements(Raising):
    """The executor of statements of one machine. Calls rooted in ``ignored`` only say something."""

    def __init__(
        self,
        machine: Machine,
        library: Library,
        builtin: Callable[[str], object],
        ignored: frozenset[str],
    ) -> None:
        super().__init__(machine, builtin, library)
        self.ignored = ignored
        machine.execute = self.execute
        self._table: dict[type[ast.stmt], Callable[..., bool]] = {
            ast.Expr: self._expression,
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.If: self._if,
            ast.For: self._for,
            ast.While: self._while,
            ast.Try: self._try,
            ast.With: self._with,
            ast.Return: self._return,
            ast.Raise: self._raise,
            ast.Assert: self._assert,
            ast.Break: self._break,
            ast.Continue: self._continue,
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.FunctionDef: self._function,
            ast.ClassDef: self._class,
            ast.Delete: self._delete,
            ast.Nonlocal: self._outer,
            ast.Global: self._outer,
            ast.Pass: lambda node, scope: True,
        }

    def execute(self, body: Sequence[ast.stmt], scope: Scope) -> bool:
        """Run statements and say whether control falls out of their end.

        Raises:
            Raised: they raise, whatever the unknown facts are.
        """
        machine = self.machine
        for node in body:
            machine.tick()
            outer, machine.line = machine.line, node
            try:
                handler = self._table.get(type(node))
                falls = handler(node, scope) if handler else self._unsupported(node, scope)
            except Raised as raised:
                if not raised.line:
                    raised.file, raised.line, raised.end_line = machine.here()
                    raised.tests = machine.tests
                raise
            finally:
                machine.line = outer
            if not falls:
                return False
        return True

    def _unsupported(self, node: ast.stmt, scope: Scope) -> bool:
        reason = self.machine.unsupported(type(node).__name__).reasons
        self.machine.spoil([self.machine.record], reason[0])
        return True

    def _expression(self, node: ast.Expr, scope: Scope) -> bool:
        if isinstance(node.value, ast.Constant):
            return True
        if isinstance(node.value, ast.Call) and _root(node.value.func) in self.ignored:
            return True
        self.machine.evaluate(node.value, scope)
        return True

    def _assign(self, node: ast.Assign, scope: Scope) -> bool:
        value = self.machine.evaluate(node.value, scope)
        for target in node.targets:
            self.bind(target, value, scope)
        return True

    def _annotated(self, node: ast.AnnAssign, scope: Scope) -> bool:
        if node.value is not None:
            self.bind(node.target, self.machine.evaluate(node.value, scope), scope)
        return True

    def _augmented(self, node: ast.AugAssign, scope: Scope) -> bool:
        target = node.target
        now = self.machine.evaluate(_as_load(target), scope)
        if isinstance(now, Box) and now.kind == "list" and isinstance(node.op, ast.Add):
            more = self.machine.evaluate(node.value, scope)
            self.machine.invoke(self.machine.attribute(now, "extend"), [more], {})
            self.bind(target, now, scope)
            return True
        change = ast.BinOp(_as_load(target), node.op, node.value)
        ast.copy_location(change, node)
        self.bind(target, self.machine.evaluate(change, scope), scope)
        return True

    def _delete(self, node: ast.Delete, scope: Scope) -> bool:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                container = self.machine.evaluate(target.value, scope)
                key = self.machine.evaluate(target.slice, scope)
                self.machine.invoke(self.machine.attribute(container, "pop"), [key, None], {})
        return True

    def _if(self, node: ast.If, scope: Scope) -> bool:
        machine = self.machine
        machine.line = node.test
        truth = truth_of(machine, machine.evaluate(node.test, scope))
        outer = machine.tests
        file, line, _ = machine.here()
        text = self.library.text(node.test)
        try:
            if not isinstance(truth, Unknown):
                machine.tests = (*outer, (text, file, line, "true" if truth else "false"))
                return machine.execute(node.body if truth else node.orelse, scope)

            def arm(body: list[ast.stmt], holds: bool) -> Callable[[], bool]:
                def run() -> bool:
                    word = "unknown, taken as true" if holds else "unknown, taken as false"
                    machine.tests = (*outer, (text, file, line, word))
                    narrow(machine, node.test, scope, holds)
                    return machine.execute(body, scope)

                return run

            return machine.branch(truth.reasons, [arm(node.body, True), arm(node.orelse, False)])
        finally:
            machine.tests = outer

    def _return(self, node: ast.Return, scope: Scope) -> bool:
        value = self.machine.evaluate(node.value, scope) if node.value else None
        frame = self.machine.calls[-1]
        return self._leave(frame, frame.returns, frame.depth, value)

    def _with(self, node: ast.With, scope: Scope) -> bool:
        for item in node.items:
            value = self.machine.evaluate(item.context_expr, scope)
            if item.optional_vars is not None:
                kept = value if isinstance(value, Instance) else self.machine.unknown("a context")
                self.bind(item.optional_vars, kept, scope)
        return self.machine.execute(node.body, scope)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> bool:
        self.machine.import_names(node, scope)
        return True

    def _function(self, node: ast.FunctionDef, scope: Scope) -> bool:
        self.machine.heap.store(scope, node.name, self.machine.define(node, scope, None))
        return True

    def _class(self, node: ast.ClassDef, scope: Scope) -> bool:
        self.machine.heap.store(scope, node.name, self.machine.build_class(node, scope))
        return True

    def _outer(self, node: ast.Nonlocal | ast.Global, scope: Scope) -> bool:
        scope.nonlocals |= frozenset(node.names)
        return True


def _as_load(target: ast.expr) -> ast.expr:
    """Return the target of ``x += 1`` as an expression; evaluating ignores the context."""
    return target


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""
