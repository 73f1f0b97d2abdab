"""One recording of this rank: from arming to the finished files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import monotonic
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .awaken import bind_processes
from .bind import Binding
from .faults import line_of, say, told
from .identity import Identity, clock_pair, environment, gpu, machine, title, versions
from .log import Log
from .makering import make_ring
from .memory import Memory
from .names import Names
from .reasons import Reasons
from .records import AGENT_FAILED, ARM, CYCLES, DISARM, NONE
from .settings import Settings
from .spans import Spans
from .syncs import Syncs
from .targets import Layer, Targets
from .torchgraph import GraphHooks
from .windows import Windows
from .wrapplan import Plan

if TYPE_CHECKING:
    from .driverspans import DriverSpans
    from .launches import Launches

_HEADER_EVERY_S = 10.0
_MOST_CLASSES = 256


class Recording:
    """Ring, wrappers and files. Nothing is made before the first wrapped call of the process."""

    def __init__(
        self, settings: Settings, plan: Plan, identity: Identity, serve: Callable[[], None]
    ) -> None:
        self.settings, self.plan, self._serve = settings, plan, serve
        self.names = Names()
        self.ring, self.ring_note = make_ring(settings.extension)
        self.identity = identity
        self._facts: dict[str, Any] = {}
        self.graphs = GraphHooks(plan.graph, self.ring)
        reasons = Reasons(self.ring, self.names, plan)
        reasons.armed = self.ring.recording
        self._spans: Spans | DriverSpans | None = None
        if settings.spans:
            self._spans = self._spans_of(settings.spans)
        self._syncs: Syncs | None = None
        if settings.syncs:
            self._syncs = Syncs(self.ring, self.names, plan.package, self._capturing)
        self._launches: Launches | None = None
        if settings.launches:
            from .launches import Launches

            self._launches = Launches(self.ring, plan.graph.collectives)
        layers: list[Layer] = self._spans.layers if self._spans is not None else []
        self.targets = Targets(plan, self.ring, reasons, layers)
        self.log: Log | None = None
        self._memory: Memory | None = None
        self._processes: list[Binding] = []
        self._classes: dict[str, str] = {}
        self._gpu: dict[str, Any] | None = None
        self._clock = [clock_pair()]
        self._written = 0.0
        self._broken = False
        self._dirty = True
        self._windows: Windows | None = None
        if settings.windows:
            self._windows = Windows(settings.windows, self.ring, self._launches)
        self.ring.hooks(self._wake, self._cycle_done, self._seen)

    @property
    def open(self) -> bool:
        """Return whether a wrapped call has been made, so that there is something to write."""
        return self._memory is not None

    @property
    def failed(self) -> bool:
        """Return whether the disk refused."""
        return self.log is not None and bool(self.log.failed)

    @property
    def cycles(self) -> int:
        """Return how many cycles have ended."""
        return self._cycle()

    def _cycle(self) -> int:
        if self._memory is None:
            return 0
        start = CYCLES * 8
        return int.from_bytes(self._memory.map[start : start + 8], "little")

    def _capturing(self) -> bool:
        return self.ring.capturing > 0

    def _spans_of(self, every: int) -> Spans | DriverSpans:
        from .driverspans import driver_spans

        found = driver_spans(self.ring, every)
        return found or Spans(self.ring, self._capturing, self._cycle, every)

    @property
    def rank(self) -> str:
        """Return the name of this rank's files."""
        return self.log.rank if self.log is not None else self.identity.rank

    def apply_loaded(self) -> None:
        """Wrap what is loaded already."""
        self._hook_torch()
        self.targets.apply_loaded()
        for name in {module for module, _ in self.plan.processes} & set(sys.modules):
            self._bind_processes(sys.modules[name])

    def loaded(self, module: ModuleType) -> None:
        """Wrap a module that has just been loaded; never raises into the import."""
        try:
            self._bind_processes(module)
            self.targets.apply(module)
            self._hook_torch()
        except Exception as error:
            say(f"{module.__name__} is not traced: {line_of(error)}")
        self._dirty = True

    def _hook_torch(self) -> None:
        self.graphs.apply()
        if self._syncs is not None:
            self._syncs.apply()

    def _bind_processes(self, module: ModuleType) -> None:
        self._processes += bind_processes(self.plan, module, self._process_started)

    def _process_started(self, function: Any, args: Any, kwargs: Any) -> None:
        """Learn the rank from the arguments of the function that starts it."""
        try:
            self.identity.see_call(function, args, kwargs)
        except Exception as error:
            say(f"the rank is not known: {line_of(error)}")

    def _wake(self) -> None:
        """Make memory and files at the first wrapped call, on the caller's thread."""
        try:
            self._memory = Memory(self.settings.records)
            self.ring.attach(self._memory.map, self.settings.records)
            self.ring.arm(True, True)
            self.ring.put(0, ARM, NONE, NONE, NONE, self.cycles)
            self._hook_torch()
            if self._launches is not None:
                self._launches.start()
            self._serve()
        except Exception as error:
            self.ring.arm(False, False)
            say(f"nothing is traced: {line_of(error)}")

    def _seen(self, thing: Any) -> None:
        """Keep the class of an object on which an entry or a sink is called; those of batches
        are many and of no use, so there is an end to it."""
        try:
            if len(self._classes) < _MOST_CLASSES:
                self._classes[str(id(thing))] = type(thing).__name__
                self.identity.see(lambda name: getattr(thing, name, None))
                self._dirty = True
        except Exception as error:
            say(f"the rank is not known: {line_of(error)}")

    def _cycle_done(self) -> None:
        """Look round once after the first cycle; later only what was asked for."""
        try:
            if self._gpu is None:
                self._gpu = gpu()
                self.identity.read_arguments()
                self._dirty = True
            more = self._spans is not None and self._spans.read()
            if self._windows is not None:
                self._windows.cycle_done(self._cycle())
            elif not more:
                self.ring.hooks(None, None, self._seen)  # nothing more to do between cycles
        except Exception as error:
            self.ring.arm(False, False)
            say(f"tracing stopped: {line_of(error)}")

    def turn(self) -> None:
        """Write what the ring holds; once that raised, the ring is left to who salvages it."""
        try:
            self._write()
        except Exception:
            self._broken = True
            if self.log is not None:
                self.log.mark_end(AGENT_FAILED)
            raise

    def _write(self) -> None:
        """Write the records; the header too when it changed, or its clock is old."""
        if self.log is None:
            assert self._memory is not None
            self.log = Log(self.settings.folder, self.identity.rank, self._memory, self.names)
            self.log.write_header(self.header(finished=False))  # tells where the ring lies
        if self._spans is not None:
            self._spans.check()
        for text in told():
            self.names.add("fault", text=text)
        self.log.drain()
        if self._dirty or monotonic() - self._written > _HEADER_EVERY_S:
            self._dirty = False
            self._written = monotonic()
            self._clock = [*self._clock[:1], *self._clock[1:][-200:], clock_pair()]
            self.log.write_header(self.header(finished=False))

    def finish(self) -> None:
        """Take the wrappers away, write what is left, and say that the files are complete."""
        steps = [self.forget, self.targets.restore, self.graphs.restore]
        steps += [binding.restore for binding in self._processes]
        if self._syncs is not None:
            steps.append(self._syncs.restore)
        if self._launches is not None:
            steps.append(self._launches.stop)
        for step in [*steps, self._close]:
            try:
                step()
            except Exception as error:
                say(f"the end of the trace: {line_of(error)}")

    def _close(self) -> None:
        if self._memory is None or self._broken:
            return
        self.turn()
        assert self.log is not None
        self.log.drain()  # a mark of drops may have had to wait for its place
        self.log.mark(DISARM)
        self._memory.unlink()
        self.log.write_header(self.header(finished=not self.log.failed))
        self.log.close()

    def forget(self) -> None:
        """Stop recording; all that a forked child may do, since the files are its parent's."""
        self.ring.hooks(None, None, None)
        self.ring.arm(False, False)

    def header(self, finished: bool) -> dict[str, Any]:
        """Return ``<rank>.json``."""
        ranks = self.identity.known_ranks()
        if not self._facts:
            self._facts = {**machine(), **versions(self.plan.package)}
        return {
            "schema": 1,
            "pid": os.getpid(),
            "process_title": title(),
            **{key: ranks.get(key) for key in ("tp_rank", "pp_rank", "dp_rank", "gpu_id")},
            **self._facts,
            "gpu": None,
            **(self._gpu or {}),
            "ring": self.ring.kind,
            "ring_note": self.ring_note,
            "shm": self._memory and self._memory.name,
            "arguments": self.identity.arguments,
            "environment": environment(),
            "clock": self._clock,
            "targets": self.targets.report(),
            "modes": self._modes(),
            "classes": self._classes,
            "armed_from_start": not self.settings.dormant,
            "cycles": self.cycles,
            "spans": self.settings.spans,
            "spans_dropped": self._spans.dropped if self._spans is not None else 0,
            "syncs": self.settings.syncs,
            "launches": self.settings.launches,
            "windows": self.settings.windows,
            "finished": finished,
        }

    def _modes(self) -> dict[str, str]:
        """Return the names of the forward modes by their numbers."""
        module, name = self.plan.enum or ("", "")
        members = getattr(getattr(sys.modules.get(module), name, None), "__members__", {})
        return {str(one.value): key for key, one in members.items() if isinstance(one.value, int)}
