"""Which phase a forward belongs to, by the calls that are open around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from specmap.codemap.event import UNKNOWN_PHASE
from specmap.trace.plan import PlanPhase, WrapPlan


@dataclass(frozen=True, slots=True)
class Place:
    """A phase, its holder, where in the path the holder stands (0: the entry), its scope."""

    phase: str
    holder: int
    depth: int
    scope: int = 0


class Resolver:
    """Names workers and phases; what it was asked once it looks up.

    ``idle_modes`` are modes of a batch without requests: they fit every phase.
    """

    def __init__(self, plan: WrapPlan, idle_modes: tuple[str, ...] = ()) -> None:
        self._workers = plan.workers
        self._idle = frozenset(idle_modes)
        self._modes: dict[int, str] = {}
        self._classes: dict[int, str] = {}
        self._known: dict[tuple[str, tuple[int, ...], str], Place] = {}

    def learn(self, header: Mapping[str, Any]) -> bool:
        """Take over what the rank's header says of modes and classes; return whether it is new."""
        before = (self._modes, self._classes)
        modes, classes = header.get("modes"), header.get("classes")
        if isinstance(modes, dict) and len(modes) != len(self._modes):
            self._modes = {int(key): str(name) for key, name in modes.items()}
        if isinstance(classes, dict) and len(classes) != len(self._classes):
            self._classes = {int(key): str(name) for key, name in classes.items()}
        return before != (self._modes, self._classes)

    def worker(self, entry: int, place: int) -> str:
        """Return the worker of an entry's ``self``: by its class, else the entry's first."""
        name = self._classes.get(place, "").rpartition(".")[2]
        fitting = [w.name for w in self._workers if w.entry == entry]
        return name if name in fitting or not fitting else fitting[0]

    def place(self, worker: str, path: tuple[int, ...], mode: int) -> Place:
        """Return the phase of the forward that ends in the last target of ``path``."""
        key = (worker, path, self._modes.get(mode, ""))
        if key not in self._known:
            self._known[key] = self._place(*key)
        return self._known[key]

    def _place(self, worker: str, path: tuple[int, ...], mode: str) -> Place:
        phases = [p for w in self._workers if w.name == worker for p in w.phases]
        for fits in (_by_chain, _by_holder):
            found = [
                (self._mode_fits(phase, mode), depth, length, index)
                for index, phase in enumerate(phases)
                for depth, length in fits(phase, path)
                if self._mode_fits(phase, mode)
            ]
            if found:
                best = max(found, key=lambda item: (*item[:3], -item[3]))
                phase = phases[best[3]]
                return Place(phase.name, phase.holder, best[1], phase.scope)
        ending = [
            p for p in phases
            if self._mode_fits(p, mode) and any(c[-1] == path[-1] for c in p.chains)
        ]  # fmt: skip
        if len(ending) == 1:
            return Place(ending[0].name, 0, 0)
        return Place(UNKNOWN_PHASE, 0, 0)

    def _mode_fits(self, phase: PlanPhase, mode: str) -> int:
        """Return 2 where the phase names the mode, 1 where nothing speaks against it, else 0."""
        if mode in phase.modes:
            return 2
        return int(not mode or not phase.modes or mode in self._idle)


def _by_chain(phase: PlanPhase, path: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield depth and length of the phase's chains that are all open and end here."""
    for chain in phase.chains:
        if chain[-1] == path[-1] and set(chain) <= set(path):
            yield path.index(phase.holder) if phase.holder in path else 0, len(chain)


def _by_holder(phase: PlanPhase, path: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    if phase.holder in path:
        yield path.index(phase.holder), 0
