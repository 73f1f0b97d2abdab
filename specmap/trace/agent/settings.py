"""What the environment asks of the agent; read once, inherited by every rank."""

from __future__ import annotations

import copy
import os

DORMANT = "dormant"
_RING_RECORDS = 1 << 16


class Settings:
    """The agent's switches.

    SPECMAP_TRACE: ``1`` records from the start, ``dormant`` waits for the socket. SPECMAP_DIR:
    folder of the run. SPECMAP_PLAN: wrap plan, by default plan.json there. SPECMAP_SPANS=N: GPU
    spans in every Nth cycle. SPECMAP_SYNCS=1: places that wait for the GPU. SPECMAP_LAUNCHES=1:
    launches, counted by CUPTI. SPECMAP_WINDOWS: cycles of a window of the overhead check.
    SPECMAP_COLLECTOR: process whose end ends the trace. SPECMAP_RING: records of the ring.
    SPECMAP_EXTENSION: folder of the C ring. SPECMAP_SOCKETS: folder of the socket.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self.dormant = environment.get("SPECMAP_TRACE") == DORMANT
        self.folder = environment.get("SPECMAP_DIR", "")
        self.plan = environment.get("SPECMAP_PLAN") or os.path.join(self.folder, "plan.json")
        self.spans = _number(environment, "SPECMAP_SPANS", 0)
        self.syncs = environment.get("SPECMAP_SYNCS") == "1"
        self.launches = environment.get("SPECMAP_LAUNCHES") == "1"
        self.windows = _number(environment, "SPECMAP_WINDOWS", 0)
        self.collector = _number(environment, "SPECMAP_COLLECTOR", 0)
        self.records = _power_of_two(_number(environment, "SPECMAP_RING", _RING_RECORDS))
        self.extension = environment.get("SPECMAP_EXTENSION", "")
        self.sockets = _socket_folder(environment)

    def changed(self, asked: dict[str, object]) -> Settings:
        """Return a copy with what a request over the socket asks for."""
        new = copy.copy(self)
        new.folder = str(asked.get("dir") or self.folder)
        new.plan = str(asked.get("plan") or f"{new.folder}/plan.json")
        new.syncs, new.launches = bool(asked.get("syncs")), bool(asked.get("launches"))
        new.spans, new.windows = (
            number if isinstance(number, int) else 0
            for number in (asked.get("spans"), asked.get("windows"))
        )
        new.collector = 0
        return new


def from_environment() -> Settings | None:
    """Return the switches, or None where nobody asked for a trace."""
    if not os.environ.get("SPECMAP_TRACE"):
        return None
    return Settings(dict(os.environ))


def _number(environment: dict[str, str], name: str, default: int) -> int:
    text = environment.get(name, "")
    return int(text) if text.isdigit() else default


def _power_of_two(number: int) -> int:
    """Return ``number`` or the next power of two, at least 8: the ring masks its position."""
    return max(8, 1 << (number - 1).bit_length())


def _socket_folder(environment: dict[str, str]) -> str:
    given = environment.get("SPECMAP_SOCKETS")
    if given:
        return given
    run_time = environment.get("XDG_RUNTIME_DIR", "")
    if run_time and os.access(run_time, os.W_OK):
        return f"{run_time}/specmap"
    return f"/tmp/specmap-{os.getuid()}"
