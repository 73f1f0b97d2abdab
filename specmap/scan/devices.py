"""Which expressions are tensors, and on which side they live.

A tensor's device follows, in this order: how a local was bound, what a caller passed, what
was stored to an attribute, the annotation, the name. A tensor that is only annotated lives
on the accelerator unless its name says otherwise.
"""

from __future__ import annotations

import ast
import weakref

from specmap.scan import tensors
from specmap.scan.guards import Binding, Bound, Choice
from specmap.scan.module import ClassInfo, last_name
from specmap.scan.parameters import argument
from specmap.scan.resolver import Resolver
from specmap.scan.results import Results
from specmap.scan.tensortypes import (
    CPU,
    CUDA,
    HOST,
    UNKNOWN,
    Host,
    Tensor,
    Typed,
    asks_device,
    comprehension_scope,
    joined,
)
from specmap.scan.values import (
    NONE,
    Arms,
    External,
    Frame,
    FunctionRef,
    Instance,
    Opaque,
    Scope,
    Sequence,
    Value,
)

_MAX_DEPTH = 40


class Devices:
    """Types expressions of one tree as tensors; every answer is kept."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        # A weak reference: what was typed is freed with these, and not by a search for circles.
        self._results = Results(resolver, weakref.proxy(self))
        self.accelerator = CPU if resolver.platform == CPU else CUDA
        self._known: dict[tuple[ast.expr, Scope], Typed] = {}
        self._attributes: dict[tuple[Instance, str], Typed] = {}
        self._busy: set[object] = set()
        self._depth = 0

    def typed(self, node: ast.expr, scope: Scope) -> Typed:
        """Return what an expression is; ``None`` when nothing says that it is a tensor."""
        key = (node, scope)
        if key in self._known:
            return self._known[key]
        if key in self._busy or self._depth > _MAX_DEPTH:
            return None
        self._busy.add(key)
        self._depth += 1
        try:
            method = getattr(self, f"_{type(node).__name__.lower()}", None)
            found: Typed = method(node, scope) if method else HOST
        finally:
            self._busy.discard(key)
            self._depth -= 1
        self._known[key] = found
        return found

    def tensor(self, node: ast.expr, scope: Scope) -> Tensor | None:
        """Return the tensor that an expression is, if it is one."""
        found = self.typed(node, scope)
        return found if isinstance(found, Tensor) else None

    def evaluate(self, node: ast.expr, scope: Scope) -> Arms:
        """Return everything the resolver says an expression can be."""
        return self._resolver.evaluate(node, scope)

    def is_cpu_name(self, name: str) -> bool:
        """Whether a name says that the value is kept on the host."""
        return any(word in name for word in self._resolver.vocabulary.cpu_names)

    def device(self, node: ast.expr | None, scope: Scope) -> str:
        """Return the device that a ``device`` argument names; no argument means the CPU."""
        if node is None:
            return CPU
        if isinstance(node, ast.Constant):
            return CPU if node.value is None or str(node.value) == CPU else self.accelerator
        if isinstance(node, ast.Call) and last_name(node.func) == "device" and node.args:
            return self.device(node.args[0], scope)
        if isinstance(node, ast.Attribute) and node.attr == "device":
            owner = self.typed(node.value, scope)
            return owner.device if isinstance(owner, Tensor) else self.accelerator
        if isinstance(node, ast.Name):
            return self._device_name(node, scope)
        return self.accelerator

    def _device_name(self, node: ast.Name, scope: Scope) -> str:
        binding = scope.env.get(node.id)
        if isinstance(binding, Bound) and not binding.index and binding.node is not node:
            return self.device(binding.node, binding.scope)
        if binding is None:
            passed = self._passed(scope.frame, node.id)
            if passed is not None:
                return self.device(*passed)
        return self.accelerator

    def moved(self, node: ast.Call, scope: Scope) -> str | None:
        """Return the device that ``x.to(...)``, ``x.cpu()`` or ``x.cuda()`` moves to."""
        name = last_name(node.func)
        if name in (CPU, "numpy"):
            return CPU
        if name == CUDA:
            return self.accelerator
        keyword = next((k.value for k in node.keywords if k.arg in ("device", "other")), None)
        for part in [*([] if keyword is None else [keyword]), *node.args[:1]]:
            other = self.tensor(part, scope)
            if other is not None:
                return other.device
            if part is keyword or tensors.names_device(part):
                return self.device(part, scope)
        return None

    def _constant(self, node: ast.Constant, scope: Scope) -> Typed:
        return None if node.value is None else HOST

    # -- names and attributes ----------------------------------------------------------

    def _name(self, node: ast.Name, scope: Scope) -> Typed:
        found = self._binding_or_parameter(node.id, scope)
        if self.is_cpu_name(node.id) and (found is None or getattr(found, "device", "") == UNKNOWN):
            return Tensor(CPU, getattr(found, "is_bool", False))
        return found

    def _binding_or_parameter(self, name: str, scope: Scope) -> Typed:
        binding = scope.env.get(name)
        if binding is not None:
            return self._binding(binding, name)
        frame = scope.frame
        if frame.function is not None and name in frame.function.positions:
            return self._parameter(frame, name)
        if frame.closure is not None and name not in frame.extra:
            return self._binding_or_parameter(name, frame.closure)
        return self.arms(self._resolver.names.name(name, scope), name)

    def _binding(self, binding: Binding | None, name: str) -> Typed:
        if isinstance(binding, Bound):
            return self.picked(binding.node, binding.scope, binding.index)
        if isinstance(binding, Choice):
            key = ("binding", id(binding))
            if key in self._busy:
                return None
            self._busy.add(key)
            try:
                then = self._binding(binding.then, name)
                other = self._binding(binding.other, name)
            finally:
                self._busy.discard(key)
            if isinstance(then, Tensor) and asks_device(binding.path):
                return then
            return joined(then, other)
        return None if binding is None else HOST

    def _parameter(self, frame: Frame, name: str) -> Typed:
        key = ("parameter", id(frame), name)
        if key in self._busy:
            return None
        self._busy.add(key)
        try:
            passed = self._passed(frame, name)
            found = None if passed is None else self.typed(*passed)
        finally:
            self._busy.discard(key)
        if isinstance(found, Tensor) and found.device != UNKNOWN:
            return found
        function = frame.function
        assert function is not None
        annotation = function.parameters[function.positions[name]].annotation
        declared = self._annotated(annotation, frame, name)
        if isinstance(found, Tensor) and isinstance(declared, Tensor):
            return Tensor(declared.device, found.is_bool)
        return found if isinstance(found, Tensor | Host) else declared

    def _passed(self, frame: Frame, name: str) -> tuple[ast.expr, Scope] | None:
        """The argument that the frame's call passes, with the scope it is evaluated in."""
        function = frame.function
        if function is None or frame.call is None or frame.caller is None:
            return None
        if name not in function.positions:
            return None
        bound = frame.self_value is not None and not function.is_static
        node = argument(function, frame.call, name, bound=bound)
        return None if node is None else (node, frame.caller)

    def _annotated(self, annotation: ast.expr | None, frame: Frame, name: str) -> Typed:
        if annotation is None:
            return None
        scope = Scope(Frame(None, frame.module))
        return self.arms(self._resolver.types.annotation(annotation, scope), name)

    def arms(self, arms: Arms, name: str, default: str | None = None) -> Typed:
        """What a resolver's answer says: a declared tensor's device is told by its name."""
        return joined(*(self._value(arm.value, name, default) for arm in arms))

    def _value(self, value: Value, name: str, default: str | None) -> Typed:
        if value == NONE or isinstance(value, Opaque):
            return None
        if isinstance(value, External):
            if value.name.startswith("numpy.") and value.name.endswith("()"):
                return Tensor(CPU)
            if not tensors.is_tensor_type(value.name):
                return HOST if value.name.startswith("builtins.") else None
            return Tensor(CPU if self.is_cpu_name(name) else default or self.accelerator)
        if isinstance(value, Sequence):
            items = tuple(self.arms(item, name) for item in value.items or ())
            element = self.arms(value.element, name) if value.element else joined(*items)
            return Host(element if isinstance(element, Tensor) else None, items)
        return HOST

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Typed:
        receiver = self.typed(node.value, scope)
        if isinstance(receiver, Tensor) and node.attr in tensors.HOST_ATTRIBUTES:
            return HOST
        if isinstance(receiver, Tensor) and node.attr in tensors.SAME_ATTRIBUTES:
            return receiver
        found = joined(
            *(
                self._member(arm.value, node.attr)
                for arm in self._resolver.evaluate(node.value, scope)
                if isinstance(arm.value, Instance)
            )
        )
        found = found or self.arms(self._resolver.evaluate(node, scope), node.attr)
        if found is None:
            owners = self._resolver.evaluate(node.value, scope)
            found = joined(*(self._beyond(arm.value, node.attr) for arm in owners))
        if self.is_cpu_name(node.attr) and not isinstance(found, Host):
            return Tensor(CPU, getattr(found, "is_bool", False))
        return found

    def _beyond(self, value: Value, name: str) -> Typed:
        """An attribute of an object whose class is not followed, by its own module."""
        if not isinstance(value, External) or not value.name.endswith("()"):
            return None
        place, _, last = value.name.removesuffix("()").rpartition(".")
        found = self._class_beyond(place, last)
        if found is None:
            return None
        if name not in found.annotations:
            return self._member(self._resolver.any_instance(found), name)
        return self._annotated(found.annotations[name], Frame(None, found.module), name)

    def _class_beyond(self, place: str, name: str, depth: int = 3) -> ClassInfo | None:
        """Return a class that is not followed, or that a function declares to give back."""
        inside = place.startswith(f"{self._resolver.vocabulary.package}.")
        module = self._resolver.tree.module(place) if inside and depth else None
        if module is None:
            return None
        if name in module.classes:
            return module.classes[name]
        if name in module.functions:
            declared = getattr(module.functions[name].node, "returns", None)
            text = declared.value if isinstance(declared, ast.Constant) else None
            named = text if isinstance(text, str) else last_name(declared) if declared else ""
            return self._class_beyond(place, named, depth - 1) if named else None
        origin, original = module.imports.get(name, ("", None))
        if original is not None:
            return self._class_beyond(origin, original, depth - 1)
        stars = (self._class_beyond(star, name, depth - 1) for star in module.stars)
        return next((cls for cls in stars if cls is not None), None)

    def _member(self, instance: Instance, name: str) -> Typed:
        """An attribute by its annotation, else by what is stored to it."""
        key = (instance, name)
        if key not in self._attributes:
            self._attributes[key] = None
            self._attributes[key] = self._stored(instance, name)
        return self._attributes[key]

    def _stored(self, instance: Instance, name: str) -> Typed:
        declared = self.arms(self._resolver.members.named(instance, name), name)
        for cls in self._resolver.types.mro(instance.cls):
            if name in cls.annotations and declared is not None:
                return declared
        parts = [
            self.picked(found.store.value, found.store.scope, found.store.index)
            for found in self._resolver.attributes.stores(instance, name)
            if not found.store.item
        ]
        return joined(*parts) or declared

    # -- parts and operators -----------------------------------------------------------

    def picked(self, node: ast.expr, scope: Scope, index: tuple[int | None, ...]) -> Typed:
        """One part of a value that is taken apart by tuple positions or by iterating."""
        if not index:
            return self.typed(node, scope)
        first, rest = index[0], index[1:]
        if isinstance(node, ast.Tuple | ast.List) and first is not None:
            plain = not any(isinstance(e, ast.Starred) for e in node.elts)
            if plain and first < len(node.elts):
                return self.picked(node.elts[first], scope, rest)
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if first is None and rest and name in ("zip", "enumerate"):
                return self._loop_item(name, node, scope, rest)
            targets = self._resolver.evaluate(node.func, scope)
            functions = [arm.value for arm in targets if isinstance(arm.value, FunctionRef)]
            if functions:
                return joined(*(self._results.returned(f, node, scope, index) for f in functions))
        found = self.typed(node, scope)
        return found.at(first) if isinstance(found, Host) else found

    def _loop_item(
        self, name: str, node: ast.Call, scope: Scope, rest: tuple[int | None, ...]
    ) -> Typed:
        position = rest[0] or 0
        if name == "enumerate":
            if position == 0 or not node.args:
                return HOST
            return self.picked(node.args[0], scope, (None, *rest[1:]))
        if position >= len(node.args):
            return None
        return self.picked(node.args[position], scope, (None, *rest[1:]))

    def element(self, node: ast.expr, scope: Scope) -> Tensor | None:
        """Return the tensor that iterating an expression gives, if it gives one."""
        found = self.picked(node, scope, (None,))
        return found if isinstance(found, Tensor) else None

    def _call(self, node: ast.Call, scope: Scope) -> Typed:
        return self._results.of(node, scope)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Typed:
        found = self.typed(node.value, scope)
        if isinstance(found, Host) and not isinstance(node.slice, ast.Slice):
            return found.at(node.slice)
        return found

    def _binop(self, node: ast.BinOp, scope: Scope) -> Typed:
        left, right = self.typed(node.left, scope), self.typed(node.right, scope)
        both = [part for part in (left, right) if isinstance(part, Tensor)]
        if not both:
            return joined(left, right)
        logical = isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
        device = next((p.device for p in both if p.device == self.accelerator), both[0].device)
        return Tensor(device, logical and all(part.is_bool for part in both))

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Typed:
        return HOST if isinstance(node.op, ast.Not) else self.typed(node.operand, scope)

    def _compare(self, node: ast.Compare, scope: Scope) -> Typed:
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return HOST
        parts = [self.tensor(part, scope) for part in (node.left, *node.comparators)]
        found = [part.device for part in parts if part is not None]
        if not found:
            return HOST
        return Tensor(self.accelerator if self.accelerator in found else found[0], True)

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Typed:
        """The last value; the others are only handed on after Python asked for their truth."""
        if isinstance(node.op, ast.And):
            return self.typed(node.values[-1], scope)
        return joined(*(self.typed(value, scope) for value in node.values))

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Typed:
        return joined(self.typed(node.body, scope), self.typed(node.orelse, scope))

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Typed:
        return self.typed(node.value, scope)

    def _starred(self, node: ast.Starred, scope: Scope) -> Typed:
        return self.typed(node.value, scope)

    def _tuple(self, node: ast.Tuple | ast.List, scope: Scope) -> Typed:
        items = tuple(self.typed(element, scope) for element in node.elts)
        starred = any(isinstance(element, ast.Starred) for element in node.elts)
        found = joined(*items)
        return Host(found if isinstance(found, Tensor) else None, () if starred else items)

    _list = _tuple

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp, scope: Scope) -> Typed:
        inner = comprehension_scope(node, scope)
        return Host(self.tensor(node.elt, inner))

    _generatorexp = _listcomp
