"""Renderers: one output format a file, each a pure function over the code map.

A renderer module is imported when its format is asked for, so that writing JSON does not
load the libraries that draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from specmap.codemap.graph import CodeMap
from specmap.report.options import RenderOptions

__all__ = ["RENDERERS", "RenderOptions", "Renderer"]


@dataclass(frozen=True, slots=True)
class Renderer:
    """One output format; ``suffix`` starts with a dot, ``binary`` output is bytes."""

    name: str
    suffix: str
    binary: bool
    module: str
    function: str = "render"

    def render(self, codemap: CodeMap, options: RenderOptions) -> str | bytes:
        """Return the map in this format.

        Raises:
            OutputError: the format needs a program that is not installed.
        """
        function: Callable[[CodeMap, RenderOptions], str | bytes]
        function = getattr(import_module(self.module), self.function)
        return function(codemap, options)


RENDERERS: dict[str, Renderer] = {
    renderer.name: renderer
    for renderer in (
        Renderer("text", ".txt", False, "specmap.report.text"),
        Renderer("json", ".json", False, "specmap.report.as_json"),
        Renderer("dot", ".dot", False, "specmap.report.dot"),
        Renderer("svg", ".svg", True, "specmap.report.dot", "render_svg"),
        Renderer("png", ".png", True, "specmap.report.dot", "render_png"),
        Renderer("mermaid", ".mmd", False, "specmap.report.mermaid"),
    )
}
