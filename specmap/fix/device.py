"""The emulated device: values on the CPU under another device's name, every crossing seen.

Needs torch 2.13 or newer, where a device can be declared in Python. A subclass of tensors wraps
CPU tensors; a dispatch mode sees every operator, a function mode what never becomes one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from specmap.fix.crossing import BLOCKING, CaptureRefusedError, Crossing, Kind

NAME = "specgpu"
_PART = Path(__file__).parent
_TORCH = str(Path(torch.__file__).parent)
_ATEN = torch.ops.aten
_SYNC = {
    _ATEN._local_scalar_dense.default, _ATEN.equal.default, _ATEN.is_nonzero.default,
    _ATEN.allclose.default,
}  # fmt: skip
_SHAPE = {
    _ATEN.nonzero.default, _ATEN.masked_select.default, _ATEN._unique2.default,
    _ATEN.unique_dim.default, _ATEN.unique_consecutive.default, _ATEN.bincount.default,
}  # fmt: skip
_INDEXED = {
    _ATEN.index.Tensor, _ATEN.index_put_.default, _ATEN.index_put.default,
    _ATEN._index_put_impl_.default,
}  # fmt: skip
_MASKS = (torch.bool, torch.uint8)


@dataclass(frozen=True)
class Step:
    """One operator on a tape: its arguments as they were, and what it wrote."""

    operator: Any
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    result: Any
    aliases: bool


@dataclass
class Log:
    """What happened on the device. ``tape`` is a list while a capture is under way.

    ``pinned`` holds the storages of pinned memory by address, so that none is used again.
    """

    crossings: list[Crossing] = field(default_factory=list)
    tape: list[Step] | None = None
    pinned: dict[int, Any] = field(default_factory=dict)

    def note(self, kind: Kind, operation: object) -> None:
        """Record a crossing.

        Raises:
            CaptureRefusedError: a capture is under way and the kind blocks.
        """
        crossing = Crossing(kind, str(operation), _site())
        self.crossings.append(crossing)
        if self.tape is not None and kind in BLOCKING:
            raise CaptureRefusedError(crossing)

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Count a host tensor as pinned from now on."""
        self.note(Kind.PINNED, "pinned memory")
        storage = tensor.untyped_storage()
        self.pinned[storage.data_ptr()] = storage
        return tensor

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Tell whether a host tensor lies in pinned memory."""
        return tensor.untyped_storage().data_ptr() in self.pinned


LOG = Log()


def _site() -> str:
    """The nearest line that is neither torch's nor the emulator's."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_TORCH) and Path(file).parent != _PART:
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


class DeviceTensor(torch.Tensor):
    """A tensor of the emulated device; ``inner`` holds its values on the CPU."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> DeviceTensor:
        """Wrap a tensor of the CPU, with its sizes and strides."""
        made: DeviceTensor = torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), dtype=inner.dtype,
            device=torch.device(NAME, 0), storage_offset=inner.storage_offset(),
            requires_grad=False,
        )  # fmt: skip
        made.inner = inner
        return made

    @property
    def is_cuda(self) -> bool:
        """Code that asks takes the device for the accelerator that it stands for."""
        return True

    def __repr__(self, **options: object) -> str:
        LOG.note(Kind.SYNC, "print")
        return f"tensor({self.inner.tolist()}, device='{NAME}:0')"

    def tolist(self) -> Any:
        """Copy the values to the host and wait."""
        LOG.note(Kind.SYNC, "tolist")
        return self.inner.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


def is_device(device: object) -> bool:
    """Tell whether a device, or its name, is the emulated one."""
    return device is not None and torch.device(device).type == NAME


def inner_of(value: Any) -> Any:
    """Return a tensor's values on the CPU; anything else as it is."""
    return value.inner if isinstance(value, DeviceTensor) else value


def _run(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run an operator on the values, note its crossings, and keep it on the tape."""
    tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
    here = any(isinstance(t, DeviceTensor) for t in tensors)
    if here:
        _note_reads(operator, args, kwargs)
    lands = _note_copies(operator, args, kwargs, here)
    if here and operator is not _ATEN.copy_.default:
        for number in (t for t in tensors if t.dim() == 0 and not isinstance(t, DeviceTensor)):
            # Kernels take a number by value, but where() copies it to the device first.
            copied = operator is _ATEN.where.self
            LOG.note(_upload(number, True) if copied else Kind.SCALAR, operator)
    plain, named = tree_map(inner_of, (tuple(args), dict(kwargs)))
    if is_device(named.get("device")):
        named["device"] = torch.device("cpu")
    named.pop("pin_memory", None)
    result = operator(*plain, **named)
    if LOG.tape is not None and (lands or here):
        own = {id(inner_of(t)) for t in tensors if isinstance(t, DeviceTensor)}
        LOG.tape.append(_step(operator, plain, named, result, own))
    written = _written(operator, args, kwargs)
    if written is not None:
        return written
    return tree_map(
        lambda t: DeviceTensor(t) if isinstance(t, torch.Tensor) and lands else t, result
    )


def _step(operator: Any, plain: Any, named: Any, result: Any, own: set[int]) -> Step:
    """A step; a host tensor without dimensions goes by value, as a kernel takes it."""

    def kept(value: Any) -> Any:
        scalar = isinstance(value, torch.Tensor) and value.dim() == 0 and id(value) not in own
        return value.clone() if scalar and operator is not _ATEN.copy_.default else value

    args, kwargs = tree_map(kept, (plain, named))
    aliases = any(a.alias_info is not None for a in operator._schema.arguments)
    return Step(operator, args, kwargs, result, aliases)


def _written(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The argument that an operator writes and returns; ``None`` where it makes something."""
    schema = operator._schema
    if not schema.is_mutable or not schema.returns or schema.returns[0].alias_info is None:
        return None
    for index, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            return args[index] if index < len(args) else kwargs.get(argument.name)
    return None


def _note_reads(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Note operators that need a value, or a number of values, on the host."""
    if operator in _SYNC:
        LOG.note(Kind.SYNC, operator)
    repeats = operator is _ATEN.repeat_interleave.Tensor and kwargs.get("output_size") is None
    if operator in _SHAPE or repeats:
        LOG.note(Kind.SYNC, operator)
        LOG.note(Kind.SHAPE, operator)
    for index in args[1] if operator in _INDEXED else ():
        if index is None:
            continue
        if index.dtype in _MASKS:
            # A number that is stored through a mask becomes masked_fill: no size is needed.
            filled = operator is not _ATEN.index.Tensor and args[2].numel() == 1
            if not filled:
                LOG.note(Kind.SYNC, operator)
                LOG.note(Kind.SHAPE, operator)
        elif not isinstance(index, DeviceTensor):
            LOG.note(Kind.PAGEABLE, f"{operator} with an index on the host")


def _note_copies(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any], here: bool) -> bool:
    """Note copies between host and device; return whether the result is on the device."""
    device = kwargs.get("device")
    if operator is _ATEN._to_copy.default:
        source = isinstance(args[0], DeviceTensor)
        lands = source if device is None else is_device(device)
        if source and not lands:
            # A copy to the host that does not wait gets pinned memory of its own.
            LOG.note(Kind.ASYNC if kwargs.get("non_blocking") else Kind.SYNC, operator)
        elif lands and not source:
            LOG.note(_upload(args[0], bool(kwargs.get("non_blocking"))), operator)
        return lands
    if operator is _ATEN.copy_.default:
        target, source = (isinstance(a, DeviceTensor) for a in args[:2])
        waits = not (args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
        if source and not target:
            pinned = LOG.is_pinned(args[0])
            kind = Kind.SYNC if waits else Kind.ASYNC if pinned else Kind.PAGEABLE
            LOG.note(kind, operator)
        elif target and not source:
            LOG.note(_upload(args[1], not waits), operator)
        return here
    return here if device is None else is_device(device)


def _upload(source: torch.Tensor, non_blocking: bool) -> Kind:
    if not LOG.is_pinned(source):
        return Kind.PAGEABLE
    return Kind.ASYNC if non_blocking else Kind.SYNC


class _Dispatch(TorchDispatchMode):
    """Sees operators that make device tensors from nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Sees what Python code asks for before it becomes operators."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, named = _renamed(func, args, dict(kwargs or {}))
        if func is torch.Tensor.cuda:
            func, args = torch.Tensor.to, (args[0], torch.device(NAME, 0), *args[2:])
        if func is torch.Tensor.pin_memory:
            return LOG.pin(args[0].clone())
        if func is torch.Tensor.is_pinned:
            return LOG.is_pinned(args[0])
        if named.pop("pin_memory", False):
            return LOG.pin(func(*args, **named))
        if func in (torch.tensor, torch.as_tensor) and not isinstance(args[0], torch.Tensor):
            # Numbers of the device in a list are read one by one.
            numbers = tree_map(lambda v: v.item() if isinstance(v, DeviceTensor) else v, args[0])
            args = (numbers, *args[1:])
            if is_device(named.get("device")):
                del named["device"]
                made = func(*args, **named)
                LOG.note(Kind.PAGEABLE, "torch.tensor of host values")
                return DeviceTensor(made)
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            args = _indexed(args)
        return func(*args, **named)


def _renamed(func: Any, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Put the emulated device where the accelerator is named."""
    if _is_cuda(named.get("device")):
        named["device"] = torch.device(NAME, 0)
    if func is torch.Tensor.to:
        args = tuple(torch.device(NAME, 0) if _is_cuda(a) else a for a in args)
    return args, named


def _is_cuda(value: object) -> bool:
    return isinstance(value, str | torch.device) and str(value).startswith("cuda")


def _indexed(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Note what an index brings along from the host, and move it over."""
    if not isinstance(args[0], DeviceTensor):
        return args
    index = args[1] if isinstance(args[1], tuple) else (args[1],)
    moved = []
    for part in index:
        if isinstance(part, list):
            LOG.note(Kind.PAGEABLE, "index by a list")
            moved.append(DeviceTensor(torch.tensor(part)))
        else:
            moved.append(part)
    # A number that is stored through an index becomes a host tensor first, and is copied over.
    places = [p for p in moved if isinstance(p, DeviceTensor) and p.dtype not in _MASKS]
    if len(args) > 2 and places and isinstance(args[2], int | float | bool):
        LOG.note(Kind.PAGEABLE, "index_put_ of a number")
    return (args[0], tuple(moved) if isinstance(args[1], tuple) else moved[0], *args[2:])


class _Event:
    """Stands for an event of the accelerator; work on the emulated device is done at once."""

    def __init__(self, *args: object, **options: object) -> None:
        del args, options

    def record(self, stream: object = None) -> None:
        """Note nothing: recording does not wait."""

    def wait(self, stream: object = None) -> None:
        """Note nothing: one stream waits for another, the host does not."""

    def synchronize(self) -> None:
        """Wait for the device."""
        LOG.note(Kind.SYNC, "Event.synchronize")

    def query(self) -> bool:
        """Ask the device, which a capture refuses as it refuses a wait."""
        LOG.note(Kind.SYNC, "Event.query")
        return True


def _synchronize(device: object = None) -> None:
    LOG.note(Kind.SYNC, "torch.cuda.synchronize")


@contextmanager
def emulated() -> Iterator[Log]:
    """Run what stands inside on the emulated device; yield its log, emptied."""
    if torch._C._get_privateuse1_backend_name() != NAME:
        backend_registration._setup_privateuseone_for_python_backend(NAME)
    LOG.crossings.clear()
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch.cuda, "Event", _Event))
        stack.enter_context(mock.patch.object(torch.cuda, "synchronize", _synchronize))
        stack.enter_context(_Functions())
        stack.enter_context(_Dispatch())
        yield LOG


def capture(function: Callable[[], Any]) -> tuple[Any, list[Step]]:
    """Run a function as a capture does; return its result and the tape.

    Raises:
        CaptureRefusedError: the function crosses between host and device in a way that blocks.
    """
    tape: list[Step] = []
    LOG.tape = tape
    try:
        with emulated():
            return function(), tape
    finally:
        LOG.tape = None


def replay(tape: Sequence[Step]) -> None:
    """Run a tape again, into the same memory."""
    for step in tape:
        result = step.operator(*step.arguments, **step.named)
        if not step.aliases:
            for old, new in zip(_tensors(step.result), _tensors(result), strict=True):
                old.copy_(new)


def poison(tape: Sequence[Step]) -> None:
    """Fill all memory that a tape writes anew with values that nobody expects."""
    for step in tape:
        for tensor in () if step.aliases else _tensors(step.result):
            if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
                tensor.fill_(float("nan"))
            elif tensor.dtype is not torch.bool:
                tensor.fill_(torch.iinfo(tensor.dtype).max // 3)
            else:
                tensor.logical_not_()


def _tensors(value: Any) -> list[torch.Tensor]:
    return [t for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor)]
