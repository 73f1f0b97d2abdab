"""Wakes an agent in a process that was started without one. Only on explicit request.

Below Python 3.14 the process is stopped by ptrace at any instruction and made to load a
library. If it holds a lock of malloc, of the loader or of CUDA just then, it may deadlock.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from specmap.errors import OutputError, SpecmapError
from specmap.trace.attach import PROC, socket_of

RISK = (
    "ptrace stops the process wherever it is: if it holds a lock of malloc, the loader or CUDA, "
    "it may hang for good, and the server with it"
)
_REMOTE_EXEC = (3, 14)
_VERSION = re.compile(r"Python (\d+)\.(\d+)")
_ASK_SECONDS = 20
_WAKE_SECONDS = 20.0
_PAUSE_SECONDS = 0.05


def python_of(pid: int) -> tuple[int, int]:
    """Return the version of the Python that a process runs.

    Raises:
        SpecmapError: it is gone, another user's, or no Python.
    """
    try:
        program = (PROC / str(pid) / "exe").readlink()
        if not program.name.startswith("python"):
            raise SpecmapError(f"process {pid} runs {program}, which is no Python")
        done = subprocess.run(
            [str(program), "-V"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
    except FileNotFoundError:
        raise SpecmapError(f"no process {pid}") from None
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecmapError(f"process {pid} cannot be looked at: {reason}") from None
    found = _VERSION.match(done.stdout + done.stderr)
    if found is None:
        raise SpecmapError(f"{program} does not tell its version")
    return int(found[1]), int(found[2])


def script_of(wake: Path, environment: Mapping[str, str], into: Path) -> Path:
    """Write what the process is to run: set the agent's variables, then run ``wake``.

    Raises:
        OutputError: ``into`` cannot be written.
    """
    text = (
        f"import os, runpy\nos.environ.update({dict(environment)!r})\n"
        f"runpy.run_path({str(wake)!r})\n"
    )
    script = into / "inject.py"
    try:
        script.write_text(text, "utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {str(script)!r}: {error.strerror or error}") from None
    return script


def way_into(pid: int) -> Callable[[Path], None]:
    """Return what makes a process run a file; nothing is done to the process yet.

    Raises:
        SpecmapError: what is needed is not installed, or the process is no Python.
    """
    version = python_of(pid)
    return _remote_exec(pid, version) if version >= _REMOTE_EXEC else _hypno(pid)


def _remote_exec(pid: int, version: tuple[int, int]) -> Callable[[Path], None]:
    execute = getattr(sys, "remote_exec", None)
    if execute is None or sys.version_info[:2] != version:
        wanted = f"{version[0]}.{version[1]}"
        raise SpecmapError(
            f"process {pid} runs Python {wanted}, which only lets the same Python in; "
            f"run specmap under Python {wanted}"
        )

    def run(script: Path) -> None:
        try:
            execute(pid, str(script))
        except (OSError, RuntimeError) as error:
            raise SpecmapError(f"process {pid} lets nobody in: {error}") from None

    return run


def _hypno(pid: int) -> Callable[[Path], None]:
    try:
        hypno = importlib.import_module("hypno")
        refused = importlib.import_module("pyinjector").InjectorError
    except ImportError:
        raise SpecmapError(
            "--inject needs the package 'hypno': pip install hypno, beside specmap"
        ) from None

    def run(script: Path) -> None:
        try:
            # One expression: the code runs in the process's own __main__.
            hypno.inject_py(pid, f"__import__('runpy').run_path({str(script)!r})")
        except refused as error:
            raise SpecmapError(
                f"process {pid} lets nobody in: {error}; it takes root, CAP_SYS_PTRACE, or "
                "kernel.yama.ptrace_scope=0"
            ) from None

    return run


def wake_file() -> Path:
    """Return the file that wakes an agent in the process that runs it."""
    return Path(__file__).parent / "agent" / "wake.py"


def wait_for_agent(pid: int, seconds: float = _WAKE_SECONDS) -> None:
    """Wait until the agent of a process listens.

    Raises:
        SpecmapError: it does not, in this time.
    """
    until = time.monotonic() + seconds
    while socket_of(pid) is None:
        if time.monotonic() > until:
            raise SpecmapError(
                f"no agent woke in process {pid} within {seconds:.0f} s; its stderr says why"
            )
        time.sleep(_PAUSE_SECONDS)
