"""What a renderer is told besides the map."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How to show a map.

    ``workers`` (class names) and ``phases`` (phase names) narrow it, empty means all;
    ``width`` is in columns of text; ``color`` allows terminal colours.
    """

    workers: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    width: int = 100
    color: bool = False
