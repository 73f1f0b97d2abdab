"""Runs a function on an emulated device: what crosses to the host, and does a replay hold.

Public, for anyone's function, on a CPU build of torch. Values are real; the device is not::

    state = on_device(SimpleNamespace(x=torch.rand(8), mask=torch.rand(8) > 0.5))
    crossings(lambda: state.x[state.mask])     # a wait, and a shape that only the device knows

Modelled: reads of values and shapes, copies and their memory (pageable, pinned), events, a
capture that refuses what waits, a replay that runs the same operators with the same numbers into
the same memory. Not modelled: streams (fork, join), collectives, lazy initialisation, allocator
calls such as ``empty_cache``, how long memory lives; kernels of other libraries need a CPU
implementation. What is named ``cuda`` becomes the emulated device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from specmap.errors import SpecmapError
from specmap.fix.crossing import CaptureRefusedError, Crossing

_DEEP = 6


class Fate(StrEnum):
    """What becomes of a function under capture and replay.

    ``equal`` every replay gives what an eager run gives; ``refused`` the capture meets a wait
    for the device or pageable memory; ``stale`` a replay gives something else; ``side-effect``
    the function changes values of the host, which a replay does not.
    """

    EQUAL = "equal"
    REFUSED = "refused"
    STALE = "stale"
    SIDE_EFFECT = "side-effect"


@dataclass(frozen=True, slots=True)
class Replay:
    """The fate of a function, and what shows it."""

    fate: Fate
    detail: str = ""


def missing() -> str:
    """Return why there is no emulated device here; empty where there is one."""
    try:
        import torch
        from torch.utils import backend_registration
    except ImportError:
        return "torch is not installed"
    if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
        return f"torch {torch.__version__} cannot emulate a device; 2.13 can"
    return ""


def _device() -> Any:
    reason = missing()
    if reason:
        raise SpecmapError(f"no emulated device: {reason}; pip install 'torch>=2.13'")
    from specmap.fix import device

    return device


def on_device(value: Any) -> Any:
    """Return a value with all tensors in it on the emulated device.

    Lists, tuples, dicts and objects with attributes are gone through; objects are changed.

    Raises:
        SpecmapError: there is no torch that can emulate a device.
    """
    made = _device()
    with made.emulated():
        return _mapped(value, made.torch.Tensor, made.DeviceTensor)


def _mapped(value: Any, kind: type, move: Callable[[Any], Any]) -> Any:
    if isinstance(value, kind):
        return move(value)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(v, kind, move) for v in value)
    if isinstance(value, dict):
        return {k: _mapped(v, kind, move) for k, v in value.items()}
    for name, inner in getattr(value, "__dict__", {}).items():
        setattr(value, name, _mapped(inner, kind, move))
    return value


def crossings(function: Callable[[], object]) -> tuple[Crossing, ...]:
    """Run a function on the emulated device and return its crossings, in order.

    Raises:
        SpecmapError: there is no torch that can emulate a device.
    """
    with _device().emulated() as log:
        function()
        return tuple(log.crossings)


def replayed(
    make: Callable[[int], Any],
    update: Callable[[Any, int], object],
    function: Callable[[Any], Any],
    *,
    seeds: Sequence[int] = (1, 2, 3),
    shown: Callable[[Any, Any], Any] = lambda state, result: result,
    warmups: int = 2,
) -> Replay:
    """Capture a function and compare replays on new inputs with eager runs, bit by bit.

    ``make(seed)`` returns a state with its tensors on the emulated device; ``update(state,
    seed)`` does to it what a runner does between replays, and leaves what ``make(seed)`` makes.
    ``shown(state, result)`` picks what must agree, such as the rows of a batch that are not
    padding. The memory that the capture writes is poisoned before each replay.

    Raises:
        SpecmapError: there is no torch that can emulate a device.
    """
    device = _device()
    state = make(0)
    with device.emulated():
        for _ in range(warmups):
            function(state)
    try:
        result, tape = device.capture(lambda: function(state))
    except CaptureRefusedError as refused:
        return Replay(Fate.REFUSED, str(refused))
    for seed in seeds:
        update(state, seed)
        device.poison(tape)
        device.torch.manual_seed(seed)
        device.replay(tape)
        fresh = make(seed)
        before = _host(fresh)
        device.torch.manual_seed(seed)
        with device.emulated():
            wanted = function(fresh)
        if _host(fresh) != before:
            return Replay(Fate.SIDE_EFFECT, "a value of the host changes in every eager run")
        if not _same(device, shown(state, result), shown(fresh, wanted)):
            return Replay(Fate.STALE, f"the replay on inputs {seed} differs from an eager run")
    return Replay(Fate.EQUAL, f"{len(seeds)} replays agree with eager runs")


def _host(value: Any, depth: int = 0) -> object:
    """The values of the host in a state, as something that can be compared."""
    if isinstance(value, bool | int | float | str | None):
        return value
    if isinstance(value, list | tuple):
        return [_host(v, depth + 1) for v in value] if depth < _DEEP else len(value)
    inner = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    if hasattr(value, "dtype") or depth > _DEEP:
        return ""
    return {str(k): _host(v, depth + 1) for k, v in inner.items()}


def _same(device: Any, one: Any, other: Any) -> bool:
    """Whether two results have equal tensors: kinds, shapes and values; NaN equals NaN."""
    pairs = zip(device._tensors(one), device._tensors(other), strict=True)
    return all(
        a.dtype == b.dtype
        and a.shape == b.shape
        and device.torch.equal(
            device.torch.nan_to_num(a, nan=-1.5) if a.dtype.is_floating_point else a,
            device.torch.nan_to_num(b, nan=-1.5) if b.dtype.is_floating_point else b,
        )
        for a, b in ((device.inner_of(x), device.inner_of(y)) for x, y in pairs)
    )
