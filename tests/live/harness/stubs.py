"""Stand-ins for packages that only a GPU has: they can be imported, and raise when called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _MissingType(type):
    """The type of a missing thing; it serves as a base class, a decorator or an annotation."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _missing(f"{cls.path}.{name}")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{cls.path} needs a GPU; the CPU tier must not reach it")

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return cls


def _missing(path: str) -> _MissingType:
    module, _, name = path.rpartition(".")
    return _MissingType(name, (), {"path": path, "__module__": module})


class _StubModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"{self.__name__}.{name}"
        value = sys.modules.get(path) or _missing(path)
        setattr(self, name, value)
        return value


class _StubFinder(MetaPathFinder, Loader):
    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = tuple(f"{package}." for package in packages)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if any(f"{name}.".startswith(p) or p.startswith(f"{name}.") for p in self.packages):
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _StubModule(spec.name)
        module.__path__ = []
        module.__version__ = "9.9.9"  # SGLang compares it with the least it needs
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


def install(*packages: str) -> None:
    """Answer imports of these packages or modules, of all below them, and of their parents."""
    sys.meta_path.insert(0, _StubFinder(packages))
