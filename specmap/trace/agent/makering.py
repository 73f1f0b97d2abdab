"""The C ring where it was built for this Python, else the Python ring."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os

from .faults import line_of
from .ring import PythonRing, Ring


def make_ring(extension: str) -> tuple[Ring, str]:
    """Return a ring, and why it is not the C ring ("" when it is).

    ``extension``: a folder to look in first; the agent's own folder comes next.
    """
    if os.environ.get("SPECMAP_RING_KIND") == "python":
        return PythonRing(), "asked for"
    why = "not built for this Python"
    for folder in (extension, os.path.dirname(__file__)):
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = f"{folder}/_ring{suffix}"
            if folder and os.path.exists(path):
                try:
                    return _load(path), ""
                except ImportError as error:
                    why = line_of(error)
    return PythonRing(), why


def _load(path: str) -> Ring:
    spec = importlib.util.spec_from_file_location("specmap_agent._ring", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ring: Ring = module.Ring()
    return ring
