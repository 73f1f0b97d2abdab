"""The import hook: tells the agent when a planned module has been loaded, and leaves no trace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Finder:
    """A finder at the head of ``sys.meta_path`` that asks the others, and watches the loading."""

    def __init__(self, wanted: Container[str], loaded: Callable[[ModuleType], None]) -> None:
        self.wanted, self.loaded = wanted, loaded

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the others' spec of a planned module, its loading watched."""
        if name not in self.wanted:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Watched(spec.loader, self.loaded)  # type: ignore[assignment]
                return spec
        return None


class _Watched:
    """A loader that gives its place back to the real one, then tells when it is done."""

    def __init__(self, inner: Any, loaded: Callable[[ModuleType], None]) -> None:
        self._inner, self._loaded = inner, loaded

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the real loader."""
        made: ModuleType | None = self._inner.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Load the module, then tell the agent."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._loaded(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
