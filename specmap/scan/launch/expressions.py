"""Evaluating expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from specmap.scan.launch.comparing import compare, truth_of
from specmap.scan.launch.machine import Machine
from specmap.scan.launch.operators import binary, unary
from specmap.scan.launch.values import (
    Box,
    Choice,
    Function,
    Maybe,
    Module,
    Scope,
    Unknown,
    is_known,
    merged,
    reasons_of,
)


class Expressions:
    """The evaluator of expressions of one machine."""

    def __init__(self, machine: Machine, builtin: Callable[[str], object]) -> None:
        self.machine = machine
        self.builtin = builtin
        machine.evaluate = self.evaluate
        self._table: dict[type[ast.expr], Callable[..., object]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Call: self._call,
            ast.BoolOp: self._boolean,
            ast.IfExp: self._conditional,
            ast.Compare: self._compare,
            ast.BinOp: self._binary,
            ast.UnaryOp: self._unary,
            ast.Subscript: self._subscript,
            ast.List: self._list,
            ast.Tuple: self._tuple,
            ast.Set: self._set,
            ast.Dict: self._dict,
            ast.JoinedStr: self._joined,
            ast.FormattedValue: self._formatted,
            ast.Lambda: self._lambda,
            ast.NamedExpr: self._named,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.Slice: self._slice,
        }

    def evaluate(self, node: ast.expr, scope: Scope) -> object:
        """Return the value of an expression.

        Raises:
            Raised: evaluating it raises, whatever the unknown facts are.
        """
        self.machine.tick()
        handler = self._table.get(type(node))
        if handler is None:
            return self.machine.unsupported(type(node).__name__)
        return handler(node, scope)

    def _constant(self, node: ast.Constant, scope: Scope) -> object:
        return node.value

    def _name(self, node: ast.Name, scope: Scope) -> object:
        current: Scope | None = scope
        while current is not None:
            if node.id in current.slots:
                return self.machine.read(current, node.id)
            if isinstance(current, Module):
                if any(True for _ in current.stars):
                    found = self.machine.member(current, node.id)
                    if not isinstance(found, Unknown):
                        return found
                break
            current = current.parent
        return self.builtin(node.id)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> object:
        return self.machine.attribute(self.evaluate(node.value, scope), node.attr)

    def _call(self, node: ast.Call, scope: Scope) -> object:
        function = self.evaluate(node.func, scope)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return self._super(scope)
        positional: list[object] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                value = self.evaluate(argument.value, scope)
                items = self.machine.content(value) if isinstance(value, Box) else value
                if not isinstance(items, tuple) or any(isinstance(i, Maybe) for i in items):
                    return self._blind_call(node, scope, positional)
                positional += items
            else:
                positional.append(self.evaluate(argument, scope))
        keywords: dict[str, object] = {}
        sites: dict[object, tuple[str, int, int]] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, scope)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
                continue
            content = self.machine.content(value) if isinstance(value, Box) else value
            if not isinstance(content, dict):
                return self._blind_call(node, scope, [*positional, *keywords.values(), value])
            if any(isinstance(v, Maybe) for v in content.values()) and not self._declares(function):
                return self._blind_call(node, scope, [*positional, value])
            keywords.update({str(key): item for key, item in content.items()})
            if isinstance(value, Box):
                sites.update(value.sites)
        if not sites:
            return self.machine.invoke(function, positional, keywords)
        outer, self.machine.sites = self.machine.sites, sites
        try:
            return self.machine.invoke(function, positional, keywords)
        finally:
            self.machine.sites = outer

    def _declares(self, function: object) -> bool:
        return isinstance(function, Function) and self.machine.is_replaced(function.name)

    def _blind_call(self, node: ast.Call, scope: Scope, values: list[object]) -> Unknown:
        self.machine.spoil(values, f"{ast.unparse(node.func)}() with arguments not known")
        return self.machine.unsupported("a call with arguments not known")

    def _super(self, scope: Scope) -> object:
        current: Scope | None = scope
        while current is not None and "__class__" not in current.slots:
            current = current.parent
        if current is None:
            return self.machine.unsupported("super()")
        owner, receiver = current.slots["__class__"], current.slots.get("__self__")
        return self.machine.invoke(self.builtin("super"), [owner, receiver], {})

    def _boolean(self, node: ast.BoolOp, scope: Scope) -> object:
        return self._operands(node.values, isinstance(node.op, ast.And), scope)

    def _operands(self, values: Sequence[ast.expr], is_and: bool, scope: Scope) -> object:
        value = self.evaluate(values[0], scope)
        if len(values) == 1:
            return value
        truth = truth_of(self.machine, value)
        if not isinstance(truth, Unknown):
            return self._operands(values[1:], is_and, scope) if truth is is_and else value
        stays = not is_and if _is_test(values[0]) else self._narrowed(value, not is_and)
        return self.machine.branch_value(
            truth.reasons,
            [lambda: stays, lambda: self._operands(values[1:], is_and, scope)],
        )

    def _narrowed(self, value: object, truth: bool) -> object:
        """Return what a value can be where its truth is known."""
        if isinstance(value, Choice):
            kept = [v for v in value.values if truth_of(self.machine, v) is truth]
            if kept:
                return self.machine.heap.join_values(kept, value.reasons)
        return value

    def _conditional(self, node: ast.IfExp, scope: Scope) -> object:
        truth = truth_of(self.machine, self.evaluate(node.test, scope))
        if isinstance(truth, Unknown):
            return self.machine.branch_value(
                truth.reasons,
                [
                    lambda: self.evaluate(node.body, scope),
                    lambda: self.evaluate(node.orelse, scope),
                ],
            )
        return self.evaluate(node.body if truth else node.orelse, scope)

    def _compare(self, node: ast.Compare, scope: Scope) -> object:
        left = self.evaluate(node.left, scope)
        results: list[object] = []
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator, scope)
            result = compare(self.machine, operator, left, right)
            if result is False:
                return False
            results.append(result)
            left = right
        unsure = [result for result in results if not isinstance(result, bool)]
        if not unsure:
            return True
        return unsure[0] if len(results) == 1 else Unknown(merged(*map(reasons_of, unsure)))

    def _binary(self, node: ast.BinOp, scope: Scope) -> object:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        return binary(self.machine, node.op, left, right)

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> object:
        value = self.evaluate(node.operand, scope)
        if isinstance(node.op, ast.Not):
            truth = truth_of(self.machine, value)
            return Unknown(truth.reasons) if isinstance(truth, Unknown) else not truth
        return unary(self.machine, node.op, value)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> object:
        container = self.evaluate(node.value, scope)
        key = self.evaluate(node.slice, scope)
        return self.machine.invoke(self.builtin("__getitem__"), [container, key], {})

    def _slice(self, node: ast.Slice, scope: Scope) -> object:
        parts = [self.evaluate(p, scope) if p else None for p in (node.lower, node.upper)]
        step = self.evaluate(node.step, scope) if node.step else None
        if not all(is_known(p) for p in (*parts, step)):
            return Unknown(merged(*map(reasons_of, (*parts, step))))
        return slice(parts[0], parts[1], step)

    def _elements(self, nodes: Sequence[ast.expr], scope: Scope) -> tuple[object, ...] | Unknown:
        found: list[object] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                found.append(self.evaluate(node, scope))
                continue
            value = self.evaluate(node.value, scope)
            items = self.machine.content(value) if isinstance(value, Box) else value
            if isinstance(items, frozenset | dict | range):
                items = tuple(items)
            if not isinstance(items, tuple):
                return Unknown(reasons_of(items))
            found += items
        return tuple(found)

    def _list(self, node: ast.List, scope: Scope) -> object:
        return self.machine.box("list", self._elements(node.elts, scope))

    def _tuple(self, node: ast.Tuple, scope: Scope) -> object:
        items = self._elements(node.elts, scope)
        if isinstance(items, tuple) and any(isinstance(item, Maybe) for item in items):
            return Unknown(reasons_of(items))
        return items

    def _set(self, node: ast.Set, scope: Scope) -> object:
        return self._as_set(self._elements(node.elts, scope))

    def _as_set(self, items: tuple[object, ...] | Unknown) -> Box:
        if isinstance(items, tuple):
            if all(map(is_known, items)):
                return self.machine.box("set", frozenset(items))
            items = Unknown(reasons_of(items))
        return self.machine.box("set", items)

    def _dict(self, node: ast.Dict, scope: Scope) -> object:
        content: dict[object, object] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.evaluate(value_node, scope)
            if key_node is not None:
                key = self.evaluate(key_node, scope)
                if not is_known(key):
                    return self.machine.box("dict", Unknown(reasons_of(key)))
                content[key] = value
                continue
            other = self.machine.content(value) if isinstance(value, Box) else value
            if not isinstance(other, dict):
                return self.machine.box("dict", Unknown(reasons_of(other)))
            content.update(other)
        made = self.machine.box("dict", content)
        file = self.machine.here()[0]
        for key_node in node.keys:
            if isinstance(key_node, ast.Constant):
                made.sites[key_node.value] = (file, key_node.lineno, key_node.lineno)
        return made

    def _joined(self, node: ast.JoinedStr, scope: Scope) -> object:
        parts = [self.evaluate(part, scope) for part in node.values]
        return self.machine.lift(lambda *texts: "".join(map(str, texts)), *parts)

    def _formatted(self, node: ast.FormattedValue, scope: Scope) -> object:
        value = self.evaluate(node.value, scope)
        how = "repr" if node.conversion == ord("r") else "str"
        return self.machine.invoke(self.builtin(how), [value], {})

    def _lambda(self, node: ast.Lambda, scope: Scope) -> object:
        assert self.machine.module is not None
        return Function("<lambda>", node, self.machine.module, scope)

    def _named(self, node: ast.NamedExpr, scope: Scope) -> object:
        value = self.evaluate(node.value, scope)
        self.machine.heap.store(scope, node.target.id, value)
        return value

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope
    ) -> object:
        inner = Scope(scope)
        found: list[object] = []
        known = self._generate(node, 0, inner, found)
        if isinstance(node, ast.DictComp):
            pairs = [pair for pair in found if isinstance(pair, tuple)]
            if known is None and all(is_known(pair[0]) for pair in pairs):
                return self.machine.box("dict", {pair[0]: pair[1] for pair in pairs})
            return self.machine.box("dict", known or Unknown(reasons_of(tuple(found))))
        items: tuple[object, ...] | Unknown = tuple(found) if known is None else known
        if isinstance(node, ast.SetComp):
            return self._as_set(items)
        return items if isinstance(node, ast.GeneratorExp) else self.machine.box("list", items)

    def _generate(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        level: int,
        scope: Scope,
        found: list[object],
    ) -> Unknown | None:
        """Collect the elements; return why they cannot be told, or None."""
        if level == len(node.generators):
            if isinstance(node, ast.DictComp):
                found.append((self.evaluate(node.key, scope), self.evaluate(node.value, scope)))
            else:
                found.append(self.evaluate(node.elt, scope))
            return None
        generator = node.generators[level]
        source = self.evaluate(generator.iter, scope)
        items = self.machine.invoke(self.builtin("__iter__"), [source], {})
        if not isinstance(items, tuple):
            return Unknown(reasons_of(items))
        unsure: Unknown | None = None
        for item in items:
            bind = ast.Assign([generator.target], ast.Constant(None))
            self._bind(bind.targets[0], item, scope)
            kept: object = True
            for test in generator.ifs:
                kept = truth_of(self.machine, self.evaluate(test, scope))
                if kept is not True:
                    break
            if isinstance(kept, Unknown):
                unsure = unsure or kept
            elif kept:
                unsure = self._generate(node, level + 1, scope, found) or unsure
        return unsure

    def _bind(self, target: ast.expr, value: object, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            self.machine.heap.store(scope, target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            items = self.machine.content(value) if isinstance(value, Box) else value
            known = isinstance(items, tuple) and len(items) == len(target.elts)
            for index, element in enumerate(target.elts):
                part = items[index] if known and isinstance(items, tuple) else None
                self._bind(element, part if known else Unknown(reasons_of(items)), scope)


def _is_test(node: ast.expr) -> bool:
    """Whether an expression is ``True`` or ``False``, not only true or false."""
    return isinstance(node, ast.Compare) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    )
