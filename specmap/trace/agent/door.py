"""The first step in a process: watch for the traced package, with next to nothing loaded."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the module `typing` would cost more than all of this
if TYPE_CHECKING:
    from typing import Any

# The agent itself is loaded when a module of the plan's package is asked for, so that
# processes that never import it (a resource tracker) pay for one look at the plan's text.
_started: list[Any] = []


class _Door:
    def __init__(self, package: str) -> None:
        self.package, self.inside = package, f"{package}."

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Start the agent at the first module of the package; finds nothing itself."""
        if name == self.package or name.startswith(self.inside):
            sys.meta_path.remove(self)
            _begin()


def start() -> None:
    """Make ready what the environment asks for; once, and nothing without ``SPECMAP_TRACE``.

    Raises:
        OSError: the plan cannot be read.
    """
    if _started or not os.environ.get("SPECMAP_TRACE"):
        return
    _started.append(None)
    package = _package()
    if package is None or package in sys.modules:
        _begin()
    else:
        sys.meta_path.insert(0, _Door(package))


def serve() -> None:
    """Open the socket at once: this process started long before its agent."""
    if _started[1:] and _started[1] is not None:
        _started[1].serve()


def _package() -> str | None:
    """Return the plan's package, found in the text: a JSON parser would cost 3 ms."""
    folder = os.environ.get("SPECMAP_DIR", "")
    path = os.environ.get("SPECMAP_PLAN") or f"{folder}/plan.json"
    try:
        with open(path, "rb") as file:
            found = file.read().partition(b'"package"')[2].partition(b":")[2].split(b'"', 2)
    except OSError:
        return None
    return found[1].decode() if len(found) > 2 else None


def _begin() -> None:
    from .agent import run
    from .settings import from_environment

    settings = from_environment()
    if settings is not None:
        _started.append(run(settings))
