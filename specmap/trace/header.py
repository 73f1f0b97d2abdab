"""The header of a rank: what its JSON file says, whatever of it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmap.codemap.event import RankRun
from specmap.codemap.launch import Plain
from specmap.trace.spool import Tail

_VERSIONS = ("specmap", "python", "sglang", "torch", "driver")


class Header:
    """Reads a header without trusting it: a killed rank leaves little."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def number(self, key: str, default: int = -1) -> int:
        """Return a whole number of the header."""
        value = self._data.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def _positive(self, key: str) -> int | None:
        number = self.number(key)
        return number if number > 0 else None

    def text(self, key: str) -> str:
        """Return a text of the header, "" where there is none."""
        value = self._data.get(key)
        return "" if value is None else str(value)

    def table(self, key: str) -> Mapping[str, Any]:
        """Return a table of the header, empty where there is none."""
        value = self._data.get(key)
        return value if isinstance(value, dict) else {}

    def targets(self, wrapped: bool) -> tuple[tuple[str, str], ...]:
        """Return the functions that were wrapped, or were not, each with why not."""
        targets = self._data.get("targets")
        found = targets if isinstance(targets, list) else []
        return tuple(
            (str(t.get("symbol", "")), str(t.get("reason", "")))
            for t in found
            if isinstance(t, dict) and t.get("wrapped") is wrapped
        )

    def rank_run(self, tail: Tail, **figures: Any) -> RankRun:
        """Return the rank with its figures and all that the header adds."""
        faults = [
            str(item.get("text") or item.get("fault") or item.get("message") or "fault")
            for _, item in sorted(tail.names.items())
            if item.get("kind") == "fault"
        ]
        return RankRun(
            name=tail.name,
            tp_rank=self.number("tp_rank"),
            pp_rank=self.number("pp_rank"),
            dp_rank=self.number("dp_rank"),
            pid=self.number("pid"),
            host=self.text("host"),
            ring=self.text("ring"),
            gpu=self.text("gpu"),
            finished=self._data.get("finished") is True,
            cut_bytes=tail.cut_bytes,
            cut_short=tail.cut_short,
            wrapped=len(self.targets(True)),
            missing=self.targets(False),
            faults=tuple(faults),
            arguments={k: _plain(v) for k, v in sorted(self.table("arguments").items())},
            versions={k: self.text(k) for k in _VERSIONS if self.text(k)},
            environment={k: str(v) for k, v in sorted(self.table("environment").items())},
            gpu_memory_bytes=self._positive("gpu_memory_bytes"),
            gpu_sm=self._positive("gpu_sm"),
            **figures,
        )


def _plain(value: Any) -> Plain:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if isinstance(value, bool | int | float | str | None) else str(value)
