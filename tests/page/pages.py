"""Pages of real releases and recorded runs, written once a session."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.made_ranks import Flaws, Maker
from specmap.launched import Launch
from specmap.report.page.data import packed
from specmap.report.page.timeline import Columns
from specmap.reported import Request, report
from tests.report.page.subjects import unpacked
from tests.trace.recorded import MAX_BS_2

RELEASES = ("0.5.9", "0.5.12", "0.5.23")
MADE_CYCLES, MADE_EAGER = 400, 207
LONG_CYCLES = 100_000
_CODES = {"u8": "B", "u16": "H", "u32": "I", "f64": "d"}


@dataclass(frozen=True)
class Page:
    """A page on the disk, and the data inside it."""

    path: Path

    @cached_property
    def _unpacked(self) -> tuple[dict[str, Any], bytes]:
        return unpacked(self.path.read_bytes())

    @property
    def data(self) -> dict[str, Any]:
        """The JSON."""
        return self._unpacked[0]

    @property
    def side(self) -> dict[str, Any]:
        """Its first side."""
        side: dict[str, Any] = self.data["sides"][0]
        return side

    def column(self, rank: int, part: str, name: str) -> list[int]:
        """Return the numbers of a column of a rank's timeline."""
        return values(self.side["run"]["ranks"][rank]["timeline"][part][name], self._unpacked[1])

    def phases(self) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
        """Yield worker index, worker and phase of every row of the table."""
        for index, worker in enumerate(self.side["workers"]):
            for phase in worker["phases"]:
                yield index, worker, phase


def values(column: Mapping[str, Any], content: bytes) -> list[int]:
    """Return a column as numbers."""
    code = f"<{column['count']}{_CODES[column['type']]}"
    found = struct.unpack_from(code, content, column["at"])
    return [int(value) for value in (accumulate(found) if column["delta"] else found)]


def write(path: Path, *targets: str, run: Path | None = None, launch: Launch | None = None) -> Page:
    """Write the page of one or two targets."""
    path.write_bytes(report(Request(targets=targets, run=run, launch=launch)).content)
    return Page(path)


def recorded(folder: Path) -> Path:
    """Write the recorded run whose graphs were captured up to a batch of 2."""
    run = folder / MAX_BS_2.name
    run.mkdir()
    MAX_BS_2.write(run)
    return run


def recorded_on_cpu(folder: Path) -> Path:
    """Write the recorded run of a real worker of 0.5.9 on the CPU (tests/live, tape graphs)."""
    run = folder / "cpu-v1"
    run.mkdir()
    replace(MAX_BS_2, name="cpu-v1").write(run)
    return run


def two_ranks(folder: Path) -> Path:
    """Write a run of two ranks; the verify of the second is eager from a cycle on."""
    run = folder / "two-ranks"
    Maker().write(run, 2, MADE_CYCLES, Flaws(eager=(1, MADE_EAGER)))
    return run


def lengthened(page: Page, path: Path) -> Page:
    """Write the page of a run again, its cycles repeated up to a hundred thousand."""
    data, content = unpacked(page.path.read_bytes())
    columns = Columns()
    for rank in data["sides"][0]["run"]["ranks"]:
        _repeat(rank, content, columns)
    return repacked(page, path, data, columns.content())


def repacked(page: Page, path: Path, data: dict[str, Any], content: bytes = b"") -> Page:
    """Write a page again with other data in it."""
    text = base64.b64encode(packed(data, content)).decode("ascii")
    old = page.path.read_text("utf-8")
    new = re.sub(r'(id="specmap-data">)[^<]*', lambda found: found[1] + text, old)
    path.write_text(new, "utf-8")
    return Page(path)


def _repeat(rank: dict[str, Any], content: bytes, columns: Columns) -> None:
    timeline = rank["timeline"]
    times = -(-LONG_CYCLES // timeline["cycles"])
    timeline |= {"cycles": timeline["cycles"] * times, "passes": timeline["passes"] * times}
    for part in ("cycle", "pass"):
        for name, column in timeline[part].items():
            once = values(column, content)
            moved = name in ("number", "start") and part == "cycle"
            step = once[-1] + 1 if moved else 0
            many = [value + turn * step for turn in range(times) for value in once]
            timeline[part][name] = columns.add(many, delta=moved)
