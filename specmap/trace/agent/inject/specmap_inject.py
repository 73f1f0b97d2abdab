"""Loads the agent by its path, under a name of its own; the entry point and site call this."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def install() -> None:
    """Start the agent where ``SPECMAP_TRACE`` asks for it; once, and never raises."""
    if not os.environ.get("SPECMAP_TRACE") or "specmap_agent" in sys.modules:
        return
    try:
        agent = _load()
        agent.start()
    except Exception as error:
        text = f"specmap: no trace of process {os.getpid()}: {type(error).__name__}: {error}"
        if sys.stderr is not None:
            sys.stderr.write(f"{text}\n")


def _load() -> ModuleType:
    """Return the agent's package; ``importlib.util`` would cost more than the agent."""
    import _frozen_importlib as bootstrap
    import _frozen_importlib_external as external

    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = external.spec_from_file_location(
        "specmap_agent", f"{folder}/__init__.py", submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no agent in {folder}")
    module = bootstrap.module_from_spec(spec)
    sys.modules["specmap_agent"] = module
    spec.loader.exec_module(module)
    return module
