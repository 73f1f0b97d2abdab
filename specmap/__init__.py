"""Code paths of SGLang's speculative-decoding workers, read from the source.

The public names are loaded on first use, so that importing this package costs nothing and
brings in neither libcst nor torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specmap.codemap.graph import CodeMap
    from specmap.pipeline import scan_tree

__version__ = "0.1.0"

__all__ = ["CodeMap", "__version__", "scan_tree"]

_HOMES = {"CodeMap": "specmap.codemap.graph", "scan_tree": "specmap.pipeline"}


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it.

    Raises:
        AttributeError: ``name`` is not public here.
    """
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
