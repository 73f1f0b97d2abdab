"""Operations that make the host wait for the device, one expression at a time.

Facts of PyTorch and CUDA: a copy from device to host without ``non_blocking`` waits; a copy
from pageable host memory goes through a staging buffer and waits; an operation whose result
size depends on the data reads that size back; a tensor used as a Python number, a truth
value or text is read back. ``x[mask] = scalar`` is ``masked_fill`` and does not wait, nor
does iterating a tensor (``unbind``): only the use of an element does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specmap.codemap.graph import SyncKind
from specmap.scan import tensors
from specmap.scan.devices import Devices
from specmap.scan.module import last_name
from specmap.scan.nodes import arguments_of
from specmap.scan.tensortypes import CPU, UNKNOWN, Tensor
from specmap.scan.values import External, FunctionRef, Opaque, Scope

_READS = frozenset({"item", "tolist", "cpu", "numpy"})
_CASTS = frozenset({"int", "float", "bool"})
_TEXTS = frozenset({"print", "str", "repr", "format", "ascii"})
_COMPARING = frozenset({"max", "min", "sorted", "any", "all"})
_WAITED_FOR = ("stream", "event", "device", "platform", "done", "ready")


@dataclass(frozen=True, slots=True, eq=False)
class Idiom:
    """One operation: the expression, what moves or waits (``operand``), where it is used."""

    node: ast.expr
    kind: SyncKind
    device: str
    rule: str
    operand: ast.expr | None
    consumer: ast.expr | None = None

    @property
    def reads_back(self) -> bool:
        """Whether data goes from the device to the host because the source asks for it."""
        return self.rule in ("item", "tolist", "cpu", "numpy", "to-cpu", "copy-to-cpu", "cast")


class Idioms:
    """Recognises the operations; the devices tell real ones from look-alikes."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def truth(self, node: ast.expr, scope: Scope) -> Iterator[Idiom]:
        """A tensor whose truth value Python asks for."""
        tensor = self._devices.tensor(node, scope)
        if tensor is not None:
            yield self._implicit(node, tensor, "truth-test", node)

    def at(self, node: ast.expr, scope: Scope) -> Iterator[Idiom]:
        """Yield what one expression (not its parts) does."""
        if isinstance(node, ast.Call):
            yield from self._call(node, scope)
        elif isinstance(node, ast.Subscript):
            yield from self._index(node, scope)
        elif isinstance(node, ast.JoinedStr):
            shown = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            yield from self._text(node, shown, scope)
        elif isinstance(node, ast.BinOp) and _is_template(node.left, node.op):
            yield from self._text(node, _items(node.right), scope)
        elif isinstance(node, ast.Compare):
            for operator, right in zip(node.ops, node.comparators, strict=True):
                tensor = self._devices.tensor(right, scope)
                if tensor is not None and isinstance(operator, ast.In | ast.NotIn):
                    yield self._implicit(node, tensor, "contains", right)

    def masked_store(self, node: ast.Subscript, value: ast.expr, scope: Scope) -> Iterator[Idiom]:
        """``x[mask] = tensor``: the mask is turned into indices first."""
        stored = self._devices.tensor(value, scope)
        mask = self._devices.tensor(node.slice, scope)
        if stored is not None and mask is not None and mask.is_bool:
            yield self._implicit(node, mask, "mask-store", node.slice)

    def _text(self, node: ast.expr, shown: Sequence[ast.expr], scope: Scope) -> Iterator[Idiom]:
        """Text is made of values: the first tensor among them is read back there."""
        for part in shown:
            tensor = self._devices.tensor(part, scope)
            if tensor is not None and not self._devices.is_cpu_name(last_name(part)):
                yield self._implicit(node, tensor, "text", part)
                return

    def _implicit(
        self,
        node: ast.expr,
        tensor: Tensor,
        rule: str,
        operand: ast.expr,
        consumer: ast.expr | None = None,
    ) -> Idiom:
        kind = SyncKind.NONE if tensor.device == CPU else SyncKind.IMPLICIT
        return Idiom(node, kind, tensor.device, rule, operand, consumer)

    def _explicit(
        self, node: ast.expr, tensor: Tensor, rule: str, operand: ast.expr | None
    ) -> Idiom:
        kind = SyncKind.NONE if tensor.device == CPU else SyncKind.EXPLICIT
        return Idiom(node, kind, tensor.device, rule, operand)

    def _call(self, node: ast.Call, scope: Scope) -> Iterator[Idiom]:
        name = last_name(node.func)
        if name == "synchronize":
            yield from self._synchronize(node, scope)
            return
        if isinstance(node.func, ast.Name):
            yield from self._builtin(node, name, scope)
            return
        if not isinstance(node.func, ast.Attribute):
            return
        receiver = self._devices.typed(node.func.value, scope)
        if isinstance(receiver, Tensor):
            yield from self._method(node, name, node.func.value, receiver, scope)
        elif self._is_of(node, scope, "torch."):
            yield from self._function(node, name, scope)
        elif _is_template(node.func.value) or self._is_of(node, scope, "logging."):
            shown = arguments_of(node)
            yield from self._text(node, shown, scope)
        elif self._is_of(node, scope, "math."):
            yield from self._numbers(node, scope)
        elif receiver is None and name == "cpu" and not node.args:
            # Only tensors (and modules, never moved in a cycle) have this method.
            yield self._explicit(node, Tensor(UNKNOWN), name, node.func.value)

    def _numbers(self, node: ast.Call, scope: Scope) -> Iterator[Idiom]:
        """A function of ``math`` takes Python numbers: a tensor is cast to one."""
        for part in node.args:
            tensor = self._devices.tensor(part, scope)
            if tensor is not None:
                yield self._explicit(node, tensor, "cast", part)

    def _is_of(self, node: ast.Call, scope: Scope, package: str) -> bool:
        return any(
            isinstance(arm.value, External) and arm.value.name.startswith(package)
            for arm in self._devices.evaluate(node.func, scope)
        )

    def _builtin(self, node: ast.Call, name: str, scope: Scope) -> Iterator[Idiom]:
        if not node.args:
            return
        if name in _CASTS or (name in _COMPARING and len(node.args) == 1):
            tensor = self._devices.tensor(node.args[0], scope)
            if tensor is None:
                return
            if name in _CASTS:
                yield self._explicit(node, tensor, "cast", node.args[0])
            else:
                yield self._implicit(node, tensor, "truth-test", node.args[0])
        elif name in _TEXTS:
            yield from self._text(node, node.args, scope)
        elif name == "range":
            yield from self._sizes(node, node.args, scope)

    def _method(
        self, node: ast.Call, name: str, receiver: ast.expr, tensor: Tensor, scope: Scope
    ) -> Iterator[Idiom]:
        if name in tensors.MOVES:
            yield from self._move(node, name, receiver, tensor, scope)
        elif name in _READS:
            yield self._explicit(node, tensor, name, receiver)
        elif name == "copy_" and node.args:
            yield from self._copy(node, receiver, tensor, scope)
        elif name in tensors.DATA_SIZED or (name == "repeat_interleave" and node.args):
            yield from self._data_sized(node, name, tensor, node.args[:1], receiver, scope)
        elif name in tensors.HOST_TESTS:
            yield self._implicit(node, tensor, "truth-test", receiver)
        elif name in tensors.SIZED_METHODS:
            yield from self._sizes(node, node.args, scope)

    def _move(
        self, node: ast.Call, name: str, receiver: ast.expr, tensor: Tensor, scope: Scope
    ) -> Iterator[Idiom]:
        target = self._devices.moved(node, scope)
        if target is None or tensors.flag(node, "non_blocking"):
            return
        if target == CPU:
            yield self._explicit(node, tensor, name if name in _READS else "to-cpu", receiver)
        elif target != UNKNOWN and tensor.device != target:
            # From an unknown side the copy may be none at all; the record says so.
            device = target if tensor.device == CPU else UNKNOWN
            yield Idiom(node, SyncKind.EXPLICIT, device, "host-to-device", receiver)

    def _copy(
        self, node: ast.Call, receiver: ast.expr, tensor: Tensor, scope: Scope
    ) -> Iterator[Idiom]:
        source = self._devices.tensor(node.args[0], scope)
        asynchronous = tensors.flag(node, "non_blocking") or (
            len(node.args) > 1 and getattr(node.args[1], "value", True) is not False
        )
        if source is None or asynchronous or UNKNOWN in (source.device, tensor.device):
            return
        if source.device != tensor.device:
            rule = "copy-to-cpu" if tensor.device == CPU else "host-to-device"
            device = source.device if tensor.device == CPU else tensor.device
            yield Idiom(node, SyncKind.EXPLICIT, device, rule, node.args[0])

    def _function(self, node: ast.Call, name: str, scope: Scope) -> Iterator[Idiom]:
        """A function of the ``torch`` module."""
        if name in tensors.FROM_HOST_DATA:
            yield from self._from_host(node, scope)
        elif name in tensors.SIZED:
            sizes = node.args[:1] if name in ("empty", "full", "zeros", "ones") else node.args
            sizes = [*sizes, *(k.value for k in node.keywords if k.arg in ("size", "end", "start"))]
            yield from self._sizes(node, sizes, scope)
        first = self._devices.tensor(node.args[0], scope) if node.args else None
        if first is None:
            return
        if name in tensors.DATA_SIZED or (name == "where" and len(node.args) == 1):
            yield from self._data_sized(node, name, first, [], node.args[0], scope)
        elif name == "repeat_interleave":
            yield from self._data_sized(node, name, first, node.args[1:2], node.args[0], scope)
        elif name in tensors.HOST_TESTS:
            yield self._implicit(node, first, "truth-test", node.args[0])

    def _from_host(self, node: ast.Call, scope: Scope) -> Iterator[Idiom]:
        made = self._devices.tensor(node, scope)
        if made is None or made.device == CPU or not node.args:
            return
        source = self._devices.tensor(node.args[0], scope)
        if source is None or source.device == CPU:
            yield Idiom(node, SyncKind.EXPLICIT, made.device, "host-to-device", node.args[0])

    def _data_sized(
        self,
        node: ast.Call,
        name: str,
        tensor: Tensor,
        repeats: list[ast.expr],
        operand: ast.expr,
        scope: Scope,
    ) -> Iterator[Idiom]:
        if name == "repeat_interleave":
            keyword = [k.value for k in node.keywords if k.arg == "repeats"]
            counts = [self._devices.tensor(part, scope) for part in [*repeats, *keyword]]
            if tensors.flag(node, "output_size") or not any(counts):
                return
        yield self._implicit(node, tensor, "data-dependent-size", operand)

    def _sizes(self, node: ast.Call, sizes: list[ast.expr], scope: Scope) -> Iterator[Idiom]:
        """A tensor where a Python number is wanted: an ``.item()`` that nobody wrote."""
        for size in sizes:
            parts = size.elts if isinstance(size, ast.Tuple | ast.List) else [size]
            for part in parts:
                tensor = self._devices.tensor(part, scope)
                if tensor is not None:
                    yield self._implicit(part, tensor, "tensor-size", part, node.func)

    def _index(self, node: ast.Subscript, scope: Scope) -> Iterator[Idiom]:
        if isinstance(node.ctx, ast.Del):
            return
        base = self._devices.typed(node.value, scope)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, ast.Slice):
                bounds = [b for b in (part.lower, part.upper, part.step) if b is not None]
                for bound in bounds:
                    tensor = self._devices.tensor(bound, scope)
                    if tensor is not None:
                        yield self._implicit(bound, tensor, "tensor-bound", bound, node)
                continue
            tensor = self._devices.tensor(part, scope)
            if tensor is not None and tensor.is_bool and isinstance(base, Tensor):
                device = base.device if tensor.device == UNKNOWN else tensor.device
                yield self._implicit(node, Tensor(device), "mask-index", part)

    def _synchronize(self, node: ast.Call, scope: Scope) -> Iterator[Idiom]:
        """``synchronize()`` of a stream, an event or the device; not of a SGLang object."""
        accelerator = self._devices.accelerator
        if accelerator == CPU:
            return
        device = ""
        for arm in self._devices.evaluate(node.func, scope):
            value = arm.value
            if isinstance(value, FunctionRef):
                return
            if isinstance(value, External) and tensors.waits_for_device(value.name):
                device = accelerator
            elif isinstance(value, Opaque) and _names_a_wait(node.func):
                device = device or UNKNOWN
        operand = node.func.value if isinstance(node.func, ast.Attribute) else None
        if device:
            yield Idiom(node, SyncKind.EXPLICIT, device, "synchronize", operand)


def _is_template(node: ast.expr, operator: ast.operator | None = None) -> bool:
    """Whether ``node % ...`` or ``node.format(...)`` fills in a text."""
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text and (operator is None or isinstance(operator, ast.Mod))


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _names_a_wait(function: ast.expr) -> bool:
    """Whether something of unknown type is called like a stream, an event or a device."""
    owner = last_name(function.value).lower() if isinstance(function, ast.Attribute) else ""
    return any(word in owner for word in _WAITED_FOR)
