"""Composes a sweep: tree, launch and grid -> a cell for each setting and batch size."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from specmap.codemap.outcome import Assumption
from specmap.codemap.sweep import BATCH_AXIS, Axis, Cell, Sweep
from specmap.errors import SpecmapError
from specmap.launched import Launch, Prepared, prepared
from specmap.pipeline import Progress
from specmap.scan.launch.tables import Inputs
from specmap.sweep.grid import Grid, grid_of, read_sizes
from specmap.verdicts.logged import rederived


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """What is swept: the ``axes``, as ``grid`` reads them.

    ``launch.batch`` may name several sizes (``bs=1,4,16``). ``runs`` are folders of recorded
    runs that cells are ranked by. ``accept_lengths`` are ``STEPS=VALUE`` or
    ``STEPS/TOPK/TOKENS=VALUE``, in tokens a request and cycle.
    """

    launch: Launch
    axes: tuple[Axis, ...] = ()
    runs: tuple[Path, ...] = ()
    accept_lengths: tuple[str, ...] = ()


def sweep_launch(
    target: str | None,
    request: SweepRequest,
    *,
    platform: str = "cuda",
    use_cache: bool = True,
    progress: Progress | None = None,
) -> Sweep:
    """Return what each cell of a grid of launches replays.

    Raises:
        TargetError: there is no such tree.
        ArgumentError: the release does not know an argument, or refuses its value.
        TraceError: a recorded run cannot be read.
        SpecmapError: the command, the grid or a file cannot be read.
    """
    sizes, batch = read_sizes(request.launch.batch)
    launch = replace(request.launch, batch=batch)
    ranked = _ranking(request)
    with (
        _uncollected(),
        prepared(
            target, launch, platform=platform, use_cache=use_cache, progress=progress
        ) as asked,
    ):
        grid = _grid(asked, request.axes, sizes, launch)
        inputs, left = _inputs(asked, {name for axis in grid.axes for name in axis.fields})
        cells, assumptions = _judged(asked, inputs, grid, progress)
        found = Sweep(
            target=asked.codemap.target,
            release=asked.codemap.release,
            platform=asked.codemap.platform,
            command=asked.question.command,
            axes=(*grid.axes, Axis(BATCH_AXIS, tuple(map(str, sizes)))),
            cells=cells,
            launches=grid.count,
            assumptions=assumptions,
            notes=(*asked.question.notes, *left, *grid.notes),
            partial=asked.codemap.unread,
        )
        return ranked(found, asked.sure.inputs)


def _ranking(request: SweepRequest) -> Callable[[Sweep, Inputs], Sweep]:
    """Read the runs, before anything is judged; return what ranks a sweep by them.

    Raises:
        TraceError: a run cannot be read.
        SpecmapError: an accept length is none, or there is no run to use it with.
    """
    from specmap.sweep.rank import ranked
    from specmap.sweep.samples import load_sweep_words, read_accept_lengths, sample_of
    from specmap.traced import read_run

    given, words = read_accept_lengths(request.accept_lengths), load_sweep_words()
    if given and not request.runs:
        raise SpecmapError("--accept-length ranks cells by a recorded run; name one with --run")
    called = [run.name for run in request.runs]
    names = {run: run.name if called.count(run.name) == 1 else str(run) for run in request.runs}
    samples = {name: sample_of(name, read_run(run), words) for run, name in names.items()}
    if not samples:
        return lambda found, launch: found
    return lambda found, launch: ranked(found, samples, given, launch.values, words, launch.sm)


def _grid(asked: Prepared, axes: tuple[Axis, ...], sizes: tuple[int, ...], launch: Launch) -> Grid:
    """Return the grid, with axes that the tree reads and that nothing else states.

    Raises:
        SpecmapError: see :func:`sweep_launch`.
    """
    from specmap.launchtext import tensor_parallel
    from specmap.scan.launch.declared import read
    from specmap.scan.launch.history import load_history
    from specmap.scan.launch.variables import unread

    base, history = asked.evaluator, load_history()
    declarations = read(base.library.root, base.vocabulary)
    release = asked.codemap.release
    grid = grid_of(axes, sizes, declarations, lambda flag: history.about(flag, release))
    varied = {axis.name for axis in grid.axes}
    for name, told in unread(base.library.root, base.vocabulary.package, varied).items():
        raise SpecmapError(f"--vary {name}: {told}")
    stated = {f"--env {name}": name for name in launch.env}
    if launch.tp is not None:
        stated["--tp"] = tensor_parallel(declarations)
    for axis in grid.axes:
        for option, name in stated.items():
            if name in (axis.name, *axis.fields):
                raise SpecmapError(f"{option} and --vary {axis.name} state the same; give one")
    return grid


def _inputs(asked: Prepared, varied: set[str]) -> tuple[Inputs, tuple[str, ...]]:
    """Return what all launches give; of a log, what is not varied is derived in each cell."""
    if not asked.logged:
        return asked.stated, ()
    limits = set(asked.words.limits) - varied
    inputs, left = rederived(asked.stated, limits, asked.fresh)
    return inputs, (f"{', '.join(left)}: left for each cell to derive",) if left else ()


def _judged(
    asked: Prepared, inputs: Inputs, grid: Grid, progress: Progress | None
) -> tuple[tuple[Cell, ...], tuple[Assumption, ...]]:
    from specmap.sweep.judging import Bench
    from specmap.sweep.samples import load_sweep_words

    varied = [name for axis in grid.axes for name in axis.fields]
    fields = tuple(dict.fromkeys((*load_sweep_words().work, *varied)))
    bench = Bench(asked, inputs, grid.sizes, fields)
    cells: list[Cell] = []
    assumptions: dict[Assumption, None] = {}
    for done, (texts, settings) in enumerate(grid.launches):
        if progress is not None:
            progress("judge the launches", done, grid.count)
        judged = bench.judged(texts, settings)
        cells += judged.cells
        assumptions.update(dict.fromkeys(judged.assumptions))
    return tuple(cells), tuple(assumptions)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector from walking the map and the syntax trees time and again."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
