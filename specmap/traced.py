"""Composes the steps of a trace: tree -> map -> wrap plan, and recorded run -> report."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from specmap.budget import budgeted
from specmap.codemap.event import Run
from specmap.codemap.graph import CodeMap
from specmap.errors import RulesError
from specmap.pipeline import Progress, scan_tree
from specmap.trace.names import TraceNames, names_of
from specmap.trace.plan import WrapPlan
from specmap.trace.planning import plan_of

if TYPE_CHECKING:
    from specmap.trace.divergence import Unlike
    from specmap.trace.rankreader import Keep


def trace_names(path: Path | None = None) -> TraceNames:
    """Return what the tracer has to know by name.

    Raises:
        RulesError: the vocabulary is missing, is no TOML, or lacks a key.
    """
    from specmap.scan.vocabulary import rules_folder

    path = path or rules_folder() / "vocabulary.toml"
    try:
        return names_of(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RulesError(f"{path.name}: {error}") from error


def plan_for(
    target: str | Path | None = None,
    *,
    platform: str = "cuda",
    use_cache: bool = True,
    progress: Progress | None = None,
) -> tuple[CodeMap, WrapPlan]:
    """Return the map of a SGLang tree and the plan to trace it.

    Raises:
        TargetError: there is no such tree, or it cannot be fetched.
        CacheError: the cache folder cannot be used.
        RulesError: the vocabulary cannot be read.
    """
    code_map = scan_tree(target, platform=platform, use_cache=use_cache, progress=progress)
    return code_map, plan_of(code_map, trace_names())


def read_run(folder: Path, *, baseline_tps: float | None = None, other: Path | None = None) -> Run:
    """Read a recorded run, with the budget of its cycle.

    ``baseline_tps`` is plain decoding's tokens a second at the same load; ``other`` the folder
    of a run with another number of draft tokens.

    Raises:
        TraceError: it is no run, or a file cannot be read.
        RulesError: the vocabulary cannot be read.
    """
    from specmap.trace.read import read_run as read

    names = trace_names()
    second = None if other is None else read(other, names)
    run = read(folder, names)
    return budgeted(run, names.width, baseline_tps=baseline_tps, other=second)


def read_whole(folder: Path, keep: Keep) -> tuple[Run, Unlike]:
    """Read a recorded run once, with its budget, and hand every cycle of it to ``keep``.

    Raises:
        TraceError: it is no run, or a file cannot be read.
        RulesError: the vocabulary cannot be read.
    """
    from specmap.trace.read import read_whole as read

    names = trace_names()
    run, unlike = read(folder, names, keep)
    return budgeted(run, names.width), unlike


def convert(folder: Path) -> tuple[Path, ...]:
    """Write the event logs of a recorded run, two Parquet files a rank; return their paths.

    Raises:
        TraceError: pyarrow is missing, it is no run, or a spool cannot be read.
        OutputError: a file cannot be written.
    """
    from specmap.trace.eventlog import convert as convert_rank
    from specmap.trace.read import load_plan
    from specmap.trace.spool import SPOOL, ranks_in

    plan, names = load_plan(folder), trace_names()
    spooled = [name for name in ranks_in(folder) if (folder / (name + SPOOL)).exists()]
    return tuple(path for name in spooled for path in convert_rank(folder, name, plan, names))
