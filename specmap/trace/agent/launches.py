"""Launches as CUPTI sees them: graphs, kernels one by one, and the collectives among those.

CUPTI calls the C ring inside every launch; here it is found, asked, and left again. It serves one
tool at a time, so it is not taken from another, and left to a profiler of torch that starts.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import sys
from collections.abc import Iterator
from typing import Any

from .faults import line_of, say
from .ring import Ring

_DRIVER_CALLS = 1  # the domain of CUPTI's callbacks that the driver's own calls are
_MOST_CALLS = 4096
_COUNTED, _NOT_COUNTED = ("cuLaunch", "cuGraphLaunch"), "cuLaunchHostFunc"
_PROFILER = ("torch.autograd.profiler", "profile")

_held: list[Ring] = []  # what CUPTI may still call


class Launches:
    """One subscription to CUPTI; whatever goes wrong is one line, and nothing is counted."""

    def __init__(self, ring: Ring, collectives: tuple[str, ...]) -> None:
        self._ring = ring
        self._names = tuple(name.encode() for name in collectives)
        self._cupti: Any = None
        self._subscriber = ctypes.c_void_p()
        self._calls: list[int] = []
        self._profiler: tuple[Any, Any, Any] | None = None

    def start(self) -> None:
        """Count from now on."""
        try:
            self._start()
        except Exception as error:
            self._ring.launches(None)
            say(f"no launch counts: {line_of(error)}; the trace goes on without")

    def _start(self) -> None:
        cupti = ctypes.CDLL(_library())
        given = self._ring.launches(self._names)
        if given is None:
            raise OSError("only the C ring counts them, and this one is in Python")
        callback, ring = (ctypes.c_void_p(address) for address in given)
        _asked(cupti, "cuptiSubscribe", ctypes.byref(self._subscriber), callback, ring)
        self._cupti = cupti
        _held.append(self._ring)
        self._calls = list(_launch_calls(cupti))
        self.switch(True)
        self._watch_profiler()

    def switch(self, on: bool) -> None:
        """Have launches reported or not, as in the windows of the overhead check."""
        if self._cupti is not None:
            for call in self._calls:
                _asked(self._cupti, "cuptiEnableCallback", int(on), self._subscriber,
                       _DRIVER_CALLS, call)  # fmt: skip

    def stop(self) -> None:
        """Leave CUPTI."""
        cupti, self._cupti = self._cupti, None
        if self._profiler is not None:
            kind, original, made = self._profiler
            self._profiler = None
            if vars(kind).get("__init__") is made:
                kind.__init__ = original
        if cupti is not None:
            self._ring.launches(None)
            _asked(cupti, "cuptiUnsubscribe", self._subscriber)
            _held.remove(self._ring)

    def _watch_profiler(self) -> None:
        kind = getattr(sys.modules.get(_PROFILER[0]), _PROFILER[1], None)
        original = getattr(kind, "__init__", None)
        if kind is None or original is None:
            return

        @functools.wraps(original)
        def begun(*args: Any, **kwargs: Any) -> Any:
            self._yield()
            return original(*args, **kwargs)

        kind.__init__ = begun
        self._profiler = (kind, original, begun)

    def _yield(self) -> None:
        try:
            if self._cupti is not None:
                say(
                    "launch counts end here: a profiler starts, and CUPTI serves one tool at a time"
                )
            self.stop()
        except Exception as error:
            say(f"CUPTI may not be free for the profiler: {line_of(error)}")


def _asked(cupti: Any, function: str, *args: Any) -> None:
    """Call CUPTI.

    Raises:
        OSError: it refuses; with its own word for why.
    """
    code = getattr(cupti, function)(*args)
    if code:
        text = ctypes.c_char_p()
        cupti.cuptiGetResultString(code, ctypes.byref(text))
        said = (text.value or b"no reason").decode("utf-8", "replace")
        raise OSError(f"{function} says {said} ({code})")


def _launch_calls(cupti: Any) -> Iterator[int]:
    """Yield the numbers of the driver's calls that launch, by their names."""
    name = ctypes.c_char_p()
    for call in range(1, _MOST_CALLS):
        if cupti.cuptiGetCallbackName(_DRIVER_CALLS, call, ctypes.byref(name)) == 0:
            text = (name.value or b"").decode("ascii", "replace")
            if text.startswith(_COUNTED) and not text.startswith(_NOT_COUNTED):
                yield call


def _library() -> str:
    """Return CUPTI as this process has it already, as torch's neighbours have it, or its name."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line[line.find("/") :].strip() if "/libcupti.so" in line else ""
            if path:
                return path
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    if torch:
        site = os.path.dirname(os.path.dirname(torch))
        found = sorted(glob.glob(f"{glob.escape(site)}/nvidia/*/lib/libcupti.so.*"))
        if found:
            return found[-1]
    return "libcupti.so"
