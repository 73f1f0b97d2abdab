"""How a walk runs one body: calls in order, and the tests that the walk can settle."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from specmap.codemap.condition import FALSE, TRUE, Condition
from specmap.scan import windows
from specmap.scan.executor import Executor
from specmap.scan.guards import Binding, Bound, Execution, Path, Return, Store, Test
from specmap.scan.managers import Manager
from specmap.scan.modefacts import either_mode, in_worker, is_idle
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.nodes import children
from specmap.scan.values import Facts, Scope, Value
from specmap.scan.walked import Activation, Seen

if TYPE_CHECKING:
    from specmap.scan.walk import Walk

_CALL_NOTHING = frozenset({ast.Name, ast.Constant, ast.Lambda})
# ``stack.enter_context(manager)``: what the block of the stack ends.
_ENTERS = "enter_context"
_EVALUATED = (ast.expr, ast.keyword, ast.Slice, ast.FormattedValue)


class WalkExecutor(Executor):
    """Runs a body for a walk: visits calls in order and settles tests it can settle."""

    def __init__(self, walk: Walk, activation: Activation) -> None:
        super().__init__(activation.frame)
        self._walk = walk
        self._activation = activation
        self._saved: list[Facts] = []
        self._before: list[Facts] = []
        self._made: list[Mapping[str, int]] = []
        self._tests: list[tuple[ast.expr, Scope]] = []
        # What holds where the body is left, and where it yields.
        self._ends: list[tuple[Path, Facts]] = []
        self._yields: list[tuple[Path, Facts]] = []
        # The managers of each ``with`` whose block is open, with what held before and inside.
        self._blocks: list[list[tuple[Manager, Facts, Facts]]] = []

    @property
    def facts(self) -> Facts:
        """What the walk knows now."""
        return self._walk.facts

    def decide(self, node: ast.expr, scope: Scope) -> bool | None:
        """Return the truth of a test that the mode, the platform or a constant settles."""
        truth = self._truth(node, scope)
        if truth in (TRUE, FALSE):
            return truth == TRUE
        self._saved.append(self._walk.facts)
        self._before.append(self._walk.facts)
        self._made.append(self._walk.made)
        self._tests.append((node, scope))
        return None

    def _truth(self, node: ast.expr, scope: Scope) -> Condition | None:
        """A test's condition; in detail code only a bare flag (``_is_hip``) is worth it."""
        bare = node.operand if isinstance(node, ast.UnaryOp) else node
        if self._walk.in_detail and not isinstance(bare, ast.Name):
            return None
        return self._walk.resolver.truth(node, scope)

    def between_arms(self, falls_through: bool) -> None:
        """Go back to what was known before the first arm."""
        after_then = self._walk.facts if falls_through else None
        before = self._saved[-1]
        self._saved[-1] = before if after_then is None else after_then
        self._walk.facts = before
        earlier, made = self._made[-1], self._walk.made
        self._made[-1] = {key: n for key, n in made.items() if n != earlier.get(key)}

    def after_arms(self, then_falls: bool, else_falls: bool) -> None:
        """Keep what the arm that falls through knows.

        Of two, the mode of a batch that was made there, else the one that leaves the rank
        something to do: the walk is about that batch.
        """
        after_then, before, made = self._saved.pop(), self._before.pop(), self._made.pop()
        test = self._tests.pop()
        if then_falls and not else_falls:
            self._walk.facts = after_then
        elif then_falls:
            if changes := windows.difference(self._walk.facts, after_then):
                holds = self._walk.resolver.truth(*test)
                self._walk.facts = windows.changed(self._walk.facts, changes, holds)
            for key, value in after_then.items():
                now, earlier = self._walk.facts.get(key), before.get(key)
                own = key in made and now == earlier and not self._is_idle(value)
                if own or (self._is_idle(now) and not self._is_idle(earlier)):
                    self._walk.facts = {**self._walk.facts, key: value}
                elif self._parts(key, now, value):
                    assert now is not None
                    mode = either_mode(value, now, self._walk.resolver.truth(*test))
                    self._walk.facts = {**self._walk.facts, key: mode}

    def _parts(self, key: object, now: Value | None, value: Value) -> bool:
        """Whether two arms of a worker leave a batch in two modes, both something to do."""
        if not isinstance(key, str) or key.startswith(".") or now is None or now == value:
            return False
        if not in_worker(self._walk.resolver, self._activation.function.module):
            return False
        return not self._is_idle(now) and not self._is_idle(value)

    def maybe_ran(self, before: Facts, path: Path) -> None:
        """Of attributes: what held before still does where the code did not run."""
        if windows.difference(before, self._walk.facts):
            ran = self._walk.resolver.truths.taken(path)
            self._walk.facts = windows.maybe(before, self._walk.facts, ran)

    def _is_idle(self, value: Value | None) -> bool:
        return is_idle(self._walk.resolver, value)

    def on_expression(self, node: ast.expr, scope: Scope, path: Path) -> None:
        """Note an expression with the passes before it, and visit its calls."""
        super().on_expression(node, scope, path)
        self._activation.seen.append(Seen(node, scope, path, len(self._walk.hits)))
        self._visit(node, scope, path)

    def run(self, function: FunctionInfo) -> Execution:
        """Run the whole body; what it stores to attributes depends on where it is left."""
        _, end = self.block(function.body, {}, ())
        if end is not None:
            self._ends.append((end, self._walk.facts))
        self._walk.yielded = self._at(self._yields)
        self._walk.facts = self._at(self._ends)
        return self.result

    def _at(self, ends: list[tuple[Path, Facts]]) -> Facts:
        facts = self._walk.facts
        if not any(windows.is_known(known) for known in (facts, *(known for _, known in ends))):
            return facts
        condition = self._walk.resolver.truths.taken
        ways = [(condition(path), known) for path, known in ends]
        return windows.either(facts, ways) if ways else facts

    def on_return(self, item: Return, leaves: bool) -> None:
        """Note a way out, with what holds after the blocks that it leaves."""
        super().on_return(item, leaves)
        facts = self._walk.facts
        if leaves:
            for block in reversed(self._blocks):
                facts = _left(facts, block)
        (self._ends if leaves else self._yields).append((item.path, facts))

    def on_enter(self, node: ast.expr, scope: Scope, path: Path) -> None:
        """Begin what the context managers do that ``node`` can be."""
        for manager in self._walk.managers.entered(node, scope, path, self._activation):
            before = self._walk.facts
            self._walk.facts = windows.changed(before, manager.begin, manager.when)
            self._blocks[-1].append((manager, before, self._walk.facts))

    def _with(
        self, node: ast.With | ast.AsyncWith, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        """Run a block, and then what its context managers do at its end."""
        self._blocks.append([])
        found = super()._with(node, env, path)
        self._walk.facts = _left(self._walk.facts, self._blocks.pop())
        return found

    def _try(
        self, node: ast.Try | ast.TryStar, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        """Run a ``try``; who returns inside goes through its ``finally``, too."""
        before = len(self._ends)
        found = super()._try(node, env, path)
        if node.finalbody:
            now = [(TRUE, self._walk.facts)]
            ends = self._ends[before:]
            self._ends[before:] = [(at, windows.either(known, now)) for at, known in ends]
        return found

    def on_store(self, store: Store) -> None:
        """Note a store; it may set a forward mode."""
        super().on_store(store)
        self._walk.store(store)

    def _visit(self, node: ast.AST, scope: Scope, path: Path) -> None:
        if type(node) in _CALL_NOTHING:
            return
        if isinstance(node, ast.BoolOp):
            self._visit_boolean(node, scope, path)
        elif isinstance(node, ast.IfExp):
            self._visit_choice(node, scope, path)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            self._visit_comprehension(node, scope, path)
        else:
            for child in children(node):
                if isinstance(child, _EVALUATED):
                    self._visit(child, scope, path)
            if isinstance(node, ast.Call):
                self._walk.call(node, self._current(scope), path, self._activation)
                if last_name(node) == _ENTERS and self._blocks and node.args:
                    self.on_enter(node.args[0], scope, path)

    def _current(self, scope: Scope) -> Scope:
        """The scope with the modes as they are now: an argument's call may have set one."""
        if scope.facts is self._walk.facts:
            return scope
        return Scope(scope.frame, scope.env, self._walk.facts)

    def _visit_boolean(self, node: ast.BoolOp, scope: Scope, path: Path) -> None:
        goes_on = isinstance(node.op, ast.And)
        stop = FALSE if goes_on else TRUE
        first = len(path)
        for value in node.values:
            before = self._walk.facts
            self._visit(value, scope, path)
            self.maybe_ran(before, path[first:])
            if self._truth(value, scope) == stop:
                return
            path = (*path, Test(value, scope, goes_on))

    def _visit_choice(self, node: ast.IfExp, scope: Scope, path: Path) -> None:
        self._visit(node.test, scope, path)
        truth = self._truth(node.test, scope)
        for part, branch in ((node.body, True), (node.orelse, False)):
            if truth != (FALSE if branch else TRUE):
                before, taken = self._walk.facts, Test(node.test, scope, branch)
                self._visit(part, scope, (*path, taken))
                self.maybe_ran(before, (taken,))

    def _visit_comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        scope: Scope,
        path: Path,
    ) -> None:
        env = dict(scope.env)
        for generator in node.generators:
            outer = Scope(scope.frame, env, scope.facts)
            self._visit(generator.iter, outer, path)
            if isinstance(generator.target, ast.Name):
                env[generator.target.id] = Bound(generator.iter, outer, (None,))
        inner = Scope(scope.frame, env, scope.facts)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in parts:
            self._visit(part, inner, path)


def _left(facts: Facts, block: list[tuple[Manager, Facts, Facts]]) -> Facts:
    """Return what is known after a block, where its context managers have ended."""
    for manager, before, inside in reversed(block):
        facts = windows.ended(facts, manager.end, manager.when, before, inside)
    return facts
