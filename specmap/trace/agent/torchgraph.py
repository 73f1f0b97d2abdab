"""Captured graphs as torch replays and captures them: the second layer of evidence."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .bind import AnyCall
from .records import CAPTURE_BEGIN, CAPTURE_END, NONE, REPLAY
from .ring import Ring
from .shape import Shape
from .wrapplan import Graph


class GraphHooks:
    """Wrappers on the graph classes' methods; ``capturing`` of the ring counts captures."""

    def __init__(self, graph: Graph, ring: Ring) -> None:
        self._graph, self._ring = graph, ring
        self._patched: dict[tuple[Any, str], tuple[Any, AnyCall]] = {}

    def apply(self) -> None:
        """Wrap the methods; again where a class was replaced meanwhile."""
        for module, name in self._graph.classes:
            kind = getattr(sys.modules.get(module), name, None)
            if isinstance(kind, type):
                for method in self._graph.replay:
                    self._patch(kind, method, self._replayed)
                for method, change in zip(self._graph.capture, (1, -1)):  # noqa: B905
                    self._patch(kind, method, self._captured(change))
        for module, name in self._graph.driver_launch:
            holder: Any = sys.modules.get(module)
            *parents, last = name.split(".")
            for parent in parents:
                holder = getattr(holder, parent, None)
            if holder is not None:
                self._patch(holder, last, self._replayed)

    def restore(self) -> None:
        """Take the wrappers away."""
        for (holder, name), (raw, made) in self._patched.items():
            if vars(holder).get(name) is made:
                if raw is None:
                    delattr(holder, name)
                else:
                    setattr(holder, name, raw)
        self._patched.clear()

    def _patch(self, holder: Any, name: str, wrap: Any) -> None:
        known = self._patched.get((holder, name))
        own = vars(holder).get(name)
        function = own if own is not None else getattr(holder, name, None)
        if function is None or not callable(function):
            return
        if known is not None and own is known[1]:
            return
        made = wrap(function)
        setattr(holder, name, made)
        self._patched[holder, name] = (own, made)

    def _replayed(self, function: AnyCall) -> AnyCall:
        return self._ring.wrap(function, Shape(target=0, mark=REPLAY))

    def _captured(self, change: int) -> Any:
        kind = CAPTURE_BEGIN if change > 0 else CAPTURE_END

        def wrap(function: AnyCall) -> AnyCall:
            @functools.wraps(function)
            def capture(*args: Any, **kwargs: Any) -> Any:
                self._ring.capturing = max(0, self._ring.capturing + change)
                if self._ring.recording():
                    self._ring.put(0, kind, NONE, NONE, NONE, id(args[0]) if args else 0)
                return function(*args, **kwargs)

            return capture

        return wrap
