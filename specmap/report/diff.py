"""Renderers of a comparison of two maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from specmap.compare.model import MapDiff

SHOWN = 5
"""Entries of one list that are shown unless all are asked for."""


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """How to show a comparison; ``everything`` leaves nothing out of a long list."""

    width: int = 100
    color: bool = False
    everything: bool = False


def render_diff(found: MapDiff, name: str, options: DiffOptions) -> str:
    """Return a comparison as ``text``, ``json`` or ``markdown``."""
    module = import_module(f"specmap.report.diff_{name}")
    render: Callable[[MapDiff, DiffOptions], str] = module.render
    return render(found, options)
