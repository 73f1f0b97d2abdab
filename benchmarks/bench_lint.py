"""What ``specmap lint --base`` costs a developer: one changed file, warm cache.

SGLang 0.5.23 in a git repository of its own, with a base commit whose map is in the cache.
Changes of one file, each linted from outside as a user does, in a process of its own:

``not read``   a function added to a file that the scan does not parse (a model)
``comments``   comments and blank lines in a worker's file
``one call``   a host synchronisation added to the verify step of a worker
``base``       nothing changed yet and the cache is empty: one cold scan, and the checkout

Wall time is the median of three runs (``base``: one). The limit holds for every change.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.bench_scan import CommandError, Cost, measure, median
from specmap.errors import SpecmapError
from specmap.pipeline import default_cache_dir
from specmap.scan.checkout import resolve_target

RELEASE = "0.5.23"
RUNS = 3
LIMIT_S = 1.5
MODEL = "sglang/srt/models/llama.py"
WORKER = "sglang/srt/speculative/eagle_worker_common.py"
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org")


def main() -> int:
    """Measure, print the table, and return 1 when a change takes longer than the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="only changes without a new scan")
    options = parser.parse_args()
    try:
        costs = bench(quick=options.quick)
    except (CommandError, SpecmapError) as error:
        print(f"bench-lint: {error}", file=sys.stderr)
        return 2
    print_table(costs)
    late = [name for name, cost in costs.items() if name != "base" and cost.wall_s > LIMIT_S]
    for name in late:
        print(f"limit not met: {name} takes {costs[name].wall_s:.2f} s of {LIMIT_S} s")
    return 1 if late else 0


def bench(quick: bool) -> dict[str, Cost]:
    """Lint each change of one file against its base."""
    source = resolve_target(f"sglang=={RELEASE}", cwd=Path.cwd(), cache_dir=default_cache_dir())
    with tempfile.TemporaryDirectory(prefix="bench-lint-") as name:
        folder, cache = Path(name, "fork"), Path(name, "cache")
        committed(source.root, folder)
        costs = {"base": lint(folder, cache)}
        for what, file, change in CHANGES[: 2 if quick else 3]:
            path = folder / file
            text = path.read_text("utf-8")
            runs = []
            for run in range(RUNS):
                # Another text every time: the map of the very same tree is in the cache.
                path.write_text(f"{change(text)}# run {run}\n", "utf-8")
                runs.append(lint(folder, cache))
            costs[what] = median(runs)
            path.write_text(text, "utf-8")
    return costs


def committed(root: Path, folder: Path) -> None:
    """Make a repository of a release's Python files."""
    for path in sorted(root.joinpath("sglang").rglob("*.py")):
        place = folder / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "base")):
        subprocess.run([*_GIT, *words], cwd=folder, check=True)


def lint(folder: Path, cache: Path) -> Cost:
    """Run ``specmap lint --base HEAD`` from outside."""
    command = [sys.executable, "-m", "specmap", "lint", ".", "--base", "HEAD", "--quiet"]
    return measure(
        command,
        folder=folder,
        environment={"SPECMAP_CACHE_DIR": str(cache)},
        accepted=(0, 1),
    )


def added_function(text: str) -> str:
    """A function more at the end of a file."""
    return f"{text}\n\ndef one_more(rows):\n    return rows[0]\n"


def commented(text: str) -> str:
    """A comment and a blank line above every import."""
    lines = text.splitlines(keepends=True)
    return "".join(f"# Changes nothing.\n\n{s}" if s.startswith("from ") else s for s in lines)


def synchronised(text: str) -> str:
    """A wait for the device in the verify step."""
    before, found, after = text.partition("    forward_batch_output = target_worker.forward")
    if not found:
        raise CommandError(f"{WORKER} has no verify pass to change")
    return f"{before}    waited = batch.seq_lens.cpu()\n    del waited\n{found}{after}"


CHANGES = (
    ("not read", MODEL, added_function),
    ("comments", WORKER, commented),
    ("one call", WORKER, synchronised),
)


def print_table(costs: dict[str, Cost]) -> None:
    """Print wall time, processor time, and the ratio to a cold run."""
    print(f"specmap lint --base HEAD, SGLang {RELEASE}, one changed file, warm cache")
    print(f"{'':10}{'wall s':>9}{'cpu s':>9}{'of base':>9}")
    base = costs["base"].wall_s
    for name, cost in costs.items():
        print(f"{name:10}{cost.wall_s:9.2f}{cost.cpu_s:9.2f}{cost.wall_s / base:9.2f}")


if __name__ == "__main__":
    sys.exit(main())
