"""Noticing that a dormant agent's process is a rank: its start function is called."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from .bind import AnyCall, Binding, NotBoundError, preceded
from .wrapplan import Plan


def on_process_start(plan: Plan, watch: Callable[[Any, Any], None], started: AnyCall) -> None:
    """Call ``started(function, args, kwargs)`` before each call of a process function."""

    def loaded(module: ModuleType) -> None:
        bind_processes(plan, module, started)

    modules = {module for module, _ in plan.processes}
    watch(modules, loaded)
    for name in modules & set(sys.modules):
        loaded(sys.modules[name])


def see_running(plan: Plan, see: Callable[[Any], None]) -> None:
    """Call ``see(get)`` for each process function that runs already, with its own arguments.

    Who wakes or arms a rank late comes after the call that says which rank it is.
    """
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            place = (frame.f_globals.get("__name__"), frame.f_code.co_name)
            if any(place == (m, name.rpartition(".")[2]) for m, name in plan.processes):
                see(dict(frame.f_locals).get)
            frame = frame.f_back


def bind_processes(plan: Plan, module: ModuleType, call: AnyCall) -> list[Binding]:
    """Have ``call(function, args, kwargs)`` made before a module's process functions."""

    def wrap(function: AnyCall, bound: bool) -> AnyCall:
        return preceded(function, functools.partial(call, function))

    made = []
    for name, qualname in plan.processes:
        if name == module.__name__:
            try:
                binding = Binding(module, qualname, wrap)
            except NotBoundError:
                continue
            binding.apply()
            made.append(binding)
    return made
