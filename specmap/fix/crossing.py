"""What passes between host and device, as the emulated device sees it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How an operation crosses between host and device.

    ``sync`` the host waits for the device; ``dynamic-shape`` the size of a result is known on
    the device only; ``pageable-copy`` a copy from or to memory that is not pinned;
    ``async-copy`` a copy between pinned memory and the device, without a wait;
    ``pinned-alloc`` pinned memory is allocated; ``host-scalar`` a kernel takes a number of the
    host by value.
    """

    SYNC = "sync"
    SHAPE = "dynamic-shape"
    PAGEABLE = "pageable-copy"
    ASYNC = "async-copy"
    PINNED = "pinned-alloc"
    SCALAR = "host-scalar"


BLOCKING = frozenset({Kind.SYNC, Kind.SHAPE, Kind.PAGEABLE})
"""Kinds that make the host wait, and that a capture refuses."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """One crossing: its kind, the operation, and the line that asked (``file.py:12``)."""

    kind: Kind
    operation: str
    site: str


class CaptureRefusedError(Exception):
    """A capture met a blocking crossing, which ``crossing`` describes."""

    def __init__(self, crossing: Crossing) -> None:
        super().__init__(f"{crossing.site}: {crossing.kind}: {crossing.operation}")
        self.crossing = crossing
