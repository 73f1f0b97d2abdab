"""Rings that ended ranks left in shared memory, and that no reader of a run took in."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from specmap.errors import OutputError
from specmap.trace.spool import SHARED, alive

_RING = re.compile(r"specmap-(\d+)-(\d+)-[0-9a-f]{8}")


def left_rings(shared: Path = SHARED) -> Mapping[Path, int]:
    """Return the files of rings of this user that no process that can be seen uses, with bytes."""
    uid = str(os.getuid())
    found = [(path, _RING.fullmatch(path.name)) for path in sorted(shared.glob("specmap-*"))]
    mine = [(path, name[2]) for path, name in found if name is not None and name[1] == uid]
    # A rank in a container calls itself by another number: its mapping tells all the same.
    mapped = set(_mapped()) if mine else set()
    left: dict[Path, int] = {}
    for path, pid in mine:
        if not alive(pid) and path.name not in mapped:
            with contextlib.suppress(FileNotFoundError):
                left[path] = path.stat().st_size
    return left


def _mapped() -> Iterator[str]:
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            text = maps.read_text("utf-8", "replace")
        except OSError:
            continue
        yield from (found[0] for found in _RING.finditer(text))


def remove(ring: Path) -> None:
    """Remove a ring, if it is still there.

    Raises:
        OutputError: it cannot be removed.
    """
    try:
        ring.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot remove {ring}: {error.strerror or error}") from None
