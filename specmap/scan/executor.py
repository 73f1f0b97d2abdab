"""One pass over a function body, in the order Python runs it.

The pass keeps what every local name is bound to (both arms after an ``if``) and the tests
that lead to each place, early returns included. Nothing is evaluated here: tests and
bindings keep their scope and are evaluated when somebody asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from specmap.scan.bodies import stored_by_call, stored_to
from specmap.scan.guards import (
    Binding,
    Bound,
    Choice,
    Execution,
    Exit,
    Imported,
    Known,
    Path,
    Return,
    Store,
    Test,
    Unseen,
    what_raises,
)
from specmap.scan.module import FunctionInfo
from specmap.scan.nodes import children, nodes_in
from specmap.scan.parse import collect_import
from specmap.scan.values import Facts, Frame, FunctionRef, Scope, only

_NO_FACTS: Facts = {}


class Executor:
    """Runs one body symbolically. The walker overrides the ``on_`` and ``decide`` hooks."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.result = Execution(frame)
        self._scope = Scope(frame)
        self._exits: list[Path] = []
        self._left_loop: list[list[tuple[Mapping[str, Binding], Path]]] = []

    @property
    def facts(self) -> Facts:
        """What is known about the batch at this point."""
        return _NO_FACTS

    def scope(self, env: Mapping[str, Binding]) -> Scope:
        """Return the scope for expressions evaluated now; one as long as nothing changed."""
        last, facts = self._scope, self.facts
        if last.env is not env or last.facts is not facts:
            self._scope = Scope(self.frame, env, facts)
        return self._scope

    def on_expression(self, node: ast.expr, scope: Scope, path: Path) -> None:
        """Note an expression that is evaluated at this point."""
        self.result.expressions.append((node, scope, path))

    def on_store(self, store: Store) -> None:
        """Note an attribute assignment."""
        self.result.stores.append(store)

    def on_return(self, item: Return, leaves: bool) -> None:
        """Note a ``return``, or a ``yield``, which does not leave the function."""
        self.result.returns.append(item)

    def on_enter(self, node: ast.expr, scope: Scope, path: Path) -> None:
        """Called where a ``with`` begins to run its block under what ``node`` is."""

    def maybe_ran(self, before: Facts, path: Path) -> None:
        """Called after code that may not have run: only if ``path`` was taken."""

    def decide(self, node: ast.expr, scope: Scope) -> bool | None:
        """Return the truth of a branch test when it is known; ``None`` keeps both arms."""
        return None

    def run(self, function: FunctionInfo) -> Execution:
        """Run the whole body."""
        self.block(function.body, {}, ())
        return self.result

    def block(
        self, body: list[ast.stmt], env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        """Run statements; the returned path is ``None`` when control cannot fall through."""
        current: Path | None = path
        for statement in body:
            if current is None:
                break
            env, current = self.statement(statement, env, current)
        return env, current

    def statement(
        self, node: ast.stmt, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        """Run one statement."""
        if isinstance(node, ast.If):
            return self._if(node, env, path)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            return self._loop(node, env, path)
        if isinstance(node, ast.With | ast.AsyncWith):
            return self._with(node, env, path)
        if isinstance(node, ast.Try | ast.TryStar):
            return self._try(node, env, path)
        if isinstance(node, ast.Match):
            return self._match(node, env, path)
        return self._simple(node, env, path)

    def _simple(
        self, node: ast.stmt, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        scope = self.scope(env)
        if isinstance(node, ast.Assign):
            self.on_expression(node.value, scope, path)
            for target in node.targets:
                env = self._bind(target, node.value, scope, path, env, ())
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.on_expression(node.value, scope, path)
            note = node.annotation
            if isinstance(node.target, ast.Attribute):
                self.on_store(Store(node.target, node.value, scope, path, annotation=note))
            elif isinstance(node.target, ast.Name):
                env = {**env, node.target.id: Bound(node.value, scope, annotation=note)}
        elif isinstance(node, ast.AugAssign):
            value = ast.copy_location(_as_binary(node), node)
            self.on_expression(value, scope, path)
            env = self._bind(node.target, value, scope, path, env, ())
        elif isinstance(node, ast.Delete):
            # What is taken away is as good as None: who asks for it goes without.
            gone = ast.copy_location(ast.Constant(None), node)
            for target in filter(None, map(stored_to, node.targets)):
                self.on_store(Store(target, gone, scope, path))
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self.on_expression(node.value, scope, path)
            self.on_return(Return(node.value, scope, path), True)
            self._exits.append(path)
            return env, None
        elif isinstance(node, ast.Raise):
            self.result.raises = True
            for part in (node.exc, node.cause):
                if part is not None:
                    self.on_expression(part, scope, path)
            self._exits.append(path)
            return env, None
        elif isinstance(node, ast.Expr):
            self._effect(node.value, scope, path)
        elif isinstance(node, ast.Assert):
            self.on_expression(node.test, scope, path)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            env = self._define(node, env)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found: dict[str, tuple[str, str | None]] = {}
            collect_import(self.frame.module, node, found)
            env = {**env, **{name: Imported(*target) for name, target in found.items()}}
        elif isinstance(node, ast.Global):
            above = Scope(Frame(None, self.frame.module))
            names = {name: ast.copy_location(ast.Name(name), node) for name in node.names}
            env = {**env, **{name: Bound(read, above) for name, read in names.items()}}
        elif isinstance(node, ast.Break | ast.Continue):
            if self._left_loop:
                self._left_loop[-1].append((env, path))
            return env, None
        return self._walrus(node, scope, path, env), path

    def _effect(self, value: ast.expr, scope: Scope, path: Path) -> None:
        """An expression statement: a call, a ``yield``, an ``x.attr.append(...)``."""
        self.on_expression(value, scope, path)
        if isinstance(value, ast.Yield):
            self.on_return(Return(value.value, scope, path), False)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            target = value.func.value
            if value.func.attr == "append" and isinstance(target, ast.Attribute) and value.args:
                self.on_store(Store(target, value.args[0], scope, path, item=True))
        stored = stored_by_call(value)
        if stored is not None:
            self.on_store(Store(*stored, scope, path))

    def _walrus(
        self, node: ast.stmt | ast.expr, scope: Scope, path: Path, env: Mapping[str, Binding]
    ) -> Mapping[str, Binding]:
        function = self.frame.function
        if function is None or not function.facts.has_walrus:
            return env
        for inner in _expressions(node):
            for part in nodes_in(inner):
                if isinstance(part, ast.NamedExpr):
                    env = self._bind(part.target, part.value, scope, path, env, ())
        return env

    def _define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Mapping[str, Binding]
    ) -> Mapping[str, Binding]:
        """A nested function closes over the names so far, its own among them."""
        outer = self.frame.function
        name = f"{outer.qualname}.{node.name}" if outer else node.name
        info = FunctionInfo(self.frame.module, node, name, None)
        inner = dict(env)
        inner[node.name] = Known(only(FunctionRef(info, None, self.scope(inner))))
        return inner

    def _bind(
        self,
        target: ast.expr,
        value: ast.expr,
        scope: Scope,
        path: Path,
        env: Mapping[str, Binding],
        index: tuple[int | None, ...],
    ) -> Mapping[str, Binding]:
        target = stored_to(target) or target
        if isinstance(target, ast.Name):
            return {**env, target.id: Bound(value, scope, index)}
        if isinstance(target, ast.Tuple | ast.List):
            for position, item in enumerate(target.elts):
                env = self._bind_item(item, position, value, scope, path, env, index)
        elif isinstance(target, ast.Attribute):
            self.on_store(Store(target, value, scope, path, index))
        elif isinstance(target, ast.Subscript):
            self.on_expression(target.slice, scope, path)
            if isinstance(target.value, ast.Attribute):
                store = Store(target.value, value, scope, path, index, True, target.slice)
                self.on_store(store)
        elif isinstance(target, ast.Starred):
            return self._bind(target.value, value, scope, path, env, (*index, None))
        return env

    def _bind_item(
        self,
        item: ast.expr,
        position: int,
        value: ast.expr,
        scope: Scope,
        path: Path,
        env: Mapping[str, Binding],
        index: tuple[int | None, ...],
    ) -> Mapping[str, Binding]:
        """Bind one name of a tuple target; a tuple literal is taken apart at once."""
        if isinstance(value, ast.Tuple) and not index and position < len(value.elts):
            if not any(isinstance(e, ast.Starred) for e in value.elts):
                return self._bind(item, value.elts[position], scope, path, env, ())
        return self._bind(item, value, scope, path, env, (*index, position))

    def _if(
        self, node: ast.If, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        scope = self.scope(env)
        self.on_expression(node.test, scope, path)
        env = self._walrus(node.test, scope, path, env)
        truth = self.decide(node.test, scope)
        if truth is not None:
            return self._decided(node, truth, scope, env, path)
        before = len(self._exits)
        then_path = (*path, Test(node.test, scope, True))
        else_path = (*path, Test(node.test, scope, False))
        then_env, then_end = self.block(node.body, env, then_path)
        self.between_arms(then_end is not None)
        else_env, else_end = self.block(node.orelse, env, else_path)
        self.after_arms(then_end is not None, else_end is not None)
        if then_end is None and else_end is None:
            return env, None
        if then_end is None:
            return else_env, else_end
        if else_end is None:
            return then_env, then_end
        exits = [Exit(p[len(path) :]) for p in self._exits[before:]]
        merged = self._merge(env, then_env, else_env, then_path[len(path) :])
        return merged, (*path, *exits)

    def _decided(
        self, node: ast.If, truth: bool, scope: Scope, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        """Run the only arm that can be taken; its test stays on the path as a guard."""
        taken, other = (node.body, node.orelse) if truth else (node.orelse, node.body)
        inner = (*path, Test(node.test, scope, truth))
        env, end = self.block(taken, env, inner)
        if end is None:
            return env, None
        leaves = bool(other) and isinstance(other[-1], ast.Return | ast.Raise)
        return env, inner if leaves else path

    def between_arms(self, falls_through: bool) -> None:
        """Called between the arms of an undecided ``if``."""

    def after_arms(self, then_falls: bool, else_falls: bool) -> None:
        """Called after both arms of an undecided ``if``."""

    def _merge(
        self,
        before: Mapping[str, Binding],
        then: Mapping[str, Binding],
        other: Mapping[str, Binding],
        path: Path,
    ) -> Mapping[str, Binding]:
        if then is before and other is before:
            return before
        merged: dict[str, Binding] = {}
        for name in {**then, **other}:
            left, right = then.get(name), other.get(name)
            same = left if left is right else Choice(path, left, right)
            if same is not None:
                merged[name] = same
        return merged

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        scope = self.scope(env)
        before = env
        if isinstance(node, ast.While):
            self.on_expression(node.test, scope, path)
            inner_path: Path = (*path, Test(node.test, scope, True))
            env = self._walrus(node.test, scope, path, env)
        else:
            self.on_expression(node.iter, scope, path)
            env = self._bind(node.target, node.iter, scope, path, env, (None,))
            inner_path = (*path, Unseen(node.iter, scope, "the loop runs"))
        self._left_loop.append([])
        facts = self.facts
        inner_env, end = self.block(node.body, env, inner_path)
        # It ran if its test held, or if there was something to go through.
        head = node.test if isinstance(node, ast.While) else node.iter
        ran: Path = (Unseen(head, scope, self.frame.module.text(head)),)
        self.maybe_ran(facts, ran)
        merged = before if end is None else self._merge(before, inner_env, before, ran)
        for leaving, at in self._left_loop.pop():
            merged = self._merge(before, leaving, merged, (*ran, *at[len(inner_path) :]))
        return self.block(node.orelse, merged, path)

    def _with(
        self, node: ast.With | ast.AsyncWith, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        for item in node.items:
            scope = self.scope(env)
            self.on_expression(item.context_expr, scope, path)
            env = self._walrus(item.context_expr, scope, path, env)
            if item.optional_vars is not None:
                env = self._bind(item.optional_vars, item.context_expr, scope, path, env, ())
            self.on_enter(item.context_expr, self.scope(env), path)
        return self.block(node.body, env, path)

    def _try(
        self, node: ast.Try | ast.TryStar, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        scope = self.scope(env)
        body_env, end = self.block([*node.body, *node.orelse], env, path)
        merged, merged_end = body_env, end
        for handler in node.handlers:
            caught = Unseen(handler, scope, what_raises(node, handler))
            facts = self.facts
            handler_env, handler_end = self.block(handler.body, env, (*path, caught))
            self.maybe_ran(facts, (caught,))
            if handler_end is not None:
                merged = self._merge(env, handler_env, merged, (caught,))
                merged_end = path if merged_end is None else merged_end
        final_env, final_end = self.block(node.finalbody, merged, path)
        return final_env, (None if final_end is None else merged_end)

    def _match(
        self, node: ast.Match, env: Mapping[str, Binding], path: Path
    ) -> tuple[Mapping[str, Binding], Path | None]:
        scope = self.scope(env)
        self.on_expression(node.subject, scope, path)
        merged = env
        for case in node.cases:
            text = f"match {self.frame.module.text(node.subject)}"
            taken = Unseen(case.pattern, scope, text)
            facts = self.facts
            case_env, end = self.block(case.body, env, (*path, taken))
            self.maybe_ran(facts, (taken,))
            if end is not None:
                merged = self._merge(env, case_env, merged, (taken,))
        return merged, path


def _as_binary(node: ast.AugAssign) -> ast.BinOp:
    left = ast.copy_location(_as_load(node.target), node.target)
    return ast.BinOp(left, node.op, node.value)


def _as_load(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(node.value, node.attr, ast.Load())
    assert isinstance(node, ast.Subscript)
    return ast.Subscript(node.value, node.slice, ast.Load())


def _expressions(node: ast.stmt | ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.expr):
        yield node
        return
    for child in children(node):
        if isinstance(child, ast.expr):
            yield child
