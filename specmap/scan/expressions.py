"""Evaluation of expressions to arms, and of tests to conditions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from specmap.codemap.condition import (
    FALSE,
    TRUE,
    Atom,
    AtomKind,
    Condition,
    Leaf,
    all_of,
    any_of,
    atoms_of,
    negate,
)
from specmap.scan.guards import Bound, Choice, Exit, Imported, Known, Path, Test
from specmap.scan.module import FunctionInfo
from specmap.scan.values import (
    Arm,
    Arms,
    ClassRef,
    Const,
    EnumMember,
    External,
    Frame,
    FunctionRef,
    Instance,
    ModuleRef,
    Opaque,
    Scope,
    Sequence,
    Super,
    Table,
    Truth,
    Value,
    is_known,
    only,
    settle_absence,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.guards import Binding
    from specmap.scan.resolver import Resolver

_MAX_DEPTH = 60


class Expressions:
    """Evaluates expressions of the tree; what cannot be told stays opaque text."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._depth = 0
        self._busy: set[int] = set()

    def evaluate(self, node: ast.expr, scope: Scope) -> Arms:
        """Return everything an expression can be."""
        if self._depth > _MAX_DEPTH:
            return self.opaque(node, scope, "nested too deep")
        self._depth += 1
        try:
            method = getattr(self, f"_{type(node).__name__.lower()}", None)
            found: Arms = method(node, scope) if method else ()
        finally:
            self._depth -= 1
        if len(found) == 1 and isinstance(found[0].value, External):
            if found[0].value.source is None and hasattr(node, "lineno"):
                value = External(found[0].value.name, (scope.frame.module, node))
                return (Arm(value, found[0].condition),)
        return found or self.opaque(node, scope)

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

    def _constant(self, node: ast.Constant, scope: Scope) -> Arms:
        return only(Const(node.value))

    def _name(self, node: ast.Name, scope: Scope) -> Arms:
        return self.name(node.id, scope)

    def name(self, name: str, scope: Scope) -> Arms:
        """Return what a name means in a scope: local, parameter, closure, module, builtin."""
        binding = scope.env.get(name)
        if binding is not None:
            return self.binding(binding)
        frame = scope.frame
        function = frame.function
        if name in frame.extra:
            return frame.extra[name]
        if function is not None:
            found = self._parameter(function, frame, name)
            if found is not None:
                return found
        if frame.closure is not None:
            return self.name(name, frame.closure)
        return self._resolver.types.module_name(frame.module, name)

    def _parameter(self, function: FunctionInfo, frame: Frame, name: str) -> Arms | None:
        index = function.positions.get(name)
        if index is None:
            return None
        if index == 0 and function.owner is not None and not function.is_static:
            return self._self(function, frame)
        return self._resolver.attributes.parameter(frame, name)

    def _self(self, function: FunctionInfo, frame: Frame) -> Arms:
        assert function.owner is not None
        if function.is_classmethod:
            cls = getattr(frame.self_value, "cls", None) or function.owner
            return only(ClassRef(cls))
        if frame.self_value is not None:
            return only(frame.self_value)
        if frame.call is not None and frame.caller is not None and frame.call.args:
            return self.evaluate(frame.call.args[0], frame.caller)
        return only(self._resolver.any_instance(function.owner))

    def binding(self, binding: Binding | None) -> Arms:
        """Return what a local binding holds."""
        if binding is None:
            return ()
        if isinstance(binding, Known):
            return binding.arms
        if isinstance(binding, Imported):
            return self._resolver.types.imported(binding.module, binding.name)
        if binding.cache is not None:
            return binding.cache
        if id(binding) in self._busy:
            return ()
        self._busy.add(id(binding))
        try:
            if isinstance(binding, Bound):
                found = self._bound(binding)
            else:
                found = self._choice(binding)
        finally:
            self._busy.discard(id(binding))
        binding.cache = found
        return found

    def _bound(self, binding: Bound) -> Arms:
        found = self.pick(self.evaluate(binding.node, binding.scope), binding.index)
        if binding.annotation is not None:
            declared = self._resolver.types.annotation(binding.annotation, binding.scope)
            found = self._narrowed(found, declared)
        return found or self.opaque(binding.node, binding.scope)

    def _narrowed(self, found: Arms, declared: Arms) -> Arms:
        """Keep the values that an annotation allows; where none is left, what it says."""
        classes = {arm.value.cls for arm in declared if isinstance(arm.value, Instance)}
        if not classes:
            return found if is_known(found) else declared or found
        kept = tuple(
            arm
            for arm in found
            if isinstance(arm.value, Instance)
            and classes & set(self._resolver.types.mro(arm.value.cls))
        )
        return kept or declared

    def _choice(self, binding: Choice) -> Arms:
        taken = self.condition(binding.path)
        then = under(self.binding(binding.then), taken)
        other = under(self.binding(binding.other), negate(taken))
        return unite(then, other)

    def pick(self, arms: Arms, index: tuple[int | None, ...]) -> Arms:
        """Take arms apart by tuple positions; ``None`` picks any element."""
        for position in index:
            groups = [under(self._item(arm.value, position), arm.condition) for arm in arms]
            arms = unite(*groups)
        return arms

    def _item(self, value: Value, position: int | None) -> Arms:
        if isinstance(value, Sequence):
            if value.items is None:
                return value.element
            if position is None:
                return unite(*value.items)
            return value.items[position] if position < len(value.items) else ()
        if isinstance(value, External):
            return only(External(f"{value.name}[]"))
        if isinstance(value, Opaque):
            place = "[]" if position is None else f"[{position}]"
            return only(Opaque(value.text + place, value.kind, value.span, value.plugin, value.reason))
        return ()

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Arms:
        resolver = self._resolver
        receiver = self.evaluate(node.value, scope)
        if scope.facts:
            known = resolver.fact(receiver, node.attr, scope.facts)
            if known is not None:
                return only(known)
        temporary = resolver.attributes.override_of(scope, receiver, node.attr)
        if temporary is not None:
            return temporary
        groups = [under(self.member(a.value, node, scope), a.condition) for a in receiver]
        found = unite(*groups)
        opaque = [arm.value for arm in found if isinstance(arm.value, Opaque)]
        if not found or len(opaque) < len(found):
            return found
        if len(opaque) == 1 and opaque[0].kind is AtomKind.LAUNCH:
            return found
        return self._named_opaque(node, scope, found)

    def _named_opaque(self, node: ast.Attribute, scope: Scope, found: Arms) -> Arms:
        """An opaque attribute keeps the text at its use; its stores tell what kind it is."""
        module = scope.frame.module
        text, span = module.text(node), module.span(node)
        kinds = {arm.value.kind for arm in found if isinstance(arm.value, Opaque)}
        plugin = any(isinstance(arm.value, Opaque) and arm.value.plugin for arm in found)
        reason = next((a.value.reason for a in found if isinstance(a.value, Opaque)), "")
        kind = self._resolver.kind_of(text)
        if kind is AtomKind.UNKNOWN:
            kind = strongest(kinds | {AtomKind.STATE})
        return only(Opaque(text, kind, span, plugin, reason))

    def member(self, value: Value, node: ast.Attribute, scope: Scope) -> Arms:
        """Return one attribute of one value."""
        if isinstance(value, Instance):
            if self._resolver.is_settings(value.cls.module.name):
                return self._setting(value, node, scope)
            return self._resolver.members.named(value, node.attr)
        if isinstance(value, ClassRef):
            return self._resolver.members.of_class(value, node.attr)
        if isinstance(value, ModuleRef):
            return self._resolver.types.module_name(value.module, node.attr) or (
                self._resolver.types.imported(value.module.name, node.attr)
            )
        if isinstance(value, External):
            return only(External(f"{value.name}.{node.attr}"))
        if isinstance(value, EnumMember):
            return self._resolver.members.of_enum(value, node.attr)
        if isinstance(value, Super):
            return self._resolver.members.of_super(value, node.attr)
        if isinstance(value, Opaque):
            kind = self._resolver.kind_of(f"{value.text}.{node.attr}")
            kind = value.kind if kind is AtomKind.UNKNOWN else kind
            text = f"{value.text}.{node.attr}"
            return only(Opaque(text, kind, value.span, value.plugin, value.reason))
        if isinstance(value, Const) and value.value is not None:
            return only(External(f"builtins.{type(value.value).__name__}.{node.attr}"))
        if isinstance(value, Sequence):
            return only(External(f"builtins.list.{node.attr}"))
        if isinstance(value, Table):
            return self._table_member(value, node.attr)
        if isinstance(value, Truth):
            return only(External(f"builtins.bool.{node.attr}"))
        return ()

    def _setting(self, value: Instance, node: ast.Attribute, scope: Scope) -> Arms:
        """A launch setting is one symbol, however the object that holds it was reached."""
        names = self._resolver.vocabulary.settings_names
        module = scope.frame.module
        name = names.get(value.cls.name)
        text = f"{name}.{node.attr}" if name else module.text(node)
        return only(Opaque(text, AtomKind.LAUNCH, module.span(node)))

    def _table_member(self, value: Table, name: str) -> Arms:
        if name in ("get", "pop", "setdefault"):
            everything = unite(value.other, *(arms for _, arms in value.entries))
            return only(Sequence(None, everything)) if everything else only(External("builtins.dict.get"))
        return only(External(f"builtins.dict.{name}"))

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Arms:
        found: list[Arms] = []
        key = self._resolver.device_key(node.slice, scope)
        for arm in self.evaluate(node.value, scope):
            found.append(under(self._subscripted(arm.value, key, node, scope), arm.condition))
        return unite(*found)

    def _subscripted(self, value: Value, key: object, node: ast.Subscript, scope: Scope) -> Arms:
        if isinstance(value, Table):
            entries = dict(value.entries)
            if key is not None:
                return entries.get(key, value.other)
            return unite(value.other, *entries.values())
        if isinstance(value, Sequence):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(node.slice, ast.Slice):
                return only(_sliced(value, node.slice))
            return self._item(value, index if isinstance(index, int) and index >= 0 else None)
        if isinstance(value, External):
            name = value.name if value.name.endswith("()") else f"{value.name}[]"
            return only(External(name))
        if isinstance(value, FunctionRef):
            return only(value)  # kernel[grid]: still the kernel
        if isinstance(value, ClassRef) and self._resolver.types.is_enum(value.cls):
            return only(Instance(value.cls, "enum", rule="enum member"))
        if isinstance(value, ClassRef):
            return only(value)
        if isinstance(value, Opaque) and value.kind is not AtomKind.UNKNOWN:
            return self.opaque(node, scope, value.reason)
        return ()

    def _tuple(self, node: ast.Tuple | ast.List, scope: Scope) -> Arms:
        if any(isinstance(e, ast.Starred) for e in node.elts):
            plain = [e.value if isinstance(e, ast.Starred) else e for e in node.elts]
            return only(Sequence(None, unite(*(self.evaluate(e, scope) for e in plain))))
        return only(Sequence(tuple(self.evaluate(e, scope) for e in node.elts)))

    _list = _tuple

    def _set(self, node: ast.Set, scope: Scope) -> Arms:
        return only(Sequence(None, unite(*(self.evaluate(e, scope) for e in node.elts))))

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope) -> Arms:
        env = dict(scope.env)
        for generator in node.generators:
            inner = Scope(scope.frame, env, scope.facts)
            if isinstance(generator.target, ast.Name):
                env[generator.target.id] = Bound(generator.iter, inner, (None,))
        return only(Sequence(None, self.evaluate(node.elt, Scope(scope.frame, env, scope.facts))))

    _generatorexp = _setcomp = _listcomp

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
        test = self.truth(node.test, scope)
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
            holds = [(arm, self.value_truth(arm.value)) for arm in arms]
            leaves = [
                Arm(a.value, all_of(a.condition, t if stops_on else negate(t))) for a, t in holds
            ]
            groups.append(tuple(leaves))
            truth = self.truth(part, scope)
            before = all_of(before, negate(truth) if stops_on else truth)
            if before == FALSE:
                break
        found = unite(*groups)
        if any(_is_object(arm.value) for arm in found):
            return found
        if all(isinstance(arm.value, External) for arm in found):
            return found
        return only(Truth(self.truth(node, scope)))

    def _compare(self, node: ast.Compare, scope: Scope) -> Arms:
        return only(Truth(self._resolver.comparisons.compare(node, scope)))

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Arms:
        if isinstance(node.op, ast.Not):
            return only(Truth(negate(self.truth(node.operand, scope))))
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
                return only(arm.value)
        return ()

    def _call(self, node: ast.Call, scope: Scope) -> Arms:
        return self._resolver.platform_test(node) or self._resolver.calls.result(node, scope)

    def truth(self, node: ast.expr, scope: Scope) -> Condition:
        """Return the condition under which a test is true."""
        if isinstance(node, ast.BoolOp):
            parts: list[Condition] = []
            stop = FALSE if isinstance(node.op, ast.And) else TRUE
            for value in node.values:
                part = self.truth(value, scope)
                parts.append(part)
                if part == stop:
                    break
            return all_of(*parts) if isinstance(node.op, ast.And) else any_of(*parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return negate(self.truth(node.operand, scope))
        found = self.arms_truth(self.evaluate(node, scope))
        return settle_absence(found, negate(self._resolver.comparisons.leaf(node, scope)))

    def arms_truth(self, arms: Arms) -> Condition:
        """Return when a value with these arms is true."""
        return any_of(*(all_of(arm.condition, self.value_truth(arm.value)) for arm in arms))

    def value_truth(self, value: Value) -> Condition:
        """Return when one value is true."""
        if isinstance(value, Truth):
            return value.condition
        if isinstance(value, Const):
            return TRUE if value.value else FALSE
        if isinstance(value, Opaque):
            return Leaf(Atom(value.text, value.kind, value.span))
        if isinstance(value, External):
            return self._external_truth(value)
        if isinstance(value, Sequence) and value.items is not None:
            return TRUE if value.items else FALSE
        return TRUE

    def _external_truth(self, value: External) -> Condition:
        if value.source is None:
            return Leaf(Atom(value.name, AtomKind.UNKNOWN))
        module, node = value.source
        text = module.text(node)
        return Leaf(Atom(text, self._resolver.kind_of(text), module.span(node)))

    def condition(self, path: Path) -> Condition:
        """Return the conjunction of the tests on a path."""
        parts: list[Condition] = []
        for item in path:
            if isinstance(item, Test):
                truth = self.truth(item.node, item.scope)
                parts.append(truth if item.branch else negate(truth))
            elif isinstance(item, Exit):
                parts.append(negate(self.condition(item.path)))
        return all_of(*parts)


def is_test(value: Value) -> bool:
    """Whether a value only says yes or no."""
    if isinstance(value, External):
        return value.name == "builtins.bool()"
    return isinstance(value, Truth | Const | Opaque)


def _is_object(value: Value) -> bool:
    """Whether something can be called or looked into, so that its arms matter."""
    return not isinstance(value, Truth | Const | Opaque | External | EnumMember)


def _sliced(value: Sequence, part: ast.Slice) -> Sequence:
    """A slice with constant bounds keeps its positions; any other slice only its elements."""
    bounds = [part.lower, part.upper, part.step]
    if value.items is not None and all(b is None or isinstance(b, ast.Constant) for b in bounds):
        low, high, step = (getattr(b, "value", None) for b in bounds)
        return Sequence(value.items[low:high:step])
    return Sequence(None, unite(value.element, *(value.items or ())))


def strongest(kinds: set[AtomKind]) -> AtomKind:
    """Return the kind of a value made of several: any batch fact makes it one."""
    for kind in (AtomKind.BATCH, AtomKind.LAUNCH, AtomKind.STATE):
        if kind in kinds:
            return kind
    return AtomKind.UNKNOWN


def kinds_in(condition: Condition) -> set[AtomKind]:
    """Return the kinds of all atoms of a condition."""
    return {atom.kind for atom in atoms_of(condition)}


