"""GPU time of phases from pairs of torch's events, read a cycle late; never synchronises.

For the ring in Python, and GPUs that are not CUDA's; driverspans.py is for all others.

An event costs about 3 us to record and 0.5 us to ask. With the Python around them three spans
cost 100 to 160 us of a cycle on an H200, so not every cycle need be timed. A pair
that is not ready after ``_PATIENCE`` cycles, or that finds no free pair, is dropped and counted.
Nothing is recorded during a capture: there an event becomes a node of the graph.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from .bind import AnyCall
from .faults import line_of, say
from .records import GPU_SPAN, NONE
from .ring import Ring
from .wrapplan import Target

_PAIRS, _PATIENCE, _READS_A_CYCLE = 64, 16, 8
_INT32 = (1 << 31) - 1
NO_CUDA = "no GPU times: CUDA is not in use in this process"

Pair = tuple[Any, Any]


class _Streams:
    """The current stream: torch makes an object of it whenever it is asked, here each is kept."""

    def __init__(self, torch: Any) -> None:
        self._ask, self._device = torch.cuda.current_stream, torch.cuda.current_device()
        self._raw = torch._C._cuda_getCurrentRawStream
        self._known: dict[int, Any] = {}

    def current(self) -> Any:
        raw = self._raw(self._device)
        known = self._known.get(raw)
        if known is None:
            known = self._known[raw] = self._ask()
        return known


class Spans:
    """A pool of event pairs; used on the scheduler's thread only."""

    def __init__(
        self, ring: Ring, capturing: Callable[[], bool], cycles: Callable[[], int], every: int
    ) -> None:
        self._ring, self._capturing, self._cycles = ring, capturing, cycles
        self._every = every
        self.layers: list[Any] = [self.layer]
        self._free: list[Pair] | None = None
        self._streams: _Streams | None = None
        self._running: deque[tuple[int, int, Pair]] = deque()
        self._timing = True  # in this cycle
        self.dropped = 0

    def layer(self, target: Target, function: AnyCall) -> AnyCall:
        """Return a phase's function with a span around its GPU work."""
        if "phase" not in target.roles:
            return function

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            pair = self._begin() if self._timing else None
            if pair is None:
                return function(*args, **kwargs)
            try:
                return function(*args, **kwargs)
            finally:
                self._end(target.id, pair)

        return timed

    def _begin(self) -> Pair | None:
        try:
            if self._capturing() or not self._ring.recording():
                return None
            if self._free is None:
                self._prepare()
            if not self._free or self._streams is None:
                self.dropped += 1
                return None
            pair = self._free.pop()
            pair[0].record(self._streams.current())
        except Exception as error:
            self._off(error)
            return None
        return pair

    def _prepare(self) -> None:
        """Make the pool; it stays empty where CUDA is not in use."""
        self._free = []
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if cuda is not None and cuda.is_initialized():
            timed = functools.partial(cuda.Event, enable_timing=True)
            self._streams = _Streams(torch)
            self._free = [(timed(), timed()) for _ in range(_PAIRS)]
        else:
            say(NO_CUDA)

    def _end(self, target: int, pair: Pair) -> None:
        try:
            if self._capturing() or self._streams is None:
                self._give_back(pair)
                return
            pair[1].record(self._streams.current())
            self._running.append((self._cycles(), target, pair))
        except Exception as error:
            self._off(error)

    def read(self) -> bool:
        """Record the spans of earlier cycles that are ready; called between cycles, after each."""
        now = self._cycles()
        self._timing = now % self._every == 0
        self._read(now)
        return True

    def check(self) -> None:
        """Nothing: what failed was said at once."""

    def _read(self, now: int) -> None:
        for _ in range(_READS_A_CYCLE):
            if not self._running or self._running[0][0] >= now - 1 or self._capturing():
                return
            cycle, target, pair = self._running[0]
            if pair[1].query():
                gpu_ns = min(int(pair[0].elapsed_time(pair[1]) * 1e6), _INT32)
                self._ring.put(target, GPU_SPAN, NONE, NONE, gpu_ns, cycle)
            elif now - cycle < _PATIENCE:
                return
            else:
                self.dropped += 1
            self._running.popleft()
            self._give_back(pair)

    def _give_back(self, pair: Pair) -> None:
        if self._free is not None:
            self._free.append(pair)

    def _off(self, error: Exception) -> None:
        self._free = []
        say(f"no GPU spans: {line_of(error)}")
