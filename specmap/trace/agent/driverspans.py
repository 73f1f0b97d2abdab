"""GPU time of phases where the C ring records the events itself, through the CUDA driver."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from .faults import line_of, say
from .ring import Ring
from .spans import NO_CUDA

_PAIRS = 64
_events: list[int] = []  # those of the process: a rank may be armed again and again


class DriverSpans:
    """Events for the C ring; made when CUDA is in use, at the end of the first cycle."""

    def __init__(self, driver: ctypes.CDLL, ring: Any, every: int) -> None:
        self.layers: list[Any] = []
        self._driver, self._ring, self._every = driver, ring, every
        self._begun = False

    def read(self) -> bool:
        """Begin, once; return whether to be called after every cycle, which the ring spares."""
        if not self._begun:
            self._begun = True
            try:
                self._begin()
            except Exception as error:
                say(f"no GPU spans: {line_of(error)}")
        return False

    def _begin(self) -> None:
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if torch is None or cuda is None or not cuda.is_initialized():
            say(NO_CUDA)
            return
        addresses = [
            ctypes.cast(getattr(self._driver, name), ctypes.c_void_p).value
            for name in ("cuEventRecord", "cuEventElapsedTime")
        ]
        while len(_events) < 2 * _PAIRS:
            _events.append(self._event())
        stream = torch._C._cuda_getCurrentRawStream
        self._ring.spans(*addresses, stream, cuda.current_device(), tuple(_events), self._every)

    def _event(self) -> int:
        event = ctypes.c_void_p()
        code = self._driver.cuEventCreate(ctypes.byref(event), 0)
        if code or event.value is None:
            raise OSError(f"cuEventCreate says {code}")
        return event.value

    @property
    def dropped(self) -> int:
        """How many spans were not ready in time, or found no free pair."""
        return int(self._ring.spans_dropped)

    def check(self) -> None:
        """Say, on the agent's thread, where the driver refused."""
        if self._ring.span_fault:
            say(f"no GPU spans any more: the driver says {self._ring.span_fault}")


def driver_spans(ring: Ring, every: int) -> DriverSpans | None:
    """Return them; None where the ring is in Python, or the GPU is not CUDA's."""
    if ring.kind != "c":
        return None
    try:
        return DriverSpans(ctypes.CDLL("libcuda.so.1"), ring, every)
    except OSError:
        return None
