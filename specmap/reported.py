"""Composes a page: what scan, lint, fix and trace say of one tree or run, or of two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from specmap import pipeline
from specmap.codemap.event import Run, RunProblem
from specmap.errors import SpecmapError, TraceError
from specmap.judged import refused_though_ran, unlike, with_launch, without_launch
from specmap.launched import Launch
from specmap.report.page.subject import Subject
from specmap.report.page.timeline import Recording

if TYPE_CHECKING:
    from specmap.codemap.event import Pass
    from specmap.codemap.remedy import Attempt
    from specmap.trace.cycles import Cycle


@dataclass(frozen=True, slots=True)
class Request:
    """What a page is asked to show.

    ``targets`` are one or two trees or folders of runs; none stands for the tree of ``run``,
    the installed SGLang, or the newest release. With ``fix`` the rewrites are tried and
    proven, which takes as long as ``specmap fix``.
    """

    targets: tuple[str, ...] = ()
    run: Path | None = None
    launch: Launch | None = None
    fix: bool = False
    platform: str | None = None
    use_cache: bool = True


@dataclass(frozen=True, slots=True)
class Reported:
    """A page, and what its exit code rests on: ``failing`` findings, ``blind`` faults.

    ``notes`` say what was not done and is no fault.
    """

    content: bytes
    label: str
    failing: bool
    blind: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def report(request: Request, progress: pipeline.Progress | None = None) -> Reported:
    """Build the page.

    Raises:
        SpecmapError: a target, a run, the launch or an option cannot be used.
    """
    from specmap.report.page.html import render

    asked = _asked(request)
    _check(request.launch)
    with ExitStack() as stack:
        sides = _told_apart(asked, [_side(one, request, stack, progress) for one in asked])
        content = render(sides, _changes(sides))
    return Reported(
        content,
        "-".join(side.label for side in sides),
        any(_failing(side) for side in sides),
        tuple(text for side in sides for text in _blind(side)),
        tuple(text for side in sides for text in side.notes),
    )


def _check(launch: Launch | None) -> None:
    """Read all of a launch that needs no tree, so that a slip is told before a scan.

    Raises:
        SpecmapError: see ``launched.check``.
    """
    from specmap.launched import check
    from specmap.scan.vocabulary import load_vocabulary

    if launch is not None and launch.text:
        check(load_vocabulary(), launch)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One side: a tree, a run, or a run and the tree that it is compared with."""

    target: str | None
    run: Path | None = None


def _asked(request: Request) -> tuple[_Asked, ...]:
    if len(request.targets) == 2 and request.run is not None:
        raise SpecmapError("--run belongs to one target; name the run's folder as A or B instead")
    if request.run is not None:
        if request.targets and is_run(request.targets[0]):
            raise SpecmapError(
                f"{request.targets[0]!r} is a run, and --run names another; to compare them name "
                "both without --run"
            )
        return (_Asked(request.targets[0] if request.targets else None, request.run),)
    sides = tuple(
        _Asked(None, Path(name)) if is_run(name) else _Asked(name) for name in request.targets
    )
    return sides or (_Asked(None),)


def _told_apart(asked: Sequence[_Asked], sides: list[Subject]) -> list[Subject]:
    """Name the folders of two sides that have the same label."""
    if len(sides) != 2:
        return sides
    one, other = (Path(name.run or name.target or "").resolve() for name in asked)
    labels = pipeline.told_apart((sides[0].label, sides[1].label), (one, other))
    return [replace(side, label=label) for side, label in zip(sides, labels, strict=True)]


def _label(tree: pipeline.Resolved, target: str) -> str:
    """Return what a tree is called; one on disk with its folder, the package's own left out."""
    root = tree.checkout.root
    if not target.startswith("path:"):
        return target
    folder = root.parent if root.name == "python" else root
    return f"{target} ({folder.name})" if folder.name else target


def is_run(name: str) -> bool:
    """Whether a name is that of a recorded run's folder."""
    from specmap.trace.read import PLAN

    return (Path(name) / PLAN).is_file()


def _side(
    asked: _Asked, request: Request, stack: ExitStack, progress: pipeline.Progress | None
) -> Subject:
    """Return one side; its tree stays until ``stack`` is closed."""
    from specmap.recorded import own_tree
    from specmap.review import Request as LintRequest
    from specmap.review import lint_resolved
    from specmap.verdicts.words import load_words

    run, recordings = _read_run(asked.run) if asked.run is not None else (None, {})
    target, platform = asked.target, request.platform or "cuda"
    if asked.run is not None:
        target, scanned = own_tree(asked.run, target)
        platform = request.platform or scanned
    tree = stack.enter_context(
        pipeline.resolved(target, use_cache=request.use_cache, progress=progress)
    )
    codemap = pipeline.scan_resolved(tree, platform=platform, progress=progress)
    review = lint_resolved(tree, LintRequest(target, platform=platform), progress, codemap)
    subject = Subject(
        limits=load_words().limits,
        label=asked.run.resolve().name if asked.run is not None else _label(tree, codemap.target),
        tree=asked.target or ("" if codemap.target.startswith("path:") else codemap.target),
        codemap=codemap,
        source=review.source,
        values={},
        size_test=lambda atom: None,
        lint=review.report,
    )
    if progress is not None:
        progress("judge the launch", 0, 0)
    subject = _judged(subject, tree, request, run)
    if run is not None and asked.run is not None:
        subject = _with_run(replace(subject, recordings=recordings), asked.run, run)
    return _with_rewrites(subject, tree, request, platform, progress)


# The launch


def _judged(
    subject: Subject, tree: pipeline.Resolved, request: Request, run: Run | None
) -> Subject:
    """Add the outcome of the launch that was given, or of the one that the run shows.

    A launch that is not the run's says nothing about it and is left out.
    """
    from specmap.launched import ready
    from specmap.recorded import on_machine
    from specmap.scan.launch.library import Library
    from specmap.scan.vocabulary import load_vocabulary

    vocabulary = load_vocabulary()
    library = Library(tree.checkout.root, vocabulary.package)
    codemap, given = subject.codemap, request.launch
    if given is not None and given.text:
        launch = given if run is None else _at_usual_batch(on_machine(given, run), run)
        judged = with_launch(subject, ready(codemap, library, vocabulary, launch))
        differs = unlike(judged, run)
        if not differs:
            return judged
        told = f"the launch given is not that of the run and is left out: {differs}"
        subject = replace(subject, notes=(told,))
    if given is not None and run is None:
        raise SpecmapError(
            "these options need a launch: --args or --args-file, or a recorded run with --run"
        )
    why = ""
    for launch in _launches(run, tree, given):
        try:
            judged = with_launch(subject, ready(codemap, library, vocabulary, launch))
        except SpecmapError as error:
            why = why or f"the launch of the run could not be judged: {error}"
            continue
        incomplete = _incomplete(judged, run)
        if not incomplete:
            return judged
        why = why or incomplete
    return without_launch(replace(subject, notes=(*subject.notes, *filter(None, (why,)))))


def _incomplete(judged: Subject, run: Run | None) -> str:
    """Say that a server ran although its recorded settings are refused: some are not recorded."""
    refused = refused_though_ran(judged, run)
    if not refused:
        return ""
    return (
        "the settings that the run recorded are not all it started with: alone they would be "
        f"refused ({refused}), so the verdicts are those of the source alone; give the launch "
        "command with --args-file"
    )


def _launches(run: Run | None, tree: pipeline.Resolved, given: Launch | None) -> Iterator[Launch]:
    """Yield how the server of a run was launched, with what the caller adds to it."""
    from specmap.recorded import launches

    stated = given or Launch("")
    added = {
        name: value
        for name in ("gpu_memory", "sm", "tp", "batch", "concurrency", "expect", "env")
        if (value := getattr(stated, name))
    }
    models = (stated.model_config, stated.draft_config)
    if run is not None:
        for launch in launches(run, str(tree.checkout.root), True, models):
            yield _at_usual_batch(replace(launch, **added), run)


def _at_usual_batch(launch: Launch, run: Run) -> Launch:
    """Ask about the batch that a run had most often, where the caller names none."""
    from specmap.recorded import usual_batch

    size = usual_batch(run)
    if size is None or launch.concurrency is not None or "bs=" in launch.batch:
        return launch
    return replace(launch, batch=",".join(filter(None, (f"bs={size}", launch.batch))))


# The run


def _read_run(folder: Path) -> tuple[Run, Mapping[str, Recording]]:
    """Read a run once: its figures, and the columns of its timeline."""
    from specmap.traced import read_whole

    found: dict[str, Recording] = defaultdict(Recording)

    def keep(name: str, cycle: Cycle, passes: list[Pass]) -> None:
        found[name].add(cycle.number, cycle.start_ns, cycle.entry_ns, cycle.size, passes)

    run, unlike = read_whole(folder, keep)
    for rank in run.ranks:
        found[rank.name].clock = rank.host
        found[rank.name].diverges = unlike.get(rank.name, ())
    return run, {rank.name: found[rank.name] for rank in run.ranks}


def _with_run(subject: Subject, folder: Path, run: Run) -> Subject:
    """Put the run beside the source.

    Raises:
        TraceError: the run is of another release than the tree.
    """
    from specmap.join import joined

    codemap = subject.codemap
    if codemap.release and run.release and codemap.release != run.release:
        raise TraceError(
            f"the run is of SGLang {run.release} and {codemap.target} is {codemap.release}; "
            "name the tree that ran"
        )
    compared = joined(run, codemap, subject.outcome)
    return replace(
        subject,
        run=replace(compared, notes=(*compared.notes, *subject.notes)),
        run_name=folder.resolve().name,
    )


# Rewrites, changes, and the exit code


def _with_rewrites(
    subject: Subject,
    tree: pipeline.Resolved,
    request: Request,
    platform: str,
    progress: pipeline.Progress | None,
) -> Subject:
    from specmap.fix.catalogue import CATALOGUE
    from specmap.fix.patches import diff
    from specmap.fixed import Request as FixRequest
    from specmap.fixed import fix_resolved

    subject = replace(subject, rewrites=CATALOGUE)
    if not request.fix:
        return subject
    # What is not proven is made too, so that its diff can be shown.
    fixed = fix_resolved(
        tree, FixRequest(unsafe=True, platform=platform), progress, subject.codemap
    )

    def shown(attempt: Attempt) -> str:
        return diff(attempt.before, attempt.after, fixed.prefix)

    return replace(subject, fix=fixed.report, diff=shown)


def _changes(sides: Sequence[Subject]) -> list[tuple[str, list[str]]]:
    """Return what two sources differ in, as ``specmap diff`` says it."""
    from specmap.compare.diff import compare_maps
    from specmap.report.diff_text import sections

    if len(sides) != 2 or sides[0].codemap == sides[1].codemap:
        return []
    return list(sections(compare_maps(sides[0].codemap, sides[1].codemap), everything=True))


def _failing(side: Subject) -> bool:
    outcome, run = side.outcome, side.run
    return (run is not None and run.failing) or (outcome is not None and outcome.findings)


def _blind(side: Subject) -> Iterator[str]:
    """Yield what keeps a side from saying what it should."""
    from specmap.launched import undecided

    if side.codemap.partial:
        yield side.codemap.unread
    if side.lint is not None:
        yield from (f"rule {c.rule} failed, {c.place}: {c.message}" for c in side.lint.crashes)
    if side.run is not None:
        problems = (RunProblem.NO_CYCLE,)
        yield from (f.message for f in side.run.findings if f.problem in problems)
        yield from side.run.damage
    elif side.outcome is not None and not side.outcome.findings:
        yield from filter(None, (undecided(side.outcome),))
