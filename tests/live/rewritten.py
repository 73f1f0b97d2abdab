"""Which workers a rewritten release is held against, and the table of all of them.

``python -m tests.live.rewritten`` runs every job of :data:`MATRIX` on the release as published
and on the rewritten one, and prints a Markdown table; it takes a quarter of an hour.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.live.environment import python_of
from tests.live.expected import check_cycles, check_tokens
from tests.live.jobs import CAPTURED, GREEDY, Job
from tests.live.serving import HARNESS, Runs, Served, ServingError, plain_environment
from tests.live.trees import RELEASED, REWRITTEN, tree

RELEASES = ("0.5.9", "0.5.12")
SHAPES = {
    "v1 chain": Job("", tree=REWRITTEN),
    "v1 tree": Job("", topk=2, draft_tokens=6, tree=REWRITTEN),
    "v1 chain, page size 4": Job("", page_size=4, tree=REWRITTEN),
    "v2 chain": Job("", overlap=True, tree=REWRITTEN),
    "v2 chain, page size 4": Job("", overlap=True, page_size=4, tree=REWRITTEN),
}
MATRIX = {
    (release, name, "tape" if graphs else "eager"): replace(job, release=release, graphs=graphs)
    for release in RELEASES
    for name, job in SHAPES.items()
    for graphs in ((), CAPTURED)
}
CHOSEN = [
    MATRIX["0.5.9", "v1 tree", "tape"],
    MATRIX["0.5.12", "v1 chain", "tape"],
    MATRIX["0.5.12", "v2 chain, page size 4", "tape"],
]
"""What every run of the tests holds; the matrix has the rest."""


def said(check: Callable[[], object]) -> str:
    """Return "yes", or what the check says."""
    try:
        check()
    except (AssertionError, ValueError) as error:
        return str(error).strip().splitlines()[-1] if str(error).strip() else "no"
    return "yes"


def row(runs: Runs, key: tuple[str, str, str], job: Job) -> list[str]:
    """Return the cells of one configuration."""
    found: dict[str, Served] = {}
    for kind in (RELEASED, REWRITTEN):
        try:
            found[kind] = runs[replace(job, tree=kind)]
        except ServingError as error:
            return [*key, kind, str(error).splitlines()[-1]]
    served, stock, plain = found[REWRITTEN], found[RELEASED], runs[GREEDY[job.release]]
    accepted = sorted({n for batch in served.decoded for n in batch.accepted})
    return [
        *key,
        said(lambda: check_tokens(served, plain)),
        "yes" if served.tokens == stock.tokens else "no",
        said(lambda: check_cycles(job, served)),
        str(sum(map(len, served.tokens))),
        str(sum(len(batch.replays) for batch in served.decoded)),
        f"{accepted[0]} to {accepted[-1]}",
    ]


def main() -> int:
    """Print the table; 1 where a cell says anything but yes."""
    head = ["release", "worker", "run", "greedy", "as published", "as configured"]
    head += ["tokens", "replays", "accepted"]
    with tempfile.TemporaryDirectory(prefix="specmap-rewritten-") as name:
        folder = Path(name)
        checkpoints = folder / "checkpoints"
        command = [str(python_of("0.5.9")), str(HARNESS / "checkpoints.py"), str(checkpoints)]
        subprocess.run(command, env=plain_environment(), check=True)
        kinds = [(release, kind) for release in RELEASES for kind in (RELEASED, REWRITTEN)]
        trees = {kind: tree(*kind, folder / "-".join(kind)) for kind in kinds}

        def folder_of(job: Job) -> Path:
            made = folder / "runs" / str(job)
            made.mkdir(parents=True)
            return made

        runs = Runs(checkpoints, folder_of, trees)
        for release in RELEASES:
            runs.start(GREEDY[release])
        for job in MATRIX.values():
            for kind in (RELEASED, REWRITTEN):
                runs.start(replace(job, tree=kind))
        failed = False
        for cells in (head, ["---"] * len(head)):
            print(f"| {' | '.join(cells)} |")  # noqa: T201
        for item in MATRIX.items():
            cells = row(runs, *item)
            failed |= cells[3:6] != ["yes"] * 3
            print(f"| {' | '.join(cells)} |", flush=True)  # noqa: T201
        runs.close()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
