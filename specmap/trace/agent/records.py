"""The record of an event, the page in front of the ring, and the kinds of events.

All numbers are little-endian. A record: time in ns of CLOCK_MONOTONIC (u64), target (u32),
kind (u16), forward mode (i16), size (i32), value (i32), object (u64).
"""

from __future__ import annotations

import struct

RECORD = struct.Struct("<QIHhiiQ")
NONE = -1

ENTER, EXIT, RAISE, REASON, REPLAY, CAPTURE_BEGIN, CAPTURE_END, SYNC = range(1, 9)
GPU_SPAN, ACCEPT, DROPS, ARM, DISARM, NOTE, OVERHEAD, LAUNCHES, COUNTING = range(9, 18)

SPOOL_HEADER = struct.pack("<8sII48x", b"SPECMAP1", RECORD.size, 1)
SPOOL_END = 16  # place of why a rank wrote no more: the disk's error number, or the agent failed
AGENT_FAILED = 0xFFFFFFFF

# The page in front of the ring's records.
PAGE_BYTES = 4096
PAGE = struct.Struct("<8sIIQQ")
PAGE_MAGIC = b"SPECRING"
# Positions of its counters, in words of 8 bytes; each has a cache line of its own.
HEAD, TAIL, DROPPED, FOREIGN, CYCLES = 8, 16, 24, 25, 32


def page(records: int, pid: int) -> bytes:
    """Return the first bytes of a ring's page: magic, version, record size, capacity, pid."""
    return PAGE.pack(PAGE_MAGIC, 1, RECORD.size, records, pid)
