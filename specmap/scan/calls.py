"""What a call gives back, and which functions it can run."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from specmap.codemap.condition import TRUE, AtomKind
from specmap.scan.builtincalls import BUILTINS
from specmap.scan.guards import Execution
from specmap.scan.modetests import ModeTests
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.truths import is_test, kinds_in, strongest
from specmap.scan.values import (
    NONE,
    Arm,
    Arms,
    ClassRef,
    Const,
    External,
    Facts,
    Frame,
    FunctionRef,
    Instance,
    Opaque,
    Origin,
    Partial,
    Scope,
    Sequence,
    Table,
    Truth,
    Value,
    is_known,
    one_of,
    only,
    optional,
    outgrown,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

# Annotations that leave open what a call of the value would make.
_MAKERS = ("builtins.type", "typing.Type", "typing.Callable", "collections.abc.Callable")
_BOOLEANS = (Const(True), Const(False))
_SAME_ELEMENTS = {"tuple", "list", "set", "frozenset", "sorted", "reversed", "iter"}
_COPIES = {"copy.copy", "copy.deepcopy", "dataclasses.replace"}


class Calls:
    """Evaluates calls: constructors, functions of the tree, and the builtins that matter."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._tests = ModeTests(resolver)
        self._results: dict[tuple[object, ...], Arms] = {}

    def result(self, node: ast.Call, scope: Scope) -> Arms:
        """Return what a call expression evaluates to."""
        if scope.facts and isinstance(node.func, ast.Attribute):
            assumed = scope.facts.get(f".{node.func.attr}")
            if assumed is not None:
                return only(assumed)
        targets = self._resolver.evaluate(node.func, scope)
        groups = [under(self._called(a.value, node, scope), a.condition) for a in targets]
        found = one_of(unite(*groups)) if len(targets) > 1 else unite(*groups)
        setting = self._resolver.as_setting(found)
        if setting:
            return setting
        called = list(zip(targets, groups, strict=True))
        if found and all(is_test(arm.value) for arm in found):
            # What a callee that nobody knows would say is not False.
            asked = self._resolver.expressions.opaque(node, scope)
            lost = [arm for arm, group in called if not group and isinstance(arm.value, Opaque)]
            found = unite(found, *(under(asked, arm.condition) for arm in lost))
        functions = [arm.value for arm in targets if isinstance(arm.value, FunctionRef)]
        kept = any(self._resolver.keeps_terms(f) for f in functions)
        vague = kept and all(arm.value in _BOOLEANS for arm in found) and outgrown(found)
        if not functions or (kept and not vague):
            return found
        inside = unite(*(group for arm, group in called if isinstance(arm.value, FunctionRef)))
        one = self.as_one_test(inside, node, scope, functions)
        if one != inside and all(isinstance(arm.value, Opaque) for arm in one):
            return one  # callees outside the tree answer the same question
        return self.as_one_test(found, node, scope, functions)

    def _called(self, target: Value, node: ast.Call, scope: Scope) -> Arms:
        if isinstance(target, ClassRef):
            return only(self._construct(target, node, scope))
        if isinstance(target, FunctionRef):
            return self.function(target, node, scope)
        if isinstance(target, External):
            return self._external(target, node, scope)
        if isinstance(target, Partial):
            node, scope = _completed(target, node, scope)
            groups = [under(self._called(a.value, node, scope), a.condition) for a in target.target]
            return unite(*groups)
        if isinstance(target, Instance):
            method = self._resolver.types.method(target.cls, "__call__")
            if method is not None:
                return self.function(FunctionRef(method, target), node, scope)
            return only(External(f"{target.cls.name}()"))
        if isinstance(target, Opaque) and target.plugin:
            if isinstance(node.func, ast.Name):
                return only(_made_by(target))
            return only(replace(target, text=self._text(node, scope)))
        if isinstance(target, Opaque) and self._is_decision(node) and target.reason:
            text = f"{self._text(node, scope)}: {target.reason}"
            return only(Opaque(text, AtomKind.UNKNOWN, scope.frame.module.span(node)))
        if isinstance(target, Sequence):  # what ``get`` of a dict can find
            return optional(target.element)
        return ()

    def _is_decision(self, node: ast.Call) -> bool:
        return last_name(node.func) in self._resolver.vocabulary.decisions

    def _text(self, node: ast.Call, scope: Scope) -> str:
        return scope.frame.module.text(node) if hasattr(node, "lineno") else ast.unparse(node)

    def _construct(self, target: ClassRef, node: ast.Call, scope: Scope) -> Value:
        if self._resolver.types.is_enum(target.cls):
            return Instance(target.cls, "enum", rule="enum member")
        this = scope.frame.self_value
        frame: Frame | None = scope.frame
        while not isinstance(this, Instance) and frame is not None and frame.caller is not None:
            frame = frame.caller.frame
            this = frame.self_value
        owner = this if isinstance(this, Instance) else None
        place = "" if isinstance(scope.frame.self_value, Instance) else scope.frame.place
        site = f"{scope.frame.module.file}:{node.lineno}:{node.col_offset}<{place}"
        if owner is not None and _length(owner) > 5:
            owner = None
        return Instance(target.cls, site, owner, Origin(node, scope))

    def function(self, target: FunctionRef, node: ast.Call, scope: Scope) -> Arms:
        """Return what a function of the tree gives back to one call."""
        function = target.function
        facts = self._resolver.facts_key(scope.facts)
        key = (function, target.self_value, target.closure, facts, self._passed(node, scope))
        known = self._results.get(key)
        if known is not None:
            return known
        return self._resolver.memo.get(
            self._results, key, lambda: self._run(target, node, scope), ()
        )

    def _run(self, target: FunctionRef, node: ast.Call, scope: Scope) -> Arms:
        function = target.function
        frame = Frame(function, function.module, target.self_value, node, scope, target.closure)
        if self._resolver.is_settings(function.module.name):
            return self._setting(frame, node, scope)
        declared = self._declared(frame)
        if self._resolver.is_boundary(function.module.name) or self._goes_round(target, scope):
            return declared
        told = self._is_enough(declared) and not _gives_tuples(function, declared)
        if told and not self._resolver.keeps_terms(target):
            return self._tests.settled(frame, scope, declared) or declared
        return self.returned(frame, scope.facts)

    def _is_enough(self, declared: Arms) -> bool:
        """Whether an annotation tells all that a look into the function could."""
        return bool(declared) and all(
            (isinstance(arm.value, External) and not arm.value.name.startswith(_MAKERS))
            or arm.value == NONE
            or (isinstance(arm.value, Instance) and self._resolver.types.is_plain(arm.value.cls))
            for arm in declared
        )

    def _passed(self, node: ast.Call, scope: Scope) -> tuple[object, ...]:
        """What tells two calls of one function apart: the arguments' values."""
        positional = tuple(self._resolver.evaluate(arg, scope) for arg in node.args)
        named = tuple((k.arg, self._resolver.evaluate(k.value, scope)) for k in node.keywords)
        return (*positional, named)

    def _goes_round(self, target: FunctionRef, scope: Scope) -> bool:
        """Whether a call on the way here runs the same function on the same object."""
        frame: Frame | None = scope.frame
        while frame is not None:
            if frame.function is target.function and frame.self_value == target.self_value:
                return True
            frame = frame.caller.frame if frame.caller else None
        return False

    def _setting(self, frame: Frame, node: ast.Call, scope: Scope) -> Arms:
        """A call into the launch settings: the settings object itself, or one symbol."""
        names = self._resolver.vocabulary.settings_names
        for arm in self._declared(frame):
            if isinstance(arm.value, Instance) and arm.value.cls.name in names:
                return only(arm.value)
        module = scope.frame.module
        text = module.text(node) if hasattr(node, "lineno") else ast.unparse(node)
        return only(Opaque(text, AtomKind.LAUNCH, module.span(node)))

    def under_facts(self, getter: FunctionInfo, value: Instance, facts: Facts) -> Arms:
        """Return what a property gives under what a walk knows."""
        frame = self._resolver.attributes.frame(value, getter)
        key = (getter, value, None, self._resolver.facts_key(facts), ())
        return self._resolver.memo.get(self._results, key, lambda: self.returned(frame, facts), ())

    def returned(self, frame: Frame, facts: Facts | None = None) -> Arms:
        """Return the arms of all ``return`` statements of a frame."""
        assert frame.function is not None
        run = self._resolver.run(frame, facts)
        found = self.at_returns(run)
        if found and frame.function.owner is None and all(arm.value == NONE for arm in found):
            return found  # no subclass can give anything else
        plugin = any(isinstance(arm.value, Opaque) and arm.value.plugin for arm in found)
        declared = self._declared(frame) if not is_known(found) and not plugin else ()
        if is_known(declared):
            none = only(NONE) if _has_none(found) else ()
            return unite(declared, none) if found else declared
        if not run.returns and not run.raises:
            return only(NONE)
        return found

    def at_returns(self, run: Execution) -> Arms:
        """Return the arms of all ``return`` statements of a run, as they stand."""
        groups: list[Arms] = []
        for item in run.returns:
            value = (
                only(NONE)
                if item.value is None
                else self._resolver.evaluate(item.value, item.scope)
            )
            condition = TRUE if len(run.returns) == 1 else self._resolver.condition(item.path)
            groups.append(under(value, condition))
        return unite(*groups)

    def _declared(self, frame: Frame) -> Arms:
        node = frame.function.node if frame.function else None
        if node is None or isinstance(node, ast.Lambda):
            return ()
        scope = Scope(Frame(None, frame.module))
        return self._resolver.types.annotation(node.returns, scope)

    def as_one_test(
        self, found: Arms, node: ast.Call | ast.Attribute, scope: Scope, targets: list[FunctionRef]
    ) -> Arms:
        """A plain predicate stays one atom, as the source writes it; constants stay.

        So does a property that tests its own object.
        """
        if not found or not all(is_test(arm.value) for arm in found):
            return found
        values = {arm.value for arm in found}
        constants = [v for v in values if isinstance(v, Const)]
        named = self._resolver.setting_name(targets)
        if len(values) == 1 and constants and named is None:
            return only(constants[0])
        if scope.facts and named is None and (answer := self._tests.constant(found)):
            return answer
        if not any(isinstance(v, Truth | External) or v in _BOOLEANS for v in values):
            return found
        kinds = {k for arm in found for k in kinds_in(arm.condition)}
        for value in values:
            if isinstance(value, Truth):
                kinds |= kinds_in(value.condition)
            elif isinstance(value, Opaque):
                kinds.add(value.kind)
        module = scope.frame.module
        text = module.text(node) if hasattr(node, "lineno") else ast.unparse(node)
        kind = self._resolver.kind_of(text)
        called = node.func if isinstance(node, ast.Call) else None
        if named is not None and isinstance(called, ast.Attribute):
            kind, text = AtomKind.LAUNCH, f"{named}{text[text.rindex('.' + called.attr) :]}"
        if kind is AtomKind.UNKNOWN:
            kind = strongest(kinds)
        plugin = all(isinstance(v, Opaque) and v.plugin for v in values)
        return only(Opaque(text, kind, module.span(node), plugin))

    def _external(self, target: External, node: ast.Call, scope: Scope) -> Arms:
        name = target.name
        if name.startswith("typing.Callable") and name.endswith("()"):
            reason = "plugin factory class"
            return only(_made_by(Opaque(name, plugin=True, reason=reason)))
        if name.startswith("builtins."):
            handler = BUILTINS.get(name.removeprefix("builtins."))
            if handler is not None and (node.args or name == "builtins.super"):
                return handler(self._resolver, node, scope)
            if name.removeprefix("builtins.") in _SAME_ELEMENTS and node.args:
                return self._elements(node.args[0], scope)
            if name == "builtins.dict":
                return self._dict(node, scope)
        if name in _COPIES and node.args:
            return self._resolver.evaluate(node.args[0], scope)
        if name == "collections.defaultdict":
            return self._defaultdict(node, scope)
        if name in ("functools.partial", "functools.lru_cache") and node.args:
            return only(Partial(self._resolver.evaluate(node.args[0], scope), node, scope))
        return only(External(f"{name.removesuffix('()')}()"))

    def _elements(self, node: ast.expr, scope: Scope) -> Arms:
        arms = self._resolver.evaluate(node, scope)
        kept = tuple(a for a in arms if isinstance(a.value, Sequence | Table))
        return kept or only(Sequence(None))

    def _dict(self, node: ast.Call, scope: Scope) -> Arms:
        entries = [(k.arg, self._resolver.evaluate(k.value, scope)) for k in node.keywords if k.arg]
        if node.args and not entries:
            return self._resolver.evaluate(node.args[0], scope)
        return only(Table(tuple(entries)))

    def _defaultdict(self, node: ast.Call, scope: Scope) -> Arms:
        if not node.args:
            return only(Table(()))
        made = []
        for arm in self._resolver.evaluate(node.args[0], scope):
            call = ast.copy_location(ast.Call(node.args[0], [], []), node.args[0])
            made.append(under(self._called(arm.value, call, scope), arm.condition))
        other = unite(*made)
        if len(node.args) > 1:
            for arm in self._resolver.evaluate(node.args[1], scope):
                if isinstance(arm.value, Table):
                    return only(Table(arm.value.entries, other))
        return only(Table((), other))

    def targets(self, node: ast.Call, scope: Scope) -> list[tuple[Arm, FunctionInfo | None]]:
        """Return the values a call can call, each with the function it runs (if in the tree)."""
        found: list[tuple[Arm, FunctionInfo | None]] = []
        for arm in self._flat(self._resolver.evaluate(node.func, scope)):
            found.append((arm, self._function_of(arm.value)))
        return found

    def _flat(self, arms: Arms) -> Arms:
        groups = []
        for arm in arms:
            if isinstance(arm.value, Partial):
                groups.append(under(self._flat(arm.value.target), arm.condition))
            else:
                groups.append((arm,))
        return unite(*groups)

    def _function_of(self, value: Value) -> FunctionInfo | None:
        if isinstance(value, FunctionRef):
            return value.function
        if isinstance(value, ClassRef):
            return self._resolver.types.method(value.cls, "__init__")
        if isinstance(value, Instance):
            return self._resolver.types.method(value.cls, "__call__")
        return None


def _gives_tuples(function: FunctionInfo, declared: Arms) -> bool:
    """Whether a function gives tuples, and its annotation says nothing of them."""
    plain = not any(isinstance(arm.value, Sequence) for arm in declared)
    return plain and any(isinstance(value, ast.Tuple) for value in function.facts.returned)


def _completed(partial: Partial, node: ast.Call, scope: Scope) -> tuple[ast.Call, Scope]:
    """Return a call of a partial as one call, where one scope knows all its arguments."""
    bound = partial.call
    if len(bound.args) < 2 and not bound.keywords:
        return node, scope
    if not node.args and not node.keywords:
        scope = partial.scope
    elif scope.frame is not partial.scope.frame:
        return node, scope
    args, keywords = [*bound.args[1:], *node.args], [*bound.keywords, *node.keywords]
    return ast.copy_location(ast.Call(node.func, args, keywords), node), scope


def _made_by(cls: Opaque) -> Opaque:
    """An object of a class that a plugin supplies: it is there, whatever it is."""
    return replace(cls, text=f"{cls.text}()", kind=AtomKind.STATE)


def _length(instance: Instance) -> int:
    count, current = 1, instance.owner
    while current is not None:
        count, current = count + 1, current.owner
    return count


def _has_none(arms: Arms) -> bool:
    return any(arm.value == NONE for arm in arms)
