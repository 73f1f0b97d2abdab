"""Composes what is said about a recorded run: its records, its budget, and the source beside it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from specmap.budget import budgeted
from specmap.codemap.event import Agreement, Run
from specmap.codemap.verdict import PhaseName
from specmap.errors import SpecmapError, TraceError
from specmap.join import joined
from specmap.launched import Launch, judge_launch
from specmap.pipeline import Progress, check_names, resolved, scan_tree
from specmap.report.options import RenderOptions
from specmap.trace.read import about, load_plan
from specmap.trace.spool import PARQUET, SPOOL, ranks_in
from specmap.traced import read_run, trace_names

_NO_TREE = (
    "not compared with the source: the run does not say which tree it is of; --target names it"
)
_NO_MODEL = "the model's config.json is not known here; --model-config may settle the open rows"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a recorded run.

    ``target`` names the tree, None for the one that the run names itself. ``other`` is a run
    with another number of draft tokens. ``model_config`` and ``draft_config`` are a config.json
    or its folder, for a model that is not where the ranks found it.
    """

    target: str | None = None
    baseline_tps: float | None = None
    other: Path | None = None
    model_config: Path | None = None
    draft_config: Path | None = None
    use_cache: bool = True


def reported(folder: Path, question: Question, progress: Progress | None) -> Run:
    """Read a run, with the budget of its cycle and the source beside it.

    Raises:
        TraceError: it is no run, or a file cannot be read.
        RulesError: the vocabulary cannot be read.
    """
    run = read_run(folder, baseline_tps=question.baseline_tps, other=question.other)
    return compared(folder, run, question, progress)


def completed(folder: Path, run: Run, question: Question, progress: Progress | None) -> Run:
    """Add to a run that was read while it was recorded what :func:`reported` adds.

    Raises:
        RulesError: the vocabulary cannot be read.
    """
    budget = budgeted(run, trace_names().width, baseline_tps=question.baseline_tps)
    return compared(folder, budget, question, progress)


def compared(folder: Path, run: Run, question: Question, progress: Progress | None) -> Run:
    """Put the source's verdicts beside a run; a note says so where that is not possible."""
    target, platform = tree_of(folder, question.target)
    if not run.ranks:
        return run
    if target is None:
        return _noted(run, _NO_TREE)
    try:
        return _joined(run, target, platform, question, progress)
    except SpecmapError as error:
        if question.target is not None:
            raise
        return replace(run, notes=(*run.notes, f"not compared with the source: {error}"))


def drawn(
    folder: Path,
    run: Run,
    question: Question,
    name: str,
    options: RenderOptions,
    progress: Progress | None,
) -> str:
    """Return the call graph with what ran on it, as ``dot`` or ``svg``.

    Raises:
        TraceError: nobody knows which tree the run is of.
        TargetError: the tree is gone.
        OutputError: the ``dot`` program is not installed.
    """
    from specmap.report.overlay import render, render_svg

    target, platform = tree_of(folder, question.target)
    if target is None:
        raise TraceError(f"{folder} does not say which tree it is of; name it with --target")
    code_map = scan_tree(target, platform=platform, use_cache=question.use_cache, progress=progress)
    check_names(code_map, options.workers, options.phases)
    if name == "svg":
        return render_svg(code_map, run, options).decode()
    return render(code_map, run, options)


def tree_of(folder: Path, named: str | None) -> tuple[str | None, str]:
    """Return the tree that a run is of, if it says so, and the platform it was scanned for."""
    known = about(folder)
    target = named or known.get("tree")
    return target if isinstance(target, str) else None, str(known.get("platform") or "cuda")


def own_tree(folder: Path, named: str | None) -> tuple[str, str]:
    """Return the same; the release that was traced stands for a tree that the run does not name.

    Raises:
        TraceError: it names neither, or is no run.
    """
    tree, platform = tree_of(folder, named)
    release = load_plan(folder).release
    if tree is None and release is None:
        raise TraceError(f"{str(folder)!r} does not say which tree it is of; name it as the target")
    return tree or f"sglang=={release}", platform


def log_events(folder: Path, progress: Progress | None) -> None:
    """Write the Parquet files of a run, those that are missing or older than the records.

    Raises:
        TraceError: pyarrow is missing, or a rank cannot be read; the others are written first.
        OutputError: a file cannot be written.
    """
    from specmap.trace.eventlog import convert

    plan, names = load_plan(folder), trace_names()
    ranks = [name for name in ranks_in(folder) if _stale(folder, name)]
    failed: list[str] = []
    for done, name in enumerate(ranks):
        if progress is not None:
            progress("write the event logs", done, len(ranks))
        try:
            convert(folder, name, plan, names)
        except TraceError as error:
            failed.append(str(error))
    if failed:
        raise TraceError("; ".join(dict.fromkeys(failed)))


def _stale(folder: Path, name: str) -> bool:
    spool, log = folder / (name + SPOOL), folder / (name + PARQUET)
    try:
        return not log.exists() or log.stat().st_mtime_ns < spool.stat().st_mtime_ns
    except OSError:
        return False


def _joined(
    run: Run, target: str, platform: str, question: Question, progress: Progress | None
) -> Run:
    use_cache = question.use_cache
    code_map = scan_tree(target, platform=platform, use_cache=use_cache, progress=progress)
    if code_map.release and run.release and code_map.release != run.release:
        raise TraceError(
            f"the run is of SGLang {run.release} and {target} is {code_map.release}; "
            "name the tree that ran with --target"
        )
    why = ""
    models = (question.model_config, question.draft_config)
    for launch in launches(run, target, use_cache, models):
        try:
            outcome = judge_launch(target, launch, platform=platform, use_cache=use_cache)
        except SpecmapError as error:
            why = why or f"the launch could not be judged: {error}"
            continue
        found = joined(run, code_map, outcome)
        left_open = any(row.agreement is Agreement.OPEN for row in found.joined)
        return _noted(found, _NO_MODEL if left_open and launch.model_config is None else "")
    return _noted(joined(run, code_map), why)


def _noted(run: Run, note: str) -> Run:
    return replace(run, notes=(*run.notes, note)) if note else run


def launches(
    run: Run,
    target: str,
    use_cache: bool,
    models: tuple[str | Path | None, str | Path | None] = (None, None),
) -> Iterator[Launch]:
    """Yield how the server was launched: the arguments that a rank ran with say most.

    They are written as a call, which need not be a command that anybody typed; a benchmark's
    script has no launch command at all. ``models`` are the configurations of target and draft,
    where they are not those of models on this machine.
    """
    from specmap.scan.launch.declared import read
    from specmap.scan.vocabulary import load_vocabulary

    vocabulary = load_vocabulary()
    arguments = next((rank.arguments for rank in run.ranks if rank.arguments), {})
    if arguments:
        with resolved(target, use_cache=use_cache) as tree:
            declared = read(tree.checkout.root, vocabulary).fields
        given = ", ".join(
            f"{name}={list(value) if isinstance(value, tuple) else value!r}"
            for name, value in sorted(arguments.items())
            if name in declared and isinstance(value, bool | int | float | str | tuple)
        )
        call = f"{min(vocabulary.arguments.calls)}({given})"
        stated = Launch(call, model_config=models[0], draft_config=models[1], logged=True)
        yield on_machine(stated, run)
    if run.command:
        yield Launch(shlex.join(run.command), model_config=models[0], draft_config=models[1])


def on_machine(launch: Launch, run: Run) -> Launch:
    """Return a launch with the GPU and the models of a run, where it states none itself."""
    from specmap.scan.vocabulary import load_vocabulary

    words = load_vocabulary().launch_words
    arguments = next((rank.arguments for rank in run.ranks if rank.arguments), {})
    target, draft = arguments.get(words.model_path), arguments.get(words.draft_path)
    return replace(
        launch,
        model_config=launch.model_config or _model(target, words.config_file),
        draft_config=launch.draft_config or _model(draft, words.config_file),
        gpu_memory=_smallest_memory_gb(run) if launch.gpu_memory is None else launch.gpu_memory,
        sm=_one_sm(run) if launch.sm is None else launch.sm,
    )


def usual_batch(run: Run) -> int | None:
    """Return the batch size of most verify passes, None where none was seen."""
    found: Counter[int] = Counter()
    for phase in (phase for rank in run.ranks for phase in rank.phases):
        if phase.phase == PhaseName.VERIFY:
            found.update({part.size: part.passes for part in phase.sizes if part.size > 0})
    return max(found, key=lambda size: (found[size], size), default=None)


def _smallest_memory_gb(run: Run) -> float | None:
    """Return what SGLang asks for: the memory of the smallest GPU, where every rank says its own.

    In GB of 1024 MB, as the driver tells it; the launch's defaults depend on it.
    """
    known = [rank.gpu_memory_bytes for rank in run.ranks]
    told = [size for size in known if size is not None]
    return min(told) / 2**30 if told and len(told) == len(known) else None


def _one_sm(run: Run) -> int | None:
    """Return the ranks' compute capability, None where one does not say it or they differ."""
    known = {rank.gpu_sm for rank in run.ranks}
    return known.pop() if len(known) == 1 else None


def _model(place: object, config: str) -> Path | None:
    """Return the folder of a model, if it is one on this machine with its configuration."""
    folder = Path(place) if isinstance(place, str) else None
    return folder if folder is not None and (folder / config).is_file() else None
