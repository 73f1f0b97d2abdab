"""Where Python waits for the GPU: wrappers on torch's own calls, with place and blocked time.

Sees calls made from Python; a synchronisation inside a C++ library is not among them. Tensors
that are not on a GPU are passed through.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from time import monotonic_ns
from types import CodeType
from typing import Any

from .bind import AnyCall
from .names import Names
from .records import NONE, SYNC
from .ring import Ring

_TENSOR = ("item", "tolist", "cpu", "numpy", "nonzero", "__bool__", "__int__", "__float__", "to")
_OTHERS = (("cuda.Event", "synchronize"), ("cuda.Stream", "synchronize"), ("cuda", "synchronize"))
_INT32 = (1 << 31) - 1


def _on_gpu(tensor: Any) -> bool:
    return bool(getattr(tensor, "is_cuda", False))


class Syncs:
    """The wrappers, and a number for every place that waited."""

    def __init__(
        self, ring: Ring, names: Names, package: str, capturing: Callable[[], bool]
    ) -> None:
        self._ring, self._names, self._inside = ring, names, f"/{package}/"
        self._capturing = capturing
        self._sites: dict[tuple[CodeType, int, str], int] = {}
        self._patched: list[tuple[Any, str, Any, AnyCall]] = []

    def apply(self) -> None:
        """Wrap torch's waiting calls, once torch is there."""
        torch = sys.modules.get("torch")
        tensor = getattr(torch, "Tensor", None)
        if self._patched or tensor is None or not hasattr(torch, "cuda"):
            return
        for name in _TENSOR:
            self._patch(tensor, name, self._on_tensor(name))
        for path, name in _OTHERS:
            holder: Any = torch
            for part in path.split("."):
                holder = getattr(holder, part, None)
            self._patch(holder, name, self._always(name))

    def restore(self) -> None:
        """Take the wrappers away."""
        for holder, name, raw, made in self._patched:
            if vars(holder).get(name) is made:
                if raw is None:
                    delattr(holder, name)
                else:
                    setattr(holder, name, raw)
        self._patched = []

    def _patch(self, holder: Any, name: str, wrap: Callable[[AnyCall], AnyCall]) -> None:
        function = getattr(holder, name, None)
        if function is not None:
            made = wrap(function)
            self._patched.append((holder, name, vars(holder).get(name), made))
            setattr(holder, name, made)

    def _on_tensor(self, name: str) -> Callable[[AnyCall], AnyCall]:
        moves = name in ("to", "cpu")

        def wrap(function: AnyCall) -> AnyCall:
            @functools.wraps(function)
            def waited(tensor: Any, *args: Any, **kwargs: Any) -> Any:
                if not _on_gpu(tensor) or self._capturing() or not self._ring.recording():
                    return function(tensor, *args, **kwargs)
                start = monotonic_ns()
                result = function(tensor, *args, **kwargs)
                if not moves or not _on_gpu(result):
                    self._record(name, start)
                return result

            return waited

        return wrap

    def _always(self, name: str) -> Callable[[AnyCall], AnyCall]:
        def wrap(function: AnyCall) -> AnyCall:
            @functools.wraps(function)
            def waited(*args: Any, **kwargs: Any) -> Any:
                if self._capturing() or not self._ring.recording():
                    return function(*args, **kwargs)
                start = monotonic_ns()
                result = function(*args, **kwargs)
                self._record(name, start)
                return result

            return waited

        return wrap

    def _record(self, name: str, start: int) -> None:
        blocked_ns = min(monotonic_ns() - start, _INT32)
        frame = sys._getframe(2)
        key = (frame.f_code, frame.f_lasti, name)
        site = self._sites.get(key)
        if site is None:
            code = frame.f_code
            before, inside, after = code.co_filename.rpartition(self._inside)
            site = self._sites[key] = self._names.add(
                "site",
                file=f"{inside[1:]}{after}" if before else code.co_filename,
                line=frame.f_lineno,
                function=getattr(code, "co_qualname", code.co_name),
                call=name,
            )
        self._ring.put(site, SYNC, NONE, NONE, blocked_ns, 0)
