"""What a scan costs beside parsing the tree once and beside a type checker's call graph.

For each release, in one go and each in a process of its own:

``cold``     ``specmap scan`` with an empty cache
``warm``     the same again
``parse``    ``ast.parse`` of every file below ``sglang/srt``: the floor of any analysis
``pyrefly``  ``pyrefly check --report-pysa``, which writes the call graph of the same files

Wall time is the median of three runs (pyrefly: one). Downloads are not measured. pyrefly is
told to ignore the packages of this Python, which it would read as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specmap.errors import SpecmapError
from specmap.pipeline import default_cache_dir
from specmap.scan.checkout import resolve_target

RELEASES = ("0.5.9", "0.5.23")
RUNS = 3
REQUIREMENTS = Path(__file__).parent / "requirements.txt"
WARM_LIMIT_S = 1.0
PEER_LIMIT = 0.5

# getrusage counts in KiB on Linux and in bytes on macOS.
_RSS_BYTES = 1 if sys.platform == "darwin" else 1024


_PARSE = """
import ast, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    ast.parse(path.read_bytes())
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall time in seconds, processor time in seconds, peak resident memory in bytes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


class CommandError(RuntimeError):
    """A measured command did not do its work; its figures would mean nothing."""


def main() -> int:
    """Measure, print the tables, and return 1 when a limit is not met, 2 on failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--release", action="append", choices=RELEASES, help="only this release")
    parser.add_argument("--without-peer", action="store_true", help="leave pyrefly out")
    chosen = parser.parse_args()
    try:
        peer = None if chosen.without_peer else peer_program()
        failures = [f for r in chosen.release or RELEASES for f in bench(r, peer)]
    except (CommandError, SpecmapError) as error:
        print(f"bench-scan: {error}", file=sys.stderr)
        return 2
    for failure in failures:
        print(f"limit not met: {failure}")
    return 1 if failures else 0


def bench(release: str, peer: Path | None) -> list[str]:
    """Measure one release, print its table and return the limits that it does not meet."""
    root = resolve_target(f"sglang=={release}", cwd=Path.cwd(), cache_dir=default_cache_dir()).root
    with tempfile.TemporaryDirectory(prefix="bench-scan-") as name:
        folder = Path(name)
        costs = {
            "parse": repeated(lambda: parse_cost(root, folder)),
            "cold": repeated(lambda: scan_cost(root, folder, empty=True)),
            "warm": repeated(lambda: scan_cost(root, folder, empty=False)),
        }
        if peer is not None:
            costs["pyrefly"] = peer_cost(peer, root, folder)
    print_table(release, root, costs)
    return unmet(release, costs)


def repeated(run: Callable[[], Cost]) -> Cost:
    """Return the median of the runs."""
    return median([run() for _ in range(RUNS)])


def scan_cost(root: Path, folder: Path, *, empty: bool) -> Cost:
    """Scan from outside, as a user does; the map is written and thrown away.

    Python may keep the byte code of specmap, as it has it after an installation.
    """
    cache = folder / "cache"
    if empty:
        shutil.rmtree(cache, ignore_errors=True)
    command: list[str | Path] = [sys.executable, "-m", "specmap", "scan", root]
    command += ["--format", "json", "--quiet", "--output", folder / "map.json"]
    return measure(
        command,
        folder=folder,
        environment={"SPECMAP_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": ""},
        accepted=(0, 1),
    )


def parse_cost(root: Path, folder: Path) -> Cost:
    """Parse every file once and keep nothing."""
    return measure([sys.executable, "-c", _PARSE, root / "sglang" / "srt"], folder=folder)


def peer_cost(program: Path, root: Path, folder: Path) -> Cost:
    """Let pyrefly write the call graph of the same files; type errors make it exit with 1."""
    report = folder / "pysa"
    command: list[str | Path] = [program, "check", root / "sglang" / "srt", "--preset", "default"]
    command += ["--report-pysa", report, "--report-pysa-format", "json"]
    command += ["--skip-interpreter-query", "--threads", "2", "--summary=none"]
    cost = measure(command, folder=folder, accepted=(0, 1))
    if not any((report / "call_graphs").iterdir()):
        raise CommandError("pyrefly wrote no call graph")
    shutil.rmtree(report)
    return cost


def peer_program() -> Path:
    """Return pyrefly, installed once into the user's cache.

    Raises:
        CommandError: pip could not install it.
    """
    pinned = REQUIREMENTS.read_text(encoding="utf-8").splitlines()[-1]
    home = default_cache_dir() / "bench" / pinned.replace("==", "-")
    program = home / "bin" / "pyrefly"
    if not program.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(home)]
        command += ["--requirement", str(REQUIREMENTS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandError(f"pip could not install {pinned}: {done.stderr.strip()[-300:]}")
    return program


def print_table(release: str, root: Path, costs: dict[str, Cost]) -> None:
    """Print wall time, processor time and peak memory, and their ratios to a cold scan."""
    files = sum(1 for _ in (root / "sglang" / "srt").rglob("*.py"))
    print(f"\nSGLang {release}, {files} files below sglang/srt")
    print(f"{'':10}{'wall s':>9}{'cpu s':>9}{'peak MB':>9}{'cold/this':>11}{'memory':>9}")
    cold = costs["cold"]
    for name, cost in costs.items():
        wall, memory = cold.wall_s / cost.wall_s, cold.peak_bytes / cost.peak_bytes
        peak = cost.peak_bytes / 1e6
        print(f"{name:10}{cost.wall_s:9.2f}{cost.cpu_s:9.2f}{peak:9.0f}{wall:11.2f}{memory:9.2f}")


def unmet(release: str, costs: dict[str, Cost]) -> list[str]:
    """Return the limits that these costs do not meet, in words."""
    cold, failures = costs["cold"], []
    if (peer := costs.get("pyrefly")) is not None:
        for what, ratio in (
            ("wall time", cold.wall_s / peer.wall_s),
            ("peak memory", cold.peak_bytes / peer.peak_bytes),
        ):
            if ratio > PEER_LIMIT:
                failures.append(f"{release}: cold {what} is {ratio:.2f} of pyrefly's")
    if release == RELEASES[-1] and costs["warm"].wall_s > WARM_LIMIT_S:
        failures.append(f"{release}: warm scan takes {costs['warm'].wall_s:.2f} s")
    return failures


def measure(
    command: Sequence[str | Path],
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    accepted: tuple[int, ...] = (0,),
) -> Cost:
    """Run one command from start to exit; peak memory is that of its largest process.

    Raises:
        CommandError: the exit code is not one of ``accepted``.
    """
    log = folder / "measured.log"
    start = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in accepted:
        tail = log.read_bytes()[-500:].decode("utf-8", "replace").strip()
        raise CommandError(f"{' '.join(map(str, command))}: exit {process.returncode}: {tail}")
    return Cost(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * _RSS_BYTES)


def median(costs: Sequence[Cost]) -> Cost:
    """Return the run with the median wall time."""
    return sorted(costs, key=lambda cost: cost.wall_s)[len(costs) // 2]


if __name__ == "__main__":
    sys.exit(main())
