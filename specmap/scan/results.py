"""What calls give back: tensors of PyTorch's functions and of the tree's own."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from specmap.scan import tensors
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.nodes import arguments_of, nodes_in
from specmap.scan.resolver import Resolver
from specmap.scan.tensortypes import CPU, HOST, UNKNOWN, Host, Tensor, Typed, joined
from specmap.scan.values import External, Frame, FunctionRef, Opaque, Scope, Value

if TYPE_CHECKING:
    from specmap.scan.devices import Devices

# Calls inside calls that are looked into for the device of a result.
_MAX_DEPTH = 3
# Parts of torch that deal in numbers and objects, not in tensors.
_NO_TENSORS = frozenset(
    {
        "accelerator",
        "autograd",
        "backends",
        "cuda",
        "distributed",
        "npu",
        "profiler",
        "version",
        "xpu",
    }
)


class Results:
    """Types the results of calls, for :class:`specmap.scan.devices.Devices`."""

    def __init__(self, resolver: Resolver, devices: Devices) -> None:
        self._resolver = resolver
        self._devices = devices
        self._ambients: dict[FunctionInfo, dict[int, ast.expr]] = {}
        self._returns: dict[tuple[object, ...], Typed] = {}
        self._depth = 0

    def of(self, node: ast.Call, scope: Scope) -> Typed:
        """Return what a call gives back."""
        name = last_name(node.func)
        if isinstance(node.func, ast.Attribute):
            receiver = self._devices.typed(node.func.value, scope)
            if isinstance(receiver, Tensor):
                return self._of_method(node, name, receiver, scope)
        targets = self._resolver.evaluate(node.func, scope)
        parts = [self._called(arm.value, node, scope, ()) for arm in targets]
        found = joined(*parts)
        if found is None and name in tensors.MOVES and isinstance(node.func, ast.Attribute):
            device = self._devices.moved(node, scope)
            return Tensor(device) if device == CPU and name != "to" else None
        return found

    def _of_method(self, node: ast.Call, name: str, receiver: Tensor, scope: Scope) -> Typed:
        if name in tensors.HOST_METHODS:
            return HOST
        if name in tensors.MOVES:
            device = self._devices.moved(node, scope) or receiver.device
            dtype = tensors.dtype_argument(node)
            is_bool = receiver.is_bool if dtype is None else tensors.is_bool_dtype(dtype)
            return Tensor(device, is_bool)
        if name in tensors.PAIRS:
            return Host(receiver)
        return replace(receiver, is_bool=tensors.result_is_bool(node, name, receiver.is_bool))

    def _called(
        self, target: Value, node: ast.Call, scope: Scope, index: tuple[int | None, ...]
    ) -> Typed:
        if isinstance(target, FunctionRef):
            return self.returned(target, node, scope, index)
        if not isinstance(target, External):
            return None if isinstance(target, Opaque) else HOST
        if target.name.startswith("numpy."):
            return Tensor(CPU)
        if target.name.startswith("torch.") and "(" not in target.name:
            if target.name.split(".")[1] in _NO_TENSORS:
                return HOST
            return self._torch(node, scope)
        if target.name in ("builtins.list", "builtins.tuple", "builtins.sorted") and node.args:
            return Host(self._devices.element(node.args[0], scope))
        return HOST if target.name.startswith("builtins.") else None

    def _torch(self, node: ast.Call, scope: Scope) -> Typed:
        name = last_name(node.func)
        keywords = {k.arg: k.value for k in node.keywords}
        is_bool = tensors.result_is_bool(node, name, False)
        if name in tensors.NOT_TENSORS or name[:1].isupper():
            return HOST
        if name in tensors.FACTORIES:
            place = keywords.get("device") or self._ambient(node, scope)
            return Tensor(self._devices.device(place, scope), is_bool)
        if name == "from_numpy":
            return Tensor(CPU)
        parts = [self._tensor_in(argument, scope) for argument in node.args]
        parts += [self._tensor_in(k.value, scope) for k in node.keywords]
        found = [part for part in parts if part is not None]
        if "device" in keywords:
            return Tensor(self._devices.device(keywords["device"], scope), is_bool)
        devices = {part.device for part in found}
        if self._devices.accelerator in devices:
            return Tensor(self._devices.accelerator, is_bool)
        return Tensor(devices.pop() if len(devices) == 1 else UNKNOWN, is_bool)

    def _ambient(self, node: ast.Call, scope: Scope) -> ast.expr | None:
        """The device of an enclosing ``with torch.device(...)``, for calls that name none."""
        function = scope.frame.function
        if function is None:
            return None
        if function not in self._ambients:
            self._ambients[function] = {
                id(inner): item.context_expr
                for block in nodes_in(function.node)
                if isinstance(block, ast.With)
                for item in block.items
                if isinstance(item.context_expr, ast.Call)
                and last_name(item.context_expr.func) == "device"
                for inner in nodes_in(block)
                if isinstance(inner, ast.Call)
            }
        return self._ambients[function].get(id(node))

    def _tensor_in(self, node: ast.expr, scope: Scope) -> Tensor | None:
        """A tensor argument, or the tensors of a list argument."""
        found = self._devices.typed(node, scope)
        return found.element if isinstance(found, Host) else found

    def returned(
        self, target: FunctionRef, node: ast.Call, scope: Scope, index: tuple[int | None, ...]
    ) -> Typed:
        """Return what a function of the tree gives back: its returns, else its annotation.

        Calls with arguments of the same types have the same answer.
        """
        passed = arguments_of(node)
        types = tuple(self._devices.typed(part, scope) for part in passed)
        names = tuple(keyword.arg for keyword in node.keywords)
        key = (target.function, target.self_value, target.closure, index, types, names)
        if key not in self._returns:
            self._returns[key] = None
            self._returns[key] = self._followed(target, node, scope, index)
        return self._returns[key]

    def _followed(
        self, target: FunctionRef, node: ast.Call, scope: Scope, index: tuple[int | None, ...]
    ) -> Typed:
        function = target.function
        found: Typed = None
        if self._depth < _MAX_DEPTH:
            frame = Frame(function, function.module, target.self_value, node, scope, target.closure)
            self._depth += 1
            try:
                returns = self._resolver.run(frame).returns
                values = [(item.value, item.scope) for item in returns if item.value is not None]
                found = joined(*(self._devices.picked(v, at, index) for v, at in values))
            finally:
                self._depth -= 1
        if isinstance(found, Host) or (found is not None and found.device != UNKNOWN):
            return found
        annotation = getattr(function.node, "returns", None)
        arms = self._resolver.types.annotation(annotation, Scope(Frame(None, function.module)))
        arms = self._resolver.pick(arms, index)
        return joined(found, self._devices.arms(arms, function.name, UNKNOWN))
