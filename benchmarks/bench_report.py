"""What the HTML page costs: time after a warm scan, and bytes.

``scan json``   the floor: the same warm map, written as JSON
``report``      the page of the release, without a launch
``trace read``  the floor of a run: reading a rank of 100,000 cycles and putting it beside its tree
``report run``  the page of that run, every cycle of it

Each is a process of its own, run from outside as a user does; the wall time is the median of
three runs (of a run: one). CPU time is told beside it, because a busy machine stretches the wall
time. The limits are those of a page without a run: 2 s, and 3 MB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.bench_scan import CommandError, Cost, measure, median
from benchmarks.made_ranks import Flaws, Maker

RELEASE, RUN_RELEASE = "0.5.23", "0.5.12"
RUNS = 3
CYCLES = 100_000
LIMIT_S, LIMIT_BYTES = 2.0, 3_000_000


def main() -> int:
    """Measure, print the table, and return 1 when a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="without the recorded run")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="bench-report-") as name:
            costs, sizes = bench(Path(name), quick=options.quick)
    except CommandError as error:
        print(f"bench-report: {error}", file=sys.stderr)
        return 2
    print_table(costs, sizes)
    late = costs["report"].wall_s > LIMIT_S
    if late:
        print(f"limit not met: {costs['report'].wall_s:.2f} s of {LIMIT_S} s")
    if sizes["report"] > LIMIT_BYTES:
        print(f"limit not met: {sizes['report']} bytes of {LIMIT_BYTES}")
    return int(late or sizes["report"] > LIMIT_BYTES)


def bench(folder: Path, quick: bool) -> tuple[dict[str, Cost], dict[str, int]]:
    """Return what each step costs, and the bytes that it writes."""
    target, map_file, page = f"sglang=={RELEASE}", folder / "map.json", folder / "page.html"
    scan = ("scan", target, "-q", "-f", "json", "-o", str(map_file))
    report = ("report", target, "-q", "-o", str(page))
    specmap(folder, *scan)
    costs = {
        "scan json": median([specmap(folder, *scan) for _ in range(RUNS)]),
        "report": median([specmap(folder, *report) for _ in range(RUNS)]),
    }
    sizes = {"scan json": map_file.stat().st_size, "report": page.stat().st_size}
    if not quick:
        run, other = folder / "run", f"sglang=={RUN_RELEASE}"
        Maker().write(run, 1, CYCLES, Flaws())
        specmap(folder, "scan", other, "-q", "-f", "json", "-o", str(map_file))
        read = ("trace", "read", str(run), "--target", other, "-q", "-f", "json")
        costs["trace read"] = specmap(folder, *read, "-o", str(map_file))
        costs["report run"] = specmap(folder, "report", other, "--run", str(run), *report[2:])
        sizes |= {"trace read": map_file.stat().st_size, "report run": page.stat().st_size}
    return costs, sizes


def specmap(folder: Path, *arguments: str) -> Cost:
    """Run the command line from outside; findings are no failure."""
    command = [sys.executable, "-m", "specmap", *arguments]
    return measure(command, folder=folder, environment={}, accepted=(0, 1))


def print_table(costs: dict[str, Cost], sizes: dict[str, int]) -> None:
    """Print wall time, processor time, the ratio to the floor above, and bytes."""
    print(f"specmap report, SGLang {RELEASE}, warm scan; a run of {CYCLES} cycles on {RUN_RELEASE}")
    print(f"{'':12}{'wall s':>9}{'cpu s':>9}{'of floor':>10}{'KB':>9}")
    floors = {"report": "scan json", "report run": "trace read"}
    for name, cost in costs.items():
        ratio = cost.cpu_s / costs[floors.get(name, name)].cpu_s
        size = sizes[name] / 1000
        print(f"{name:12}{cost.wall_s:9.2f}{cost.cpu_s:9.2f}{ratio:10.2f}{size:9.0f}")


if __name__ == "__main__":
    sys.exit(main())
