"""Putting wrappers where a module's or class's attributes are, and taking them away."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

AnyCall = Callable[..., Any]
_COMPILED = ("_torchdynamo_orig_callable", "_torchdynamo_inline")


class NotBoundError(Exception):
    """A target that cannot be wrapped, with the reason."""


class Binding:
    """One wrapped attribute of a module or class."""

    def __init__(
        self, module: types.ModuleType, qualname: str, wrap: Callable[..., AnyCall]
    ) -> None:
        self.holder, self.name = _holder(module, qualname)
        self.raw = vars(self.holder)[self.name]
        self.function = function_in(self.raw)
        self.made = _rewrapped(self.raw, self.function, self._is_bound(), wrap)
        self._copies: list[tuple[types.ModuleType, str]] = []

    def _is_bound(self) -> bool:
        return isinstance(self.holder, type) and not isinstance(self.raw, staticmethod)

    def apply(self, copies: list[tuple[types.ModuleType, str]] | None = None) -> None:
        """Put the wrapper in place, and in ``copies`` that other modules imported."""
        setattr(self.holder, self.name, self.made)
        self._copies = copies or []
        for module, name in self._copies:
            setattr(module, name, self.made)

    def restore(self) -> None:
        """Put back what was there, unless somebody else has replaced the wrapper."""
        for place, name in ((self.holder, self.name), *self._copies):
            if vars(place).get(name) is self.made:
                setattr(place, name, self.raw)


def find(module: types.ModuleType, qualname: str) -> types.FunctionType:
    """Return the function of a qualified name, under its decorators.

    Raises:
        NotBoundError: it is not there, or is no plain function.
    """
    holder, name = _holder(module, qualname)
    function = function_in(vars(holder)[name])
    inner = inspect.unwrap(function)
    if not isinstance(inner, types.FunctionType):
        raise NotBoundError("it is no Python function")
    return inner


def function_in(raw: object) -> AnyCall:
    """Return the function in a class's or module's attribute.

    Raises:
        NotBoundError: it is none, or one that must be left alone.
    """
    function: Any = raw
    if isinstance(raw, (staticmethod, classmethod)):
        function = raw.__func__
    elif isinstance(raw, property):
        function = raw.fget
    if any(hasattr(function, name) for name in _COMPILED):
        raise NotBoundError("compiled by torch.compile")
    if not isinstance(function, types.FunctionType) and not _is_wrapper(function):
        raise NotBoundError(f"a {type(raw).__name__} is not wrapped")
    inner = inspect.unwrap(function)
    if inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner):
        raise NotBoundError("asynchronous: its calls do not nest")
    if inspect.isgeneratorfunction(inner) and inner is function:
        raise NotBoundError("a generator: its calls do not nest")
    return function  # type: ignore[no-any-return]


def _is_wrapper(function: object) -> bool:
    return (
        callable(function)
        and type(function).__name__ == "Wrapper"
        and hasattr(function, "__wrapped__")
    )


def _holder(module: types.ModuleType, qualname: str) -> tuple[Any, str]:
    """Return the module or class that holds a qualified name, and the last part of it."""
    *parents, name = qualname.split(".")
    if "<locals>" in parents:
        raise NotBoundError("defined inside a function")
    holder: Any = module
    for parent in parents:
        holder = vars(holder).get(parent)
        if not isinstance(holder, type):
            raise NotBoundError(f"no class {parent} here")
    if isinstance(holder, type) and name.startswith("__") and not name.endswith("__"):
        name = f"_{holder.__name__.lstrip('_')}{name}"
    if name not in vars(holder):
        raise NotBoundError("not defined here")
    return holder, name


def _rewrapped(raw: Any, function: AnyCall, bound: bool, wrap: Callable[..., AnyCall]) -> Any:
    """Return the wrapper in the same kind of attribute."""
    made = wrap(function, bound)
    if isinstance(raw, (staticmethod, classmethod)):
        return type(raw)(made)
    if isinstance(raw, property):
        return property(made, raw.fset, raw.fdel, raw.__doc__)
    return made


def copies(bindings: list[Binding]) -> dict[int, list[tuple[types.ModuleType, str]]]:
    """Return, by id of a function, where other modules hold it (``from X import f``)."""
    free = {id(one.raw) for one in bindings if isinstance(one.holder, types.ModuleType)}
    found: dict[int, list[tuple[types.ModuleType, str]]] = {}
    if free:
        for module in list(sys.modules.values()):
            if isinstance(module, types.ModuleType):
                for name, value in list(vars(module).items()):
                    if id(value) in free:
                        found.setdefault(id(value), []).append((module, name))
    return found


def preceded(function: AnyCall, before: AnyCall) -> AnyCall:
    """Return ``function`` after a callback that must not raise and gets (args, kwargs)."""

    @functools.wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        before(args, kwargs)
        return function(*args, **kwargs)

    return told
