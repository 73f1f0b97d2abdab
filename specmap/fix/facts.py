"""What is true of every verify batch: three-valued truth of a test, from the source itself.

A test counts as false only where that follows from the forward mode's own methods, from the
algorithm's, from the numbers of a batch with a fixed number of tokens, or from a constant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial

from specmap.codemap.condition import Atom
from specmap.fix import capture
from specmap.fix.constants import is_property
from specmap.fix.definitions import Definitions
from specmap.fix.numbers import Numbers
from specmap.fix.returned import returned
from specmap.fix.scope import DEPTH, Scope, asked, deeper, definitions, is_none, is_self, parameters
from specmap.fix.tree import Tree
from specmap.scan.enums import methods_of


def facts_of(tree: Tree) -> Facts:
    """Return what is known of the verify batches of a tree, worked out once."""
    found = tree.kept.get("facts")
    if not isinstance(found, Facts):
        found = tree.kept["facts"] = Facts(tree)
    return found


class Facts(Definitions):
    """Evaluates tests for the verify batches of one tree; ``modes`` stands for other batches."""

    def __init__(self, tree: Tree, modes: tuple[str, ...] = ()) -> None:
        super().__init__(tree)
        self._names = tree.names.scan
        self.modes = modes or self._names.modes["verify"]
        self._once = dict(tree.names.pairs("launch_facts"))
        self._facts = {**dict(tree.names.pairs("facts")), **self._once}
        self._numbers = Numbers(dict(tree.names.pairs("numbers")), self._value)
        self.says = frozenset(tree.names.lists["says"])
        self._open, self._thorough = 0, False
        self._atoms: dict[Atom, bool | None] = {}

    @cached_property
    def mode_methods(self) -> Mapping[str, frozenset[str]]:
        """The modes for which each method of the mode's enum holds."""
        return self._enum(self._names.mode_enum)

    @cached_property
    def _algorithms(self) -> Mapping[str, frozenset[str]]:
        name = self._names.launch_words.algorithm.get("class", "").rpartition(".")[2]
        return self._enum(frozenset([name]))

    @property
    def algorithm_test(self) -> str:
        """The method of the algorithm that holds for every one but the one that means none."""
        known = [name for name in sorted(self._algorithms) if self._about_algorithm(name) is True]
        return known[0] if known else ""

    @cached_property
    def mode_place(self) -> str:
        """The symbol id of the forward mode's enum; empty where the map has none."""
        for file, name in self._enums(self._names.mode_enum):
            return f"{file}::{name.name}"
        return ""

    def truth(self, test: str | ast.expr, scope: Scope | None = None) -> bool | None:
        """Return whether a test holds for every verify batch, for none, or ``None``."""
        try:
            node = ast.parse(test, mode="eval").body if isinstance(test, str) else test
        except (SyntaxError, ValueError):
            return None
        return self._truth(node, scope or Scope())

    def of_atom(self, atom: Atom) -> bool | None:
        """Return the truth of a test of the map where it stands, worked out once."""
        if atom not in self._atoms:
            self._atoms[atom] = self.truth(atom.text, self.scope_at(atom.span))
        return self._atoms[atom]

    def excludes(self, test: str, scope: Scope) -> bool:
        """Tell whether a test, or what it returns where it is a function, is false for verify."""
        node = ast.parse(test, mode="eval").body
        return False in (self._truth(node, scope), self._truth(asked(node), scope))

    def whole(self, test: str, scope: Scope) -> bool:
        """Tell whether all that a test asks on the way to its truth is known.

        What is not known is a test of its own, which would go with the rest.
        """
        self._open, self._thorough = 0, True
        truth = self.truth(test, scope)
        self._thorough = False
        return truth is not None and not self._open

    def keeps_prefill_out(self, test: str, scope: Scope) -> bool:
        """Tell whether a test is false for prefill too, but asks for a mode, or lets decode in."""
        prefill, decode = (Facts(self.tree, self._names.modes[k]) for k in ("prefill", "decode"))
        nodes = (n for n in ast.walk(ast.parse(test, mode="eval")) if isinstance(n, ast.expr))
        asks = any(self.modes_of(node, scope) for node in nodes)
        return prefill.truth(test, scope) is False and (
            asks or decode.truth(test, scope) is not False
        )

    def _truth(self, node: ast.expr, scope: Scope) -> bool | None:
        found = self._evaluated(node, scope)
        self._open += found is None
        return found

    def _evaluated(self, node: ast.expr, scope: Scope) -> bool | None:
        if scope.depth > DEPTH:
            return None
        about = (
            node.left if isinstance(node, ast.Compare) and is_none(node.comparators[0]) else node
        )
        if isinstance(about, ast.Attribute | ast.Call):
            text = ast.unparse(node)
            for fact, value in (self._once if scope.made else self._facts).items():
                if text == fact or text.endswith(f".{fact}"):
                    return value == "true"
        if isinstance(node, ast.Constant):
            return bool(node.value) if node.value is None or isinstance(node.value, bool) else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._truth(node.operand, scope)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            return self._joined(node, scope)
        if isinstance(node, ast.IfExp):
            test = self._truth(node.test, scope)
            arms = [node.body] * (test is not False) + [node.orelse] * (not test)
            found = {self._truth(arm, scope) for arm in arms}
            return found.pop() if len(found) == 1 else None
        if isinstance(node, ast.Compare):
            return self._compared(node, scope)
        if isinstance(node, ast.Call):
            return self._called(node, scope)
        return self._named(node, scope)

    def _joined(self, node: ast.BoolOp, scope: Scope) -> bool | None:
        absorbing = isinstance(node.op, ast.Or)
        results: list[bool | None] = []
        nothing: list[str] = []
        for value in node.values:
            read = any(name in ast.unparse(value) for name in nothing)
            truth = self._evaluated(value, scope) if read else self._truth(value, scope)
            if truth is False and isinstance(value, ast.Compare) and is_none(value.comparators[0]):
                nothing.append(ast.unparse(value.left))
            results.append(truth)
        if absorbing in results:
            return absorbing
        return None if None in results else not absorbing

    def _named(self, node: ast.expr, scope: Scope) -> bool | None:
        if isinstance(node, ast.Name):
            given = dict(scope.given)
            if node.id in given:
                return given[node.id]
        elif isinstance(node, ast.Attribute) and is_self(node.value) and scope.owner is not None:
            if is_property(scope.owner, node.attr):
                return self._method(node, ast.Call(node, [], []), scope)
        held = self._value(node, scope)
        return None if held is None else self._truth(*held)

    def _value(self, node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope] | None:
        """What a name, an attribute of ``self`` or a call gives for good, and where that stands."""
        stored = None
        if isinstance(node, ast.Call):
            values, inside = self._returned(node.func, node, scope)
            return (values[0], inside) if values and len(values) == 1 else None
        if isinstance(node, ast.Name):
            value = scope.binding(node.id)
            if value is not None:
                return value, deeper(scope)
            stored = self.constants.of_module(scope.symbol, scope.function, node.id)
        elif isinstance(node, ast.Attribute) and is_self(node.value) and scope.owner is not None:
            stored = self.constants.of_object(scope.symbol, scope.owner, node.attr)
        if stored is None:
            return None
        return stored.value, replace(self.scope(stored.symbol), made=True, depth=scope.depth + 1)

    def _compared(self, node: ast.Compare, scope: Scope) -> bool | None:
        if len(node.ops) != 1:
            return None
        operator, left, right = node.ops[0], node.left, node.comparators[0]
        if isinstance(operator, ast.IsNot | ast.Is) and is_none(right):
            nothing = self._is_nothing(left, scope)
            return None if nothing is None else nothing is isinstance(operator, ast.Is)
        modes = self._compared_mode(left, right, scope)
        if modes is not None and isinstance(operator, ast.Eq | ast.Is | ast.In):
            return modes
        if modes is not None and isinstance(operator, ast.NotEq | ast.IsNot | ast.NotIn):
            return not modes
        return self._numbers.compared(operator, left, right, scope)

    def _is_nothing(self, node: ast.expr, scope: Scope) -> bool | None:
        """Whether an expression is ``None`` for every verify batch."""
        text = ast.unparse(node)
        held = None if scope.made else self._facts.get(f"{text.rpartition('.')[2]} is None")
        if held is not None:
            return held == "true"
        if isinstance(node, ast.Constant):
            return node.value is None
        if isinstance(node, ast.Attribute) and any(
            text.endswith(f".{name}") for name in self._numbers.known
        ):
            return False
        if scope.depth > DEPTH:
            return None
        if isinstance(node, ast.Name):
            bound = scope.binding(node.id)
            return None if bound is None else self._is_nothing(bound, deeper(scope))
        if isinstance(node, ast.Call):
            values, inside = self._returned(node.func, node, scope)
            found = {self._is_nothing(value, inside) for value in values or ()}
            return found.pop() if len(found) == 1 else None
        return None

    def _compared_mode(self, left: ast.expr, right: ast.expr, scope: Scope) -> bool | None:
        """Whether a batch's mode is one of the modes on the right, where both are known."""
        own = self.modes_of(left, scope)
        if own is None or self._mode_name(left):
            left, right = right, left
            own = self.modes_of(left, scope)
        if own is None or self._mode_name(left):
            return None
        items = self._elements(right, scope)
        named = {self._mode_name(item) for item in items}
        if None not in named:
            return bool(named & own)
        if len(items) == 1 and isinstance(right, ast.Attribute) and is_self(right.value):
            runner = scope.symbol.rpartition(".")[0]
            known = {*self._names.capture_mode, *(s.attribute for s in self.mode_stores(runner))}
            modes = self.captured(runner)
            hidden = modes is None and right.attr not in self._names.capture_mode
            if right.attr in known and not hidden and not (modes or set()) & own:
                return False
        return None

    def _elements(self, node: ast.expr, scope: Scope) -> list[ast.expr]:
        """The elements of a collection as it is written, or the node; a name holds for good."""
        held = self._value(node, scope) if isinstance(node, ast.Name) else None
        value = held[0] if held is not None else node
        frozen = isinstance(value, ast.Call) and ast.unparse(value.func) in ("frozenset", "tuple")
        if isinstance(value, ast.Call) and frozen and len(value.args) == 1:
            value = value.args[0]
        elif held is not None and not isinstance(value, ast.Tuple):
            return [node]  # a list or a set may have changed since
        return value.elts if isinstance(value, ast.Tuple | ast.List | ast.Set) else [node]

    def captures_verify(self, runner: str) -> bool:
        """Tell whether a runner's class captures a mode of verify."""
        return bool((self.captured(runner) or set()) & set(self.modes))

    def captured(self, runner: str) -> set[str] | None:
        """Return the modes that a runner's class captures; ``None`` where that is not known."""
        known = {c.mode for c in self.tree.codemap.hazards.captured_modes if c.runner == runner}
        if known:
            return known
        found = set()
        for store in self.mode_stores(runner):
            modes = capture.modes(store, self._names.mode_enum, partial(self._stored, runner))
            if modes is None:
                return None
            found |= modes
        return found or None

    def mode_stores(self, runner: str) -> list[capture.Store]:
        """Return where a runner's class stores the mode that it captures."""
        owner = self.scope(f"{runner}.__init__").owner
        if owner is None:
            return []
        names = capture.attributes(owner, sorted(self._names.mode_attribute))
        return list(capture.stores(owner, names))

    def _stored(self, runner: str, store: capture.Store) -> list[ast.expr] | None:
        """What the method of a store can return for a target that speculates."""
        call = store.statement.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        return self._returned(call.func, call, self.scope(f"{runner}.{store.holder}"))[0]

    def modes_of(self, node: ast.expr, scope: Scope) -> frozenset[str] | None:
        """Return the modes that an expression can name for a batch; ``None`` if it names none."""
        if scope.depth > DEPTH or scope.made:
            return None
        if isinstance(node, ast.Name):
            value = scope.binding(node.id)
            if value is None:
                return dict(scope.modes).get(node.id)
            return self.modes_of(value, deeper(scope))
        if isinstance(node, ast.Call):
            values, inside = self._returned(node.func, node, scope)
            found = [self.modes_of(value, inside) for value in values or ()]
            known = [modes for modes in found if modes is not None]
            return frozenset().union(*known) if known and len(known) == len(found) else None
        if isinstance(node, ast.Attribute) and node.attr in self._names.mode_attribute:
            return frozenset(self.modes)
        name = self._mode_name(node)
        return None if name is None else frozenset([name])

    def _mode_name(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.attr if node.value.id in self._names.mode_enum else None
        return None

    def _called(self, node: ast.Call, scope: Scope) -> bool | None:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "bool" and len(node.args) == 1:
            return self._truth(node.args[0], scope)
        if isinstance(function, ast.Name) and not node.args:
            bound = scope.binding(function.id)
            if bound is not None:
                return self._truth(asked(bound), deeper(scope))
            platforms = self._names.platform_tests
            if any(function.id in calls for calls in platforms.values()):
                return function.id in platforms.get(self.tree.codemap.platform, frozenset())
        if not isinstance(function, ast.Attribute):
            return self._method(function, node, scope)
        receiver = function.value
        modes = self.modes_of(receiver, scope)
        if modes is not None and function.attr in self.mode_methods:
            return bool(self.mode_methods[function.attr] & modes)
        named = ast.unparse(receiver).rpartition(".")[2]
        if named in self._names.launch_words.algorithm_names and not node.args:
            return self._about_algorithm(function.attr)
        return self._method(function, node, scope)

    def _about_algorithm(self, method: str) -> bool | None:
        """What a method says of every algorithm but the one that means none."""
        holds = self._algorithms.get(method)
        off = self._algorithms.get(self.tree.names.lists["no_algorithm"][0], frozenset())
        every = frozenset().union(*self._algorithms.values()) - off
        if holds is None or not every or not off:
            return None
        return True if every <= holds else None if every & holds else False

    def _method(self, function: ast.expr, call: ast.Call, scope: Scope) -> bool | None:
        """The truth of a call, where all that the function can return agrees."""
        values, inside = self._returned(function, call, scope)
        found = {self._truth(value, inside) for value in values or ()}
        if self._thorough and inside.function is not None:
            if any(isinstance(value, ast.Constant) for value in values or ()):
                # A test that left with it may be what is dead; then what stands behind counts.
                behind = returned(
                    inside.function.body, lambda test: self._truth(test, inside) and None
                )
                for value in behind or ():
                    self._truth(value, inside)
        return found.pop() if len(found) == 1 else None

    def _returned(
        self, function: ast.expr, call: ast.Call, scope: Scope
    ) -> tuple[list[ast.expr] | None, Scope]:
        """What a function of the tree can return for a verify batch, and where that stands."""
        inside = self.inside(call, scope, function) if scope.depth <= DEPTH else None
        if inside is None or inside.function is None:
            return None, scope
        body = inside.function.body
        return returned(body, lambda test: self._truth(test, inside)), inside

    def inside(
        self, call: ast.Call, scope: Scope, function: ast.expr | None = None
    ) -> Scope | None:
        """Return the scope inside the function of a call, with what is known of its arguments."""
        meant = self.meant(function or call.func, scope)
        if meant is None:
            return None
        symbol, method, owner = meant
        names = parameters(method, owner is not None)
        given = [*zip(names, call.args, strict=False)]
        given += [(k.arg, k.value) for k in call.keywords if k.arg]
        known = tuple((n, self._evaluated(v, deeper(scope))) for n, v in given)
        modes = tuple((n, m) for n, v in given if (m := self.modes_of(v, deeper(scope))))
        return Scope(symbol, method, owner, known, scope.depth + 1, modes, scope.made)

    def _enum(self, names: frozenset[str]) -> Mapping[str, frozenset[str]]:
        found = next((enum for _, enum in self._enums(names)), None)
        return {} if found is None else methods_of(found)

    def _enums(self, names: frozenset[str]) -> Iterator[tuple[str, ast.ClassDef]]:
        for file in self.tree.files:
            if any(f"class {name}(" in self.tree.text(file) for name in names):
                for found in definitions(self.module(file).body):
                    if isinstance(found, ast.ClassDef) and found.name in names:
                        yield file, found
