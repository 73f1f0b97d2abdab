"""The agent's Unix socket: JSON lines from the same user, answered one by one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import stat
import struct
import sys
from time import sleep
from typing import Any, Protocol

from .faults import line_of, say
from .recording import Recording
from .settings import Settings

_LONGEST_LINE = 1 << 16
_STALE_S = 0.2
_CREDENTIALS = struct.Struct("3i")


class Armable(Protocol):
    """What the socket commands."""

    settings: Settings
    recording: Recording | None
    armed_by: int | None

    def arm(self, settings: Settings, asked_by: int | None = None) -> Recording:
        """Begin to record."""

    def disarm(self) -> None:
        """Stop, with finished files."""


class _Peer:
    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.connection, self.pid, self.waiting = connection, pid, b""
        self.owns = False


def remove_stale(folder: str) -> None:
    """Remove the sockets that killed processes left: those at which nobody listens.

    A name says nothing here: processes of another container may share the folder.
    """
    for name in os.listdir(folder):
        path = f"{folder}/{name}"
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
            if not name.endswith(".sock") or not stat.S_ISSOCK(os.stat(path).st_mode):
                continue
            asked.settimeout(_STALE_S)
            try:
                asked.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)


class Control:
    """The socket ``<folder>/<pid>.sock``, opened at the first turn; used by one thread only."""

    def __init__(self, agent: Armable, folder: str) -> None:
        self._agent, self._folder = agent, folder
        self._listener: socket.socket | None = None
        self._path = ""
        self._peers: dict[int, _Peer] = {}
        self._tried = False

    def poll(self, wait_s: float) -> None:
        """Answer what came in within ``wait_s`` seconds."""
        if not self._tried:
            self._tried = True
            self._listen()
        listener = self._listener
        if listener is None:
            sleep(wait_s)
            return
        poller = select.poll()
        for descriptor in (listener.fileno(), *self._peers):
            if descriptor >= 0:
                poller.register(descriptor, select.POLLIN)
        for descriptor, _ in poller.poll(wait_s * 1000):
            if descriptor == listener.fileno():
                self._accept(listener)
            elif descriptor in self._peers:
                self._read(self._peers[descriptor])

    def _listen(self) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if os.stat(self._folder).st_uid != os.getuid():
                raise PermissionError("the folder belongs to somebody else")
            remove_stale(self._folder)
            self._path = f"{self._folder}/{os.getpid()}.sock"
            mask = os.umask(0o177)
            try:
                listener.bind(f"{self._path}.new")
            finally:
                os.umask(mask)
            listener.listen(4)
            os.replace(f"{self._path}.new", self._path)  # seen only when it answers
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            say(f"no socket in {self._folder}: {line_of(error)}")
            return
        self._listener = listener

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            pid, user, _ = _CREDENTIALS.unpack(raw)
            if user != os.getuid():
                connection.close()
                return
            connection.setblocking(True)
            connection.settimeout(1.0)
            self._peers[connection.fileno()] = _Peer(connection, pid)

    def _read(self, peer: _Peer) -> None:
        try:
            data = peer.connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data or len(peer.waiting) > _LONGEST_LINE:
            self._gone(peer)
            return
        *lines, peer.waiting = (peer.waiting + data).split(b"\n")
        for line in lines:
            answer = json.dumps(self._answer(peer, line), default=str)
            try:
                peer.connection.sendall(f"{answer}\n".encode())
            except OSError:
                self._gone(peer)
                return

    def _gone(self, peer: _Peer) -> None:
        """Forget a peer; what it armed and did not disarm is disarmed."""
        self._peers.pop(peer.connection.fileno(), None)
        peer.connection.close()
        if peer.owns and self._agent.recording is not None:
            self._agent.disarm()

    def _answer(self, peer: _Peer, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
            do = asked.get("do")
            if do == "status":
                return self._status(asked.get("package"))
            if do == "arm":
                return self._arm(peer, asked)
            if do == "disarm":
                self._agent.disarm()
                peer.owns = False
                return {"ok": True}
        except Exception as error:
            return {"ok": False, "error": line_of(error)}
        return {"ok": False, "error": f"unknown request {do!r}"}

    def _status(self, package: object) -> dict[str, Any]:
        recording = self._agent.recording
        if recording is not None:
            package = recording.plan.package
        module = sys.modules.get(package) if isinstance(package, str) else None
        return {
            "ok": True,
            "pid": os.getpid(),
            "package": next(iter(getattr(module, "__path__", ())), None),
            "armed": recording is not None,
            "armed_by": self._agent.armed_by,
            "rank": recording and recording.rank,
            "dir": recording and recording.settings.folder,
            "cycles": recording.cycles if recording else 0,
        }

    def _arm(self, peer: _Peer, asked: dict[str, Any]) -> dict[str, Any]:
        if self._agent.recording is not None:
            by = self._agent.armed_by
            who = f"process {by}" if by else "its launch"
            return {"ok": False, "error": f"armed already, by {who}"}
        recording = self._agent.arm(self._agent.settings.changed(asked), peer.pid)
        peer.owns = True
        return {"ok": True, "rank": recording.rank}

    def close(self) -> None:
        """Remove the socket."""
        if self._listener is not None:
            self._listener.close()
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._listener = None

    def forget(self) -> None:
        """In a forked child: the socket is the parent's."""
        for one in (self._listener, *(peer.connection for peer in self._peers.values())):
            if one is not None:
                one.close()
        self._listener, self._peers, self._tried = None, {}, False
