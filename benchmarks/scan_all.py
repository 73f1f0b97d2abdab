"""Scans every SGLang release from 0.4.6 on that the package index lists.

Each release is scanned cold, in a process of its own: releases first, then post-releases, the
newest first. Printed per release: the workers that the scheduler can drive, whether each has a
verify phase that ends in a sink, how many call sites on the cycle nobody could resolve, and the
seconds of the scan (downloads excluded); at the end the same as one table, oldest first.
A second run goes on where the first one stopped: what this same scanner found is kept in a file.
Exit code 1: a scan failed, or a worker has no verify phase that ends.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from specmap.codemap.graph import EdgeStatus, Worker
from specmap.codemap.verdict import PhaseName
from specmap.errors import SpecmapError
from specmap.pipeline import default_cache_dir
from specmap.scan.build import scan
from specmap.scan.checkout import resolve_target
from specmap.scan.fetch import PipIndex
from specmap.scan.mapcache import reader_digest

OLDEST = Version("0.4.6")
AIM_PERCENT = 5.0
KEPT = Path("output") / "scan-all.jsonl"
LIMIT_S = 900
PLATFORM = "cuda"


@dataclass(frozen=True, slots=True)
class Result:
    """What one scan found; ``failure`` is empty unless it did not end well."""

    release: str
    workers: tuple[str, ...] = ()
    without_verify: tuple[str, ...] = ()
    unresolved: int = 0
    call_sites: int = 0
    partial: bool = False
    seconds: float = 0.0
    failure: str = ""

    @property
    def percent(self) -> float:
        """Unresolved call sites in per cent."""
        return 100.0 * self.unresolved / self.call_sites if self.call_sites else 0.0

    @property
    def good(self) -> bool:
        """Whether the scan ended and every worker's verify phase ends in a sink."""
        return not (self.failure or self.without_verify or self.partial) and bool(self.workers)


def main() -> int:
    """Scan the releases one after another and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--release", action="append", help="only this release; may be repeated")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where results are kept")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--one", metavar="RELEASE", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(asdict(scan_one(chosen.one))))
        return 0
    kept = Kept(chosen.kept, fresh=chosen.fresh)
    try:
        releases = chosen.release or listed()
    except SpecmapError as error:
        print(f"scan-all: {error}", file=sys.stderr)
        return 2
    return summarised([scanned(release, kept) for release in releases])


class Kept:
    """Results of earlier runs of the same scanner, one JSON object a line."""

    def __init__(self, path: Path, *, fresh: bool) -> None:
        self._path = path
        self._scanner = reader_digest(PLATFORM, None)
        self._found: dict[str, Result] = {}
        if fresh:
            path.unlink(missing_ok=True)
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            fields = json.loads(line)
            if fields.pop("scanner") == self._scanner:
                self._found[fields["release"]] = result_of(fields)

    def get(self, release: str) -> Result | None:
        """Return the good result of a release; a failure is tried again."""
        found = self._found.get(release)
        return found if found is not None and found.good else None

    def add(self, result: Result) -> None:
        """Keep a result."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result) | {"scanner": self._scanner}) + "\n")


def listed() -> list[str]:
    """Return what is on the index: releases, then post-releases, each the newest first."""
    versions = [v for v in map(Version, PipIndex().releases()) if v >= OLDEST]
    return [str(v) for v in sorted(versions, key=lambda v: (not v.is_postrelease, v), reverse=True)]


def scanned(release: str, kept: Kept) -> Result:
    """Return the kept result of a release, or scan it, and print its line."""
    result = kept.get(release)
    if result is None:
        result = in_a_process(release)
        kept.add(result)
    print(line_of(result), flush=True)
    return result


def summarised(results: list[Result]) -> int:
    """Print the table, oldest release first, and what is wrong; return the exit code."""
    print(f"\n{'release':14}{'s':>6}{'sites':>7}{'unresolved':>12}  workers (! = no verify sink)")
    for result in sorted(results, key=lambda r: Version(r.release)):
        print(line_of(result))
    bad = [r.release for r in results if not r.good]
    over = [r.release for r in results if r.percent > AIM_PERCENT]
    print(f"\n{len(results)} releases, {len(bad)} failed: {', '.join(bad) or 'none'}")
    print(f"over {AIM_PERCENT:g} % unresolved: {', '.join(over) or 'none'}")
    return 1 if bad else 0


def in_a_process(release: str) -> Result:
    """Scan in a child, so that a crash is one line and the next release starts fresh."""
    command = [sys.executable, __file__, "--one", release]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return Result(release, failure=f"no map after {LIMIT_S} s")
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return Result(release, failure=lines[-1] if lines else f"exit {done.returncode}")
    return result_of(json.loads(done.stdout.splitlines()[-1]))


def result_of(fields: dict[str, Any]) -> Result:
    """Return the result that was written as JSON."""
    lists = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    return Result(**(fields | lists))


def scan_one(release: str) -> Result:
    """Fetch a release if need be, scan it without a cache and count."""
    checkout = resolve_target(f"sglang=={release}", cwd=Path.cwd(), cache_dir=default_cache_dir())
    start = time.perf_counter()
    code_map = scan(checkout, platform=PLATFORM)
    seconds = time.perf_counter() - start
    driven = [w for w in code_map.workers if w.reachable and w.entry is not None]
    unresolved = sum(e.status is EdgeStatus.UNRESOLVED for e in code_map.edges)
    return Result(
        release,
        workers=names(driven, lambda worker: True),
        without_verify=names(driven, lambda worker: not verify_ends(worker)),
        unresolved=unresolved,
        call_sites=len(code_map.edges),
        partial=code_map.partial,
        seconds=seconds,
    )


def names(workers: list[Worker], wanted: Callable[[Worker], bool]) -> tuple[str, ...]:
    """Return the sorted names of the workers that are wanted."""
    return tuple(sorted(worker.name for worker in workers if wanted(worker)))


def verify_ends(worker: Worker) -> bool:
    """Whether the worker has a verify phase with a way to a sink."""
    return any(phase.name is PhaseName.VERIFY and phase.arms for phase in worker.phases)


def line_of(result: Result) -> str:
    """Return the line of one release."""
    marked = [f"{name}{'!' if name in result.without_verify else ''}" for name in result.workers]
    text = result.failure or ", ".join(marked) or "no worker found"
    text += " (partial map)" if result.partial else ""
    share = f"{result.unresolved} ({result.percent:.1f} %)"
    return f"{result.release:14}{result.seconds:6.1f}{result.call_sites:7}{share:>12}  {text}"


if __name__ == "__main__":
    sys.exit(main())
