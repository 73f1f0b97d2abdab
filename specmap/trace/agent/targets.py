"""The planned targets: what is wrapped or rewritten, and what could not be."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from .accepted import accept_shape
from .bind import AnyCall, Binding, NotBoundError, copies, find
from .faults import line_of
from .reasons import Reasons
from .ring import Ring
from .shape import shape_of
from .swap import RefusedError, Swap
from .why import Asked
from .wrapplan import Accept, Plan, Target

Layer = Callable[[Target, AnyCall], AnyCall]


class Targets:
    """Wraps the targets of modules as they come, and undoes it."""

    def __init__(self, plan: Plan, ring: Ring, reasons: Reasons, layers: list[Layer]) -> None:
        self._plan, self._ring, self._reasons, self._layers = plan, ring, reasons, layers
        self._bindings: list[Binding] = []
        self._swaps: list[Swap] = []
        self._modules: set[str] = set()
        self._failed: dict[int, str] = {}

    def apply(self, module: types.ModuleType, late: bool = False) -> None:
        """Wrap what is planned in a module; ``late``: others may have imported from it."""
        if module.__name__ in self._modules:
            return
        self._modules.add(module.__name__)
        mine = [one for one in self._plan.targets if one.module == module.__name__]
        self._rewrite(module, mine)
        made = []
        for target in mine:
            if target.entered:
                made += self._bind(module, target)
        made += self._bind_accepts(module)
        if late:
            self._copy(made)

    def apply_loaded(self) -> None:
        """Wrap what is planned in the modules that are loaded already."""
        for name in sorted(self._plan.modules):
            module = sys.modules.get(name)
            spec = getattr(module, "__spec__", None)
            if module is not None and not getattr(spec, "_initializing", False):
                self.apply(module, late=True)

    def restore(self) -> None:
        """Take away every wrapper and give every function its own code back."""
        for binding in reversed(self._bindings):
            binding.restore()
        for swap in self._swaps:
            swap.restore()
        self._bindings, self._swaps = [], []

    def report(self) -> list[dict[str, Any]]:
        """Return, for the header, which targets are watched and why others are not."""
        return [
            {"id": one.id, "symbol": one.symbol, "wrapped": not why, "reason": why}
            for one in self._plan.targets
            for why in [self._why_not(one)]
        ]

    def _why_not(self, target: Target) -> str:
        if target.module not in self._modules:
            return "its module was not loaded"
        return self._failed.get(target.id, "")

    def _bind(self, module: types.ModuleType, target: Target) -> list[Binding]:
        def wrap(function: AnyCall, bound: bool) -> AnyCall:
            inner = function
            for layer in self._layers:
                inner = layer(target, inner)
            return self._ring.wrap(inner, shape_of(function, target, self._plan, bound))

        return self._bound(module, target.qualname, wrap, target.id)

    def _bind_accepts(self, module: types.ModuleType) -> list[Binding]:
        made = []
        for one in self._plan.accept:
            if one.module == module.__name__:

                def wrap(function: AnyCall, bound: bool, one: Accept = one) -> AnyCall:
                    return self._ring.wrap(function, accept_shape(one, function))

                made += self._bound(module, one.qualname, wrap, one.id)
        return made

    def _bound(
        self, module: types.ModuleType, qualname: str, wrap: Callable[..., AnyCall], target: int
    ) -> list[Binding]:
        try:
            binding = Binding(module, qualname, wrap)
            binding.apply()
        except NotBoundError as error:
            self._failed[target] = str(error)
            return []
        except Exception as error:
            self._failed[target] = line_of(error)
            return []
        self._bindings.append(binding)
        return [binding]

    def _copy(self, made: list[Binding]) -> None:
        elsewhere = copies(made)
        for binding in made:
            binding.apply(elsewhere.get(id(binding.raw)))

    def _rewrite(self, module: types.ModuleType, mine: list[Target]) -> None:
        """Rewrite the decisions of a module, those of one function together."""
        asked: dict[str, list[Asked]] = {}
        for target in mine:
            if "decision" in target.roles or target.expressions:
                one = Asked(target.id, target.expressions)
                asked.setdefault(target.qualname, []).append(one)
        for qualname, several in asked.items():
            try:
                swap = Swap(find(module, qualname), several, self._reasons)
                swap.apply()
            except (NotBoundError, RefusedError) as error:
                self._failed.update({one.target: str(error) for one in several})
            except Exception as error:
                self._failed.update({one.target: line_of(error) for one in several})
            else:
                self._swaps.append(swap)
                missing = "the expression is not in the source"
                self._failed.update(dict.fromkeys(swap.missing, missing))
