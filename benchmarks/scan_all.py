"""Scans every SGLang release from 0.4.6 on that the package index lists.

Each release is scanned cold, in a process of its own. Printed per release: the workers that
the scheduler can drive, whether each has a verify phase that ends in a sink, how many call
sites on the cycle nobody could resolve, and the seconds of the scan (downloads excluded).
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

OLDEST = Version("0.4.6")
AIM_PERCENT = 5.0


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
    parser.add_argument("--one", metavar="RELEASE", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(asdict(scan_one(chosen.one))))
        return 0
    try:
        releases = chosen.release or listed()
    except SpecmapError as error:
        print(f"scan-all: {error}", file=sys.stderr)
        return 2
    print(f"{'release':14}{'s':>6}{'sites':>7}{'unresolved':>12}  workers (! = no verify sink)")
    results = [report(in_a_process(release)) for release in releases]
    bad = [r.release for r in results if not r.good]
    over = [r.release for r in results if r.percent > AIM_PERCENT]
    print(f"\n{len(results)} releases, {len(bad)} failed: {', '.join(bad) or 'none'}")
    print(f"over {AIM_PERCENT:g} % unresolved: {', '.join(over) or 'none'}")
    return 1 if bad else 0


def listed() -> list[str]:
    """Return the releases on the index, post-releases too, oldest first."""
    return sorted((r for r in PipIndex().releases() if Version(r) >= OLDEST), key=Version)


def in_a_process(release: str) -> Result:
    """Scan in a child, so that a crash is one line and the next release starts fresh."""
    command = [sys.executable, __file__, "--one", release]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return Result(release, failure=lines[-1] if lines else f"exit {done.returncode}")
    fields: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    fields |= {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    return Result(**fields)


def scan_one(release: str) -> Result:
    """Fetch a release if need be, scan it without a cache and count."""
    checkout = resolve_target(f"sglang=={release}", cwd=Path.cwd(), cache_dir=default_cache_dir())
    start = time.perf_counter()
    code_map = scan(checkout, platform="cuda")
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


def report(result: Result) -> Result:
    """Print the line of one release."""
    marked = [f"{name}{'!' if name in result.without_verify else ''}" for name in result.workers]
    text = result.failure or ", ".join(marked) or "no worker found"
    text += " (partial map)" if result.partial else ""
    share = f"{result.unresolved} ({result.percent:.1f} %)"
    print(
        f"{result.release:14}{result.seconds:6.1f}{result.call_sites:7}{share:>12}  {text}",
        flush=True,
    )
    return result


if __name__ == "__main__":
    sys.exit(main())
