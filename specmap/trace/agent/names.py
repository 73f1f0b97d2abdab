"""Strings that records point to by number: reasons, sites, faults, notes."""

from __future__ import annotations

import itertools
import json
from collections import deque
from typing import Any

# A reason's operands may change with every batch; beyond this many, only the place is kept.
MOST_REASONS = 4096


class Names:
    """Numbers strings from 1 and keeps their lines until the spool's thread takes them."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: deque[dict[str, Any]] = deque()
        self._known: dict[Any, int] = {}

    def known(self, key: object) -> int | None:
        """Return the number that was given to a key, if any."""
        return self._known.get(key)

    @property
    def full(self) -> bool:
        """Return whether no more variants should be added."""
        return len(self._known) >= MOST_REASONS

    def add(self, kind: str, key: object | None = None, **fields: Any) -> int:
        """Number a new string, described by ``fields``; ``key`` finds the number again."""
        number = next(self._numbers)
        if key is not None:
            self._known[key] = number
        self._waiting.append({"id": number, "kind": kind, **fields})
        return number

    def take(self) -> bytes:
        """Return the JSON lines added since the last call."""
        lines = []
        while self._waiting:
            line = json.dumps(self._waiting.popleft(), ensure_ascii=False, default=str)
            lines.append(f"{line}\n")
        return "".join(lines).encode("utf-8", "replace")
