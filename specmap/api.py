"""The Python API: one function for each verb, for scripts and notebooks.

Import these names from :mod:`specmap`. Nothing here prints or exits; every failure is a
:class:`specmap.SpecmapError` whose text says what, where, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from specmap.codemap.event import Run
from specmap.codemap.explanation import Explanation
from specmap.codemap.finding import LintReport
from specmap.codemap.graph import CodeMap
from specmap.codemap.outcome import Outcome
from specmap.codemap.sweep import Sweep
from specmap.errors import SpecmapError

if TYPE_CHECKING:
    from specmap.launched import Launch


def scan_tree(
    target: str | Path | None = None, *, platform: str = "cuda", use_cache: bool = True
) -> CodeMap:
    """Return the code map of a SGLang tree, from the cache if nothing changed.

    ``target`` is a folder of a tree, ``installed``, ``sglang==VERSION`` or ``git:REV``;
    without one, the installed SGLang, else the newest release. Arms that ``platform``
    never takes are cut. With ``use_cache=False`` nothing is read from or left in a cache.

    Raises:
        SpecmapError: there is no such tree or platform, or it cannot be fetched.
    """
    from specmap.pipeline import scan_tree

    _check(target=target)
    return scan_tree(target, platform=platform, use_cache=use_cache)


def judge_launch(
    target: str | Path | None,
    launch: Launch | str,
    *,
    platform: str = "cuda",
    use_cache: bool = True,
) -> Outcome:
    """Return what a launch makes of a SGLang tree: the worker, and a verdict a phase.

    ``launch`` is a command, its arguments alone, or a :class:`specmap.Launch` with what is
    known besides.

    Raises:
        SpecmapError: there is no such tree, or the launch cannot be read.
    """
    from specmap import launched

    _check(target=target)
    return launched.judge_launch(
        _target(target), _launch(launch), platform=platform, use_cache=use_cache
    )


def explain_place(
    target: str | Path,
    place: str,
    launch: Launch | str | None = None,
    *,
    platform: str = "cuda",
    use_cache: bool = True,
) -> Explanation:
    """Return why ``WORKER.PHASE``, a symbol, flag, file or ``FILE:LINE`` replays or not.

    Raises:
        SpecmapError: there is no such tree or place, or the launch cannot be read.
    """
    from specmap.explained import explain

    _check(tree=target, place=place)
    stated = None if launch is None else _launch(launch)
    return explain(str(target), place, stated, platform=platform, use_cache=use_cache)


def lint_tree(
    target: str | Path | None = None,
    *,
    base: str | Path | None = None,
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    platform: str | None = None,
    use_cache: bool = True,
) -> LintReport:
    """Return the findings of a tree; without a target, of the one around the current folder.

    ``base`` is a git revision or another target: what it has, too, does not count. ``select``
    and ``ignore`` are rule ids, beginnings of ids, names or topics. What is left out comes
    from ``[tool.specmap]`` in pyproject.toml.

    Raises:
        SpecmapError: the tree, the base, a rule or the configuration cannot be used.
    """
    from specmap import review

    _check(target=target, base=base, select=select, ignore=ignore)
    request = review.Request(
        target=_target(target),
        base=_target(base),
        platform=platform,
        select=_several(select),
        ignore=_several(ignore),
        use_cache=use_cache,
    )
    return review.lint_tree(request).report


def load_run(
    folder: str | Path,
    *,
    other: str | Path | None = None,
    baseline_tps: float | None = None,
    target: str | Path | None = None,
    against_source: bool = False,
) -> Run:
    """Read a run that ``specmap trace`` recorded, with the budget of its cycle.

    ``other`` is a run with another number of draft tokens, ``baseline_tps`` plain decoding's
    tokens a second at the same load. With ``against_source`` the tree is scanned (``target``,
    or the one that the run names, or its release), and the source's verdicts stand in ``joined``.

    Raises:
        SpecmapError: it is no run, a file cannot be read, or the run does not say its tree.
    """
    from specmap.recorded import Question, own_tree, reported
    from specmap.traced import read_run

    _check(folder=folder, other=other, baseline_tps=baseline_tps, target=target)
    second = None if other is None else Path(other)
    if against_source:
        tree, _ = own_tree(Path(folder), _target(target))
        question = Question(target=tree, baseline_tps=baseline_tps, other=second)
        return reported(Path(folder), question, None)
    return read_run(Path(folder), baseline_tps=baseline_tps, other=second)


def sweep_launch(
    target: str | Path | None,
    launch: Launch | str,
    vary: Mapping[str, object] | None = None,
    *,
    runs: str | Path | Sequence[str | Path] = (),
    accept_lengths: Mapping[str | int, float] | None = None,
    platform: str = "cuda",
    use_cache: bool = True,
) -> Sweep:
    """Return a launch over a grid of settings; ``launch.batch`` may name several sizes.

    ``vary`` maps an argument, or a variable in capitals, to a value, a list of them, or text
    as for ``--vary`` (``1..5``). True and False stand for a switch that is given or not, None
    for what is left out. ``runs`` and ``accept_lengths`` (``{3: 2.4, "3/1/4": 2.5}``) rank cells.

    Raises:
        SpecmapError: there is no such tree, or the launch, the grid or a run cannot be read.
    """
    from specmap.sweep.grid import axes_of
    from specmap.sweep.sweeping import SweepRequest
    from specmap.sweep.sweeping import sweep_launch as swept

    _check(target=target, runs=runs)
    lengths = {} if accept_lengths is None else accept_lengths
    if not isinstance(lengths, Mapping):
        raise SpecmapError(f"accept lengths are {lengths!r}: expected a mapping, {{4: 2.6}}")
    request = SweepRequest(
        launch=_launch(launch),
        axes=axes_of({} if vary is None else vary),
        runs=tuple(map(Path, _several(runs))),
        accept_lengths=tuple(f"{key}={value}" for key, value in lengths.items()),
    )
    return swept(_target(target), request, platform=platform, use_cache=use_cache)


def to_json(found: CodeMap | Outcome | Explanation | LintReport | Run | Sweep) -> str:
    """Return what a function here gave as JSON, as the command line writes it.

    Raises:
        SpecmapError: ``found`` is something else.
    """
    if isinstance(found, CodeMap):
        from specmap.report.as_json import dumps

        return dumps(found)
    if isinstance(found, Outcome):
        from specmap.report.outcome_json import render_outcome_json

        return render_outcome_json(found)
    if isinstance(found, Explanation):
        from specmap.report.outcome_json import render_explanation_json

        return render_explanation_json(found)
    if isinstance(found, LintReport):
        from specmap.report.findings import FindingOptions, render_findings

        return render_findings(found, "json", FindingOptions())
    if isinstance(found, Run):
        from specmap.report.run_json import render_run_json

        return render_run_json(found)
    if isinstance(found, Sweep):
        from specmap.report.sweep_json import render_sweep_json

        return render_sweep_json(found)
    raise SpecmapError(f"to_json: a {type(found).__name__} is nothing that specmap returns")


_NAME = ((str, Path), "a text or a path")
_NAMES = ((str, Path, Sequence), "a name, or a list of names")
_STATED: Mapping[str, tuple[tuple[type, ...], str]] = {
    "target": ((str, Path, type(None)), "a text or a path, or None"),
    "tree": _NAME,
    "place": ((str,), "a text: WORKER.PHASE, a symbol or FILE:LINE"),
    "base": ((str, Path, type(None)), "a text or a path, or None"),
    "folder": _NAME,
    "other": ((str, Path, type(None)), "a text or a path, or None"),
    "baseline_tps": ((int, float, type(None)), "a number above 0, or None"),
    "select": _NAMES,
    "ignore": _NAMES,
    "runs": _NAMES,
}
"""The kinds of value that the calls take, and what they are called."""


def _check(**given: object) -> None:
    """Refuse what no call can mean, as the command line's own reading does.

    Raises:
        SpecmapError: a value is of another type.
    """
    for name, value in given.items():
        kinds, said = _STATED[name]
        items = value if kinds is _NAMES[0] and isinstance(value, list | tuple) else [value]
        wrong = isinstance(value, bool) or not all(isinstance(item, kinds) for item in items)
        if wrong or (isinstance(value, int | float) and not 0 < value < inf):
            raise SpecmapError(f"{name} is {value!r}: expected {said}")


def _target(target: str | Path | None) -> str | None:
    return None if target is None else str(target)


def _launch(launch: Launch | str) -> Launch:
    from specmap.launched import Launch

    return launch if isinstance(launch, Launch) else Launch(launch)


def _several(names: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    """Return names as texts; one alone is one, not its letters."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        return (str(names),)
    return tuple(map(str, names))
