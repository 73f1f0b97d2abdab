"""Evaluation of expressions to arms."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from specmap.codemap.condition import (
    FALSE,
    TRUE,
    all_of,
    negate,
)
from specmap.scan.guards import Bound
from specmap.scan.memo import NEVER
from specmap.scan.module import FunctionInfo
from specmap.scan.values import (
    Arm,
    Arms,
    Const,
    EnumMember,
    External,
    FunctionRef,
    Opaque,
    Scope,
    Sequence,
    Table,
    Truth,
    Value,
    only,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

# A result cut short would be remembered for everybody: this only saves the stack.
_MAX_DEPTH = 1500


class Expressions:
    """Evaluates expressions of the tree; what cannot be told stays opaque text."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._depth = 0

    def evaluate(self, node: ast.expr, scope: Scope) -> Arms:
        """Return everything an expression can be."""
        if isinstance(node, ast.Name):
            found = self._resolver.names.name(node.id, scope)
            return self._settled(found, node, scope)
        known = scope.known
        if known is not None and node in known:
            return known[node]
        if self._depth > _MAX_DEPTH:
            return self.opaque(node, scope, "nested too deep")
        memo = self._resolver.memo
        outer, memo.lowest = memo.lowest, NEVER
        self._depth += 1
        try:
            method = _METHODS.get(type(node))
            found = method(self, node, scope) if method else ()
        finally:
            self._depth -= 1
            tentative = memo.lowest < NEVER
            memo.lowest = min(outer, memo.lowest)
        settled = self._settled(found, node, scope)
        if found and not tentative:
            if scope.known is None:
                scope.known = {}
            scope.known[node] = settled
        return settled

    def _settled(self, found: Arms, node: ast.expr, scope: Scope) -> Arms:
        """A value from outside remembers the expression it came from first."""
        if not found:
            return self.opaque(node, scope)
        for arm in found:
            if isinstance(arm.value, External) and arm.value.source is None:
                break
        else:
            return found
        if not hasattr(node, "lineno"):
            return found
        source = (scope.frame.module, node)
        return tuple(
            Arm(External(arm.value.name, source), arm.condition)
            if isinstance(arm.value, External) and arm.value.source is None
            else arm
            for arm in found
        )

    def opaque(self, node: ast.expr, scope: Scope, reason: str = "") -> Arms:
        """Return an expression as text that is decided elsewhere."""
        module = scope.frame.module
        text = module.text(node) if hasattr(node, "lineno") else ast.unparse(node)
        kind = self._resolver.kind_of(text)
        span = module.span(node)
        plugin = self._is_plugin(text)
        reason = reason or ("out-of-tree platform class" if plugin else "")
        return only(Opaque(text, kind, span, plugin, reason))

    def _is_plugin(self, text: str) -> bool:
        return any(root in text for root in self._resolver.vocabulary.plugins)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Arms:
        return self._resolver.access.attribute(node, scope)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Arms:
        return self._resolver.access.subscript(node, scope)

    def _constant(self, node: ast.Constant, scope: Scope) -> Arms:
        return only(Const(node.value))

    def _tuple(self, node: ast.Tuple | ast.List, scope: Scope) -> Arms:
        if any(isinstance(e, ast.Starred) for e in node.elts):
            plain = [e.value if isinstance(e, ast.Starred) else e for e in node.elts]
            return only(Sequence(None, unite(*(self.evaluate(e, scope) for e in plain))))
        items = tuple(self.evaluate(e, scope) for e in node.elts)
        return only(Sequence(items, grows=isinstance(node, ast.List)))

    def _set(self, node: ast.Set, scope: Scope) -> Arms:
        return only(Sequence(None, unite(*(self.evaluate(e, scope) for e in node.elts))))

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope) -> Arms:
        env = dict(scope.env)
        for generator in node.generators:
            inner = Scope(scope.frame, env, scope.facts)
            if isinstance(generator.target, ast.Name):
                env[generator.target.id] = Bound(generator.iter, inner, (None,))
        return only(Sequence(None, self.evaluate(node.elt, Scope(scope.frame, env, scope.facts))))

    def _dict(self, node: ast.Dict, scope: Scope) -> Arms:
        entries: list[tuple[object, Arms]] = []
        other: Arms = ()
        for key, value in zip(node.keys, node.values, strict=True):
            arms = self.evaluate(value, scope)
            if isinstance(key, ast.Constant):
                entries.append((key.value, arms))
            elif key is not None:
                other = unite(other, arms)
        return only(Table(tuple(entries), other))

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> Arms:
        return only(Table(()))

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Arms:
        return only(External("builtins.str()"))

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Arms:
        outer = scope.frame.function
        name = f"{outer.qualname}.<lambda>" if outer else "<lambda>"
        return only(FunctionRef(FunctionInfo(scope.frame.module, node, name), None, scope))

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Arms:
        return self.evaluate(node.value, scope)

    def _await(self, node: ast.Await, scope: Scope) -> Arms:
        return self.evaluate(node.value, scope)

    def _starred(self, node: ast.Starred, scope: Scope) -> Arms:
        return self.evaluate(node.value, scope)

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Arms:
        test = self._resolver.truths.truth(node.test, scope)
        groups = []
        if test != FALSE:
            groups.append(under(self.evaluate(node.body, scope), test))
        if test != TRUE:
            groups.append(under(self.evaluate(node.orelse, scope), negate(test)))
        return unite(*groups)

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Arms:
        groups: list[Arms] = []
        before = TRUE
        stops_on = isinstance(node.op, ast.Or)
        for index, part in enumerate(node.values):
            arms = under(self.evaluate(part, scope), before)
            if index == len(node.values) - 1:
                groups.append(arms)
                break
            holds = [(arm, self._resolver.truths.value_truth(arm.value)) for arm in arms]
            leaves = [
                Arm(a.value, all_of(a.condition, t if stops_on else negate(t))) for a, t in holds
            ]
            groups.append(tuple(leaves))
            truth = self._resolver.truths.truth(part, scope)
            before = all_of(before, negate(truth) if stops_on else truth)
            if before == FALSE:
                break
        found = unite(*groups)
        if any(_is_object(arm.value) for arm in found):
            return found
        if all(isinstance(arm.value, External) for arm in found):
            return found
        return only(Truth(self._resolver.truths.truth(node, scope)))

    def _compare(self, node: ast.Compare, scope: Scope) -> Arms:
        return only(Truth(self._resolver.comparisons.compare(node, scope)))

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Arms:
        if isinstance(node.op, ast.Not):
            return only(Truth(negate(self._resolver.truths.truth(node.operand, scope))))
        return self._arithmetic(self.evaluate(node.operand, scope))

    def _binop(self, node: ast.BinOp, scope: Scope) -> Arms:
        left = self.evaluate(node.left, scope)
        found = self._arithmetic(left) or self._arithmetic(self.evaluate(node.right, scope))
        if any(isinstance(arm.value, Sequence) for arm in left):
            return left
        return found

    def _arithmetic(self, arms: Arms) -> Arms:
        """Arithmetic on something external (a tensor, a number) stays external."""
        for arm in arms:
            if isinstance(arm.value, External):
                return only(External(arm.value.name))  # it is not the operand that is asked for
        return ()

    def _call(self, node: ast.Call, scope: Scope) -> Arms:
        return self._resolver.platform_test(node) or self._resolver.calls.result(node, scope)


_METHODS: dict[type[ast.expr], Callable[[Expressions, Any, Scope], Arms]] = {
    ast.Constant: Expressions._constant,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.Tuple: Expressions._tuple,
    ast.List: Expressions._tuple,
    ast.Set: Expressions._set,
    ast.ListComp: Expressions._listcomp,
    ast.GeneratorExp: Expressions._listcomp,
    ast.SetComp: Expressions._listcomp,
    ast.Dict: Expressions._dict,
    ast.DictComp: Expressions._dictcomp,
    ast.JoinedStr: Expressions._joinedstr,
    ast.Lambda: Expressions._lambda,
    ast.NamedExpr: Expressions._namedexpr,
    ast.Await: Expressions._await,
    ast.Starred: Expressions._starred,
    ast.IfExp: Expressions._ifexp,
    ast.BoolOp: Expressions._boolop,
    ast.Compare: Expressions._compare,
    ast.UnaryOp: Expressions._unaryop,
    ast.BinOp: Expressions._binop,
    ast.Call: Expressions._call,
}


def _is_object(value: Value) -> bool:
    """Whether something can be called or looked into, so that its arms matter."""
    return not isinstance(value, Truth | Const | Opaque | External | EnumMember)
