"""Starts a command with the agent in every Python below it, and ends it as its user asks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from specmap.errors import OutputError, SpecmapError

SWITCH = "SPECMAP_TRACE"
_SIGNALLED = 128
_GRACE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the agent is told besides the plan.

    ``spans``: GPU times in one of so many cycles, 0 for none. ``windows`` is the number of cycles
    in one armed or disarmed window, 0 for none.
    """

    spans: int = 0
    syncs: bool = False
    launches: bool = False
    windows: int = 0


def inject_folder() -> Path:
    """Return the folder that brings the agent in when it stands first on PYTHONPATH."""
    return Path(__file__).parent / "agent" / "inject"


# What options of a trace ask for; a value left in somebody's shell asks for nothing.
_ASKED = frozenset({"SPECMAP_SPANS", "SPECMAP_SYNCS", "SPECMAP_LAUNCHES", "SPECMAP_WINDOWS"})


def check_untraced(environment: Mapping[str, str]) -> None:
    """Refuse an environment that carries an agent already.

    Raises:
        SpecmapError: naming the variable.
    """
    if environment.get(SWITCH):
        raise SpecmapError(
            f"{SWITCH} is set, so another tracer is in this environment; unset it, or use --attach"
        )


def environment_of(
    base: Mapping[str, str], *, directory: Path | None, options: Options, dormant: bool = False
) -> dict[str, str]:
    """Return the environment that carries the agent into every process below a command.

    A dormant agent is told no ``directory``: who arms it names one.
    """
    path = [str(inject_folder()), *filter(None, [base.get("PYTHONPATH")])]
    added = {"PYTHONPATH": os.pathsep.join(path), SWITCH: "dormant" if dormant else "1"}
    if directory is not None:
        added["SPECMAP_DIR"] = str(directory)
        added["SPECMAP_PLAN"] = str(directory / "plan.json")
        added["SPECMAP_COLLECTOR"] = str(os.getpid())
    if options.spans:
        added["SPECMAP_SPANS"] = str(options.spans)
    if options.syncs:
        added["SPECMAP_SYNCS"] = "1"
    if options.launches:
        added["SPECMAP_LAUNCHES"] = "1"
    if options.windows:
        added["SPECMAP_WINDOWS"] = str(options.windows)
    return {name: value for name, value in base.items() if name not in _ASKED} | added


class Server:
    """A command that runs as a child, in a process group of its own.

    So Ctrl-C reaches specmap first, which stops the trace and then passes the signal on to
    the whole group, as the terminal would have. A background group that reads from the
    terminal is stopped by the kernel, so standard input is a terminal's end of file;
    anything else is inherited.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path | None = None
    ) -> None:
        """Start the command; its output goes to ``log``, or where specmap's own goes.

        Raises:
            SpecmapError: there is no such command.
            OutputError: the log cannot be written.
        """
        with contextlib.ExitStack() as files:
            output = None if log is None else files.enter_context(_open(log))
            try:
                self._process = subprocess.Popen(
                    list(command),
                    env=dict(environment),
                    stdin=subprocess.DEVNULL if os.isatty(0) else None,
                    stdout=output,
                    stderr=output,
                    process_group=0,
                )
            except OSError as error:
                reason = error.strerror or str(error)
                raise SpecmapError(f"cannot start {command[0]!r}: {reason}") from None
        self.pid = self._process.pid

    def ended(self) -> int | None:
        """Return the exit code of a command that ended, 128 + N for signal N; else None."""
        code: int | None = self._process.poll()
        return code if code is None or code >= 0 else _SIGNALLED - code

    def pass_on(self, number: signal.Signals) -> None:
        """Send a signal as its sender would: SIGTERM to the command, others to its whole group."""
        if number == signal.SIGTERM:
            self._process.terminate()
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def terminate(self, seconds: float = _GRACE_SECONDS) -> bool:
        """End the command with SIGTERM, and with SIGKILL after a while; False if it took that."""
        if self.ended() is not None:
            return True
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.pass_on(signal.SIGKILL)
            self._process.wait()
            return False
        return True


def _open(log: Path) -> BinaryIO:
    try:
        return log.open("ab")
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot write {str(log)!r}: {reason}; name another --log") from None


def become(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Replace specmap by the command, which then runs as if it had been started alone.

    Raises:
        SpecmapError: there is no such command.
    """
    try:
        os.execvpe(command[0], list(command), dict(environment))
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecmapError(f"cannot start {command[0]!r}: {reason}") from None
