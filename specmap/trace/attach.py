"""Talks to the sleeping agents of a running server, one Unix socket a rank, same user only.

Facts about processes are read from ``/proc``: parents, titles, sockets, namespaces.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specmap.errors import SpecmapError

PROC = Path("/proc")
_SHOWN_TITLE = 40
_BOUND_AS = ".new"
_ENDED = ("Z", "X")
_ANSWER_SECONDS = 10.0
_CREDENTIALS = struct.Struct("3i")
_LONGEST_ANSWER = 1 << 20


@dataclass(frozen=True, slots=True)
class Process:
    """One process below a server; ``title`` is its command line."""

    pid: int
    title: str


def processes_of(pid: int) -> tuple[Process, ...]:
    """Return a process and all below it, by pid.

    Raises:
        SpecmapError: there is no such process, or no ``/proc``.
    """
    if not PROC.is_dir():
        raise SpecmapError("attaching needs Linux: it reads /proc")
    parents = dict(_parents())
    if pid not in parents:
        raise SpecmapError(f"no process {pid}")
    below = {pid}
    grown = True
    while grown:
        found = {child for child, parent in parents.items() if parent in below} - below
        below |= found
        grown = bool(found)
    return tuple(Process(one, title_of(one)) for one in sorted(below))


def _parents() -> Iterator[tuple[int, int]]:
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text("utf-8", "replace")
            except OSError:
                continue
            # The name stands in parentheses and may hold anything, spaces too.
            yield int(folder.name), int(stat.rpartition(")")[2].split()[1])


def runs(pid: int) -> bool:
    """Return whether a process is there and has not ended; a zombie has."""
    try:
        stat = (PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in _ENDED


def title_of(pid: int) -> str:
    """Return the command line of a process, empty if it is gone or hides it."""
    try:
        raw = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    return " ".join(raw.replace(b"\0", b" ").decode("utf-8", "replace").split())


def ranks_of(pid: int, title: str) -> tuple[int, ...]:
    """Return the processes at or below ``pid`` in which an agent listens.

    ``title`` is what a rank has in its command line. Where an agent started without a plan it
    listens in every process, so those with the title come first.

    Raises:
        SpecmapError: there is none; says what was found instead.
    """
    processes = processes_of(pid)
    _same_files(pid)
    titled = [one for one in processes if title in one.title]
    for candidates in (titled, processes):
        ranks = tuple(one.pid for one in candidates if _listens(one.pid))
        if ranks:
            return ranks
    seen = ", ".join(f"{one.pid} ({one.title[:_SHOWN_TITLE]})" for one in titled[:4])
    ranks_seen = f"; ranks without one: {seen}" if titled else ""
    raise SpecmapError(
        f"no agent listens in process {pid} or below it{ranks_seen}; start the server with "
        "'specmap trace --live --dormant -- ...', or see --inject"
    )


def listening(pid: int) -> tuple[int, ...]:
    """Return the processes at or below ``pid`` in which an agent listens; none if it is gone."""
    try:
        return tuple(one.pid for one in processes_of(pid) if _listens(one.pid))
    except SpecmapError:
        return ()


def _listens(pid: int) -> bool:
    try:
        return socket_of(pid) is not None
    except SpecmapError:
        return False


def socket_of(pid: int) -> Path | None:
    """Return the socket at which the agent of a process listens, None where none does.

    The kernel's list of sockets is asked and not the process's environment: ranks set their
    title, and that overwrites what ``/proc`` shows of the environment.

    Raises:
        SpecmapError: the process belongs to another user, or is gone.
    """
    folder = PROC / str(pid)
    try:
        opened = {link.readlink().name for link in (folder / "fd").iterdir() if link.is_symlink()}
        listed = (folder / "net" / "unix").read_text("utf-8", "replace").splitlines()
    except PermissionError:
        raise SpecmapError(
            f"process {pid} belongs to another user; run specmap as that user"
        ) from None
    except OSError as error:
        raise SpecmapError(f"process {pid}: {error.strerror or error}") from None
    for line in listed:
        # number, references, protocol, flags, type, state, inode, path
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and f"socket:[{fields[6]}]" in opened:
            # The agent binds beside the place and moves it there; the kernel keeps the old name.
            path = Path(fields[7].removesuffix(_BOUND_AS))
            if path.name == f"{pid}.sock" and path.is_socket():
                return path
    return None


def _same_files(pid: int) -> None:
    """Refuse a process that sees other files than we do: its run could not be read.

    Raises:
        SpecmapError: it runs in a container, or belongs to another user.
    """
    try:
        theirs = (PROC / str(pid) / "ns" / "mnt").readlink()
        ours = (PROC / "self" / "ns" / "mnt").readlink()
    except PermissionError:
        raise SpecmapError(
            f"process {pid} belongs to another user; run specmap as that user"
        ) from None
    except OSError:
        return
    if theirs != ours:
        raise SpecmapError(
            f"process {pid} runs in a container; run specmap inside it ('docker exec', "
            "'kubectl exec')"
        )


class Agent:
    """A connection to the agent of one rank. An agent disarms when the one that armed it goes."""

    def __init__(self, pid: int) -> None:
        """Connect to the agent of process ``pid``.

        Raises:
            SpecmapError: nobody answers, or another user does.
        """
        self.pid = pid
        path = socket_of(pid)
        if path is None:
            raise SpecmapError(f"no agent listens in process {pid}")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_ANSWER_SECONDS)
        try:
            self._socket.connect(str(path))
            self._check_peer()
        except OSError as error:
            self._socket.close()
            reason = error.strerror or str(error)
            raise SpecmapError(f"the agent of process {pid} does not answer: {reason}") from None
        self._rest = b""

    def _check_peer(self) -> None:
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, user, _ = _CREDENTIALS.unpack(raw)
        if user != os.getuid():
            self._socket.close()
            raise SpecmapError(f"the socket of process {self.pid} belongs to user {user}")

    def ask(self, do: str, **more: object) -> dict[str, object]:
        """Send one request and return the answer.

        Raises:
            SpecmapError: the agent refuses (its own line), is gone, or is too slow.
        """
        try:
            self._socket.sendall(json.dumps({"do": do, **more}).encode() + b"\n")
            answer = json.loads(self._line())
        except TimeoutError:
            raise SpecmapError(
                f"the agent of process {self.pid} does not answer: the process may be stuck"
            ) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise SpecmapError(f"the agent of process {self.pid} is gone: {reason}") from None
        if not isinstance(answer, dict) or not answer.get("ok"):
            said = answer.get("error") if isinstance(answer, dict) else answer
            raise SpecmapError(f"the agent of process {self.pid} refuses '{do}': {said}")
        return answer

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            if len(self._rest) > _LONGEST_ANSWER:
                raise ValueError("its answer has no end")
            block = self._socket.recv(1 << 16)
            if not block:
                raise ConnectionError("it closed the connection")
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
