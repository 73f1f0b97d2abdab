"""The agent of one process: sleeps, arms, records, disarms."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from types import ModuleType
from typing import Any

from . import wrapplan
from .awaken import on_process_start, see_running
from .control import Control
from .faults import line_of, say
from .hook import Finder
from .identity import Identity
from .recording import Recording
from .settings import Settings
from .thread import INTERVAL_S, Service
from .wrapplan import Plan


class Agent:
    """One a process. ``lock`` orders arming, draining and disarming between threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.lock = threading.RLock()
        self.recording: Recording | None = None
        self.armed_by: int | None = None
        self.finder: Finder | None = None
        self._identity: Identity | None = None
        self._starting = threading.Lock()
        self._service: Service | None = None
        self._control = Control(self, settings.sockets)

    def start(self) -> None:
        """Begin: armed, or asleep until somebody asks over the socket."""
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forked)
        if not self.settings.dormant:
            self.arm(self.settings)
            return
        try:
            plan = wrapplan.read(self.settings.plan)
        except (OSError, ValueError, KeyError, TypeError):
            self.serve()
            return
        self._sleep(plan)

    def _sleep(self, plan: Plan) -> None:
        """Open the socket once this process turns out to be a rank."""
        identity = Identity(plan)

        def started(function: Any, args: Any, kwargs: Any) -> None:
            self._identity = identity
            identity.see_call(function, args, kwargs)
            self.serve()

        on_process_start(plan, self._watch, started)

    def _watch(self, wanted: Any, loaded: Any) -> None:
        """Be told of the loading of modules; once more replaces what was wanted before."""
        if self.finder is None:
            self.finder = Finder(wanted, loaded)
        self.finder.wanted, self.finder.loaded = wanted, loaded
        if self.finder not in sys.meta_path:
            sys.meta_path.insert(0, self.finder)

    def arm(self, settings: Settings, asked_by: int | None = None) -> Recording:
        """Wrap what the plan names and record from the first call on.

        Raises:
            OSError, ValueError, KeyError, TypeError: the plan cannot be read.
        """
        with self.lock:
            plan = wrapplan.read(settings.plan)
            identity = self._identity or Identity(plan)
            if self._identity is None and self.settings.dormant:
                see_running(plan, identity.see)
            self.recording = Recording(settings, plan, identity, self.serve)
            self.armed_by = asked_by
            try:
                self._watch(plan.modules, self._loaded)
                self.recording.apply_loaded()
            except Exception:
                self.disarm()
                raise
            return self.recording

    def _loaded(self, module: ModuleType) -> None:
        if self.recording is not None:
            self.recording.loaded(module)

    def disarm(self) -> None:
        """Take everything away, write what is left, and finish the files."""
        with self.lock:
            recording, self.recording = self.recording, None
            self.armed_by = None
            if self.finder is not None and self.finder in sys.meta_path:
                sys.meta_path.remove(self.finder)
            if recording is not None:
                recording.finish()

    def serve(self) -> None:
        """Start the thread that writes the files and answers the socket; once."""
        with self._starting:
            if self._service is None:
                self._service = Service(self._turn)
                self._service.start()

    def _turn(self) -> None:
        """One turn of the agent's thread."""
        self._control.poll(INTERVAL_S)
        with self.lock:
            if self.recording is not None and self.recording.open:
                self.recording.turn()
                if self.recording.failed or self._abandoned():
                    self.disarm()

    def _abandoned(self) -> bool:
        """Return whether the process that reads this recording is gone."""
        pid = self.armed_by or self.settings.collector
        if not pid:
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            say(f"the collector (process {pid}) is gone; tracing stopped")
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Write what is left at the end of the process."""
        with contextlib.suppress(Exception):
            if self._service is not None:
                self._service.stop()
            self.disarm()
            self._control.close()

    def _forked(self) -> None:
        """In a forked child: the ring, the files and the socket are the parent's."""
        self.lock, self._starting = threading.RLock(), threading.Lock()
        recording, self.recording = self.recording, None
        if recording is not None:
            recording.forget()
        self._service = None
        self._control.forget()
        atexit.unregister(self.close)


def run(settings: Settings) -> Agent | None:
    """Start the agent of this process; a failure is one line on stderr and no agent."""
    try:
        agent = Agent(settings)
        agent.start()
    except Exception as error:
        say(f"no trace of process {os.getpid()}: {line_of(error)}")
        return None
    return agent
