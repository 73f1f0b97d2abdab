"""The verb ``trace``: a live run, a recorded run, its exports."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specmap import cli_options, pipeline
from specmap.cli_review import Screen, Shown
from specmap.errors import SpecmapError

if TYPE_CHECKING:
    from specmap.codemap.event import Run
    from specmap.live import Ask, Show
    from specmap.tracing import Watcher

_FORMATS = ("text", "json", "dot", "svg")
_DRAWN = ("dot", "svg")
_COMMAND = "specmap.command"
_FAILED = 2


class _Trace(cli_options.Verbs):
    """A group whose own options are a live run; what it starts stands behind ``--``."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Keep the command to start away from the verbs of this group."""
        if "--live" in args:
            if "--" not in args:
                raise click.UsageError(
                    "--live: write the command after --: specmap trace --live -- python -m ..."
                )
            at = args.index("--")
            context.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(context, args)


_folder = click.argument("folder", metavar="DIR", type=cli_options.Place())


@click.group(
    cls=_Trace,
    invoke_without_command=True,
    subcommand_metavar="[-- CMD... | COMMAND]",
    short_help="See what the workers of a running server do, or did.",
)
@click.option("--live", is_flag=True, help="Start the command after '--' and trace it.")
@click.option("--attach", type=int, metavar="PID", help="Arm the sleeping agents of a server.")
@click.option("--inject", type=int, metavar="PID", help="Wake an agent in one rank, by ptrace.")
@click.option("--yes", is_flag=True, help="Take the risk of --inject.")
@click.option("--dormant", is_flag=True, help="With --live: start with sleeping agents only.")
@click.option("--target", metavar="TARGET", help="The tree, if it is not what the server imports.")
@click.option("--dir", "directory", type=cli_options.Place(), metavar="DIR",
              help="Folder of the run (output/trace-N).")  # fmt: skip
@click.option("--cycles", type=click.IntRange(1), metavar="N", help="End after N cycles.")
@click.option("--seconds", type=cli_options.PositiveNumber(), metavar="S",
              help="End after S seconds; with --live they count from the first cycle.")  # fmt: skip
@click.option("--stop-after", is_flag=True, help="Then stop the server too, with SIGTERM.")
@click.option("--spans", is_flag=True, help="Time phases on the GPU, too.")
@click.option("--spans-every", type=click.IntRange(1), metavar="N",
              help="Time them in every Nth cycle only.")  # fmt: skip
@click.option("--syncs", is_flag=True, help="Record where the host waits for the GPU.")
@click.option("--launches", is_flag=True, help="Count kernel and graph launches, by CUPTI.")
@click.option("--windows", type=click.IntRange(2), default=None, metavar="N",
              help="Measure the tracer's cost: N cycles armed, N disarmed.")  # fmt: skip
@click.option("--baseline-tps", type=cli_options.PositiveNumber(), metavar="X",
              help="Tokens per second of plain decoding, for the break-even.")  # fmt: skip
@click.option("--log", type=cli_options.Place(), metavar="FILE",
              help="Write the server's output there.")  # fmt: skip
@click.option("--platform", type=click.Choice(pipeline.PLATFORMS), default="cuda",
              help="Which arms of the code count (cuda).")  # fmt: skip
@cli_options.no_cache
@click.option("--quiet", "-q", is_flag=True, help="No progress bar, no table while it runs.")
@click.pass_context
def trace(context: click.Context, /, **given: Any) -> int | None:
    """See what the workers of a running server do: which phase replays, which is eager, why.

    \b
    Examples:
      specmap trace --live -- python -m sglang.launch_server --model-path m ...
      specmap trace --live --cycles 500 --stop-after -- python bench.py
      specmap trace --live --dormant -- python -m sglang.launch_server ...
      specmap trace --attach 4711 --seconds 30
      specmap trace read output/trace-1

    The agent comes into every rank by its environment; nothing is edited. After --cycles or
    --seconds the report is printed and the server goes on. Ctrl-C ends the trace and is then
    passed on to the server.

    Exit code 1: a phase that could replay ran eager, ranks differ, or the source says
    otherwise; 2: the trace failed, or saw no cycle. A server that fails by itself hands on
    its own code.
    """
    if context.invoked_subcommand is not None:
        return None
    modes = [name for name in ("live", "attach", "inject") if given[name]]
    if len(modes) != 1:
        raise click.UsageError(
            "trace: give one of --live, --attach PID, --inject PID, or 'read', 'export', 'path'"
        )
    gc.enable()  # the command line runs without it; this may run for days
    command: tuple[str, ...] = context.meta.get(_COMMAND, ())
    _check(modes[0], given, command)
    screen: Screen = context.obj
    return _run(modes[0], command, given, _ask(given), _watcher(screen, given))


def _check(mode: str, given: dict[str, Any], command: tuple[str, ...]) -> None:
    """Refuse options that do not fit together, before anything is read."""
    limited = given["cycles"] or given["seconds"]
    if mode == "live" and not command:
        raise click.UsageError("--live: no command after --")
    if given["dormant"] and (mode != "live" or limited or given["stop_after"] or given["log"]):
        raise click.UsageError("--dormant only starts a server; it goes with --live and --target")
    if given["stop_after"] and not (mode == "live" and limited):
        raise click.UsageError("--stop-after needs --live and one of --cycles, --seconds")
    if given["log"] and mode != "live":
        raise click.UsageError("--log takes the output of a server that --live starts")
    if mode == "inject" and not given["yes"]:
        from specmap.trace.inject import RISK

        raise click.UsageError(f"--inject: {RISK}; say --yes to do it anyway")


def _ask(given: dict[str, Any]) -> Ask:
    from specmap.live import Ask
    from specmap.trace.launch import Options

    return Ask(
        target=given["target"],
        directory=given["directory"],
        cycles=given["cycles"],
        seconds=given["seconds"],
        stop_after=given["stop_after"],
        log=given["log"],
        options=Options(given["spans"], given["syncs"], given["launches"], given["windows"] or 0),
        platform=given["platform"],
        use_cache=not given["no_cache"],
    )


def _run(
    mode: str, command: tuple[str, ...], given: dict[str, Any], ask: Ask, watcher: Watcher
) -> int:
    from specmap import tracing

    if given["dormant"]:
        tracing.sleep_in(command, ask, watcher)
    if mode == "live":
        return tracing.launch(command, ask, watcher)
    if mode == "attach":
        return tracing.attach(given["attach"], ask, watcher)
    return tracing.inject_into(given["inject"], ask, watcher)


def _watcher(screen: Screen, given: dict[str, Any]) -> Watcher:
    from specmap.recorded import Question, completed
    from specmap.tracing import Watcher

    question = Question(baseline_tps=given["baseline_tps"], use_cache=not given["no_cache"])

    def report(folder: Path, run: Run) -> int:
        with screen.progress(given["quiet"]) as progress:
            whole = completed(folder, run, question, progress)
        shown = _shown(screen, whole)
        place = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
        screen.out(f"{shown.text}\nRecorded in {place}\n")
        for note in shown.notes:
            screen.note(note)
        return shown.code

    return Watcher(
        progress=lambda: screen.progress(given["quiet"]),
        table=lambda: _table(screen, given["quiet"]),
        note=screen.note,
        report=report,
        log=lambda folder: _log(screen, folder, given["quiet"]),
    )


def _log(screen: Screen, folder: Path, quiet: bool) -> None:
    """Write the event logs; what keeps them from being written is a line, no failure."""
    from specmap.recorded import log_events

    try:
        with screen.progress(quiet) as progress:
            log_events(folder, progress)
    except SpecmapError as error:
        screen.note(f"no event logs: {error}")
    except KeyboardInterrupt:
        screen.note(f"no event logs yet: 'specmap trace read {folder}' writes them")


@contextlib.contextmanager
def _table(screen: Screen, quiet: bool) -> Iterator[Show | None]:
    """Give what shows the table at the bottom of the terminal; None where nobody watches."""
    from specmap.cli_live import footer, rendered

    with footer(quiet) as kept:
        if kept is None:
            yield None
            return
        yield lambda ranks, state: kept.show(rendered(ranks, state, screen.color))


def _shown(screen: Screen, run: Run, name: str = "text", output: Path | None = None) -> Shown:
    """Return a run in one of the formats, with the exit code that it calls for."""
    from specmap.codemap.event import RunProblem
    from specmap.report.options import RenderOptions

    if name == "json":
        from specmap.report.run_json import render_run_json

        text = render_run_json(run)
    else:
        from specmap.report.run_text import render_run

        options = RenderOptions(width=screen.width, color=screen.color and output is None)
        text = render_run(run, options)
    blind = [f.message for f in run.findings if f.problem is RunProblem.NO_CYCLE]
    failed = [*blind, *run.damage]
    return Shown(text, _FAILED if failed else int(run.failing), output, tuple(failed))


@trace.command()
@_folder
@click.option("--format", "-f", "name", type=click.Choice(_FORMATS), default="text",
              show_default=True, help="Output format.")  # fmt: skip
@click.option("--target", metavar="TARGET", help="The tree to compare with.")
@click.option("--model-config", type=cli_options.Place(), metavar="FILE",
              help="config.json of the model, if it is not where the ranks found it.")  # fmt: skip
@click.option("--draft-config", type=cli_options.Place(), metavar="FILE",
              help="config.json of the draft model.")  # fmt: skip
@click.option("--worker", "workers", multiple=True, metavar="NAME", help="Draw this worker only.")
@click.option("--phase", "phases", multiple=True, metavar="NAME", help="Draw this phase only.")
@click.option("--baseline-tps", type=cli_options.PositiveNumber(), metavar="X",
              help="Tokens per second of plain decoding, for the break-even.")  # fmt: skip
@click.option("--other", type=cli_options.Place(), metavar="DIR",
              help="A run with other draft steps: fixed and per-token cost of verify.")  # fmt: skip
@click.option("--output", "-o", type=cli_options.Place(), metavar="PATH",
              help="Write there; standard output is the default.")  # fmt: skip
@cli_options.no_cache
@cli_options.quiet
@click.pass_obj
def read(screen: Screen, /, folder: Path, **given: Any) -> Shown:
    """Show a recorded run again.

    \b
    Examples:
      specmap trace read output/trace-1
      specmap trace read output/trace-1 --baseline-tps 2200
      specmap trace read output/trace-1 -f svg --target sglang==0.5.12 -o run.svg

    What a killed rank left in memory is saved first, and the Parquet files are written.
    Exit codes as of the live run. 'dot' and 'svg' draw the call graph with what ran on it.
    """
    from specmap.recorded import Question, drawn, reported
    from specmap.report.options import RenderOptions

    question = Question(
        target=given["target"],
        baseline_tps=given["baseline_tps"],
        other=given["other"],
        model_config=given["model_config"],
        draft_config=given["draft_config"],
        use_cache=not given["no_cache"],
    )
    with screen.progress(given["quiet"]) as progress:
        run = reported(folder, question, progress)
        if given["name"] in _DRAWN:
            options = RenderOptions(workers=given["workers"], phases=given["phases"])
            drawing = drawn(folder, run, question, given["name"], options, progress)
            return Shown(drawing, output=given["output"])
    _log(screen, folder, given["quiet"])
    return _shown(screen, run, given["name"], given["output"])


@trace.command()
@_folder
@click.option("--chrome", type=cli_options.Place(), metavar="FILE",
              help="Trace Event Format, for chrome://tracing and Perfetto.")  # fmt: skip
@click.option("--perfetto", type=cli_options.Place(), metavar="FILE",
              help="Perfetto's own format.")  # fmt: skip
@click.option("--prometheus", type=cli_options.Place(), metavar="FILE",
              help="Counters, for a textfile collector.")  # fmt: skip
@click.option("--otlp", metavar="URL", help="The same counters to an OpenTelemetry collector.")
@click.pass_obj
def export(screen: Screen, /, folder: Path, **given: Any) -> int:
    """Write a recorded run in the formats of other tools.

    \b
    Example:
      specmap trace export output/trace-1 --perfetto run.pftrace --chrome run.json
    """
    from specmap import exported
    from specmap.traced import read_run

    if not any(given.values()):
        raise click.UsageError("export: name one of --chrome, --perfetto, --prometheus, --otlp")
    places = [place for place in given.values() if isinstance(place, Path)]
    if len({place.resolve() for place in places}) < len(places):
        raise click.UsageError("export: two formats have the same file")
    run = read_run(folder)
    for name, place in given.items():
        if place is not None:
            screen.out(exported.EXPORTS[name](folder, run, place) + "\n")
    for line in run.damage:
        screen.note(line)
    return _FAILED if run.damage else 0


@trace.command()
@click.pass_obj
def path(screen: Screen) -> int:
    """Print the folder that brings a sleeping agent into a server, on its PYTHONPATH.

    \b
    Example:
      specmap trace path
    """
    from specmap.trace.launch import inject_folder

    screen.out(f"{inject_folder()}\n")
    return 0


@trace.command()
@click.option("--dry-run", is_flag=True, help="Name them, and leave them.")
@click.pass_obj
def clean(screen: Screen, dry_run: bool) -> int:
    """Remove rings that killed servers left in shared memory.

    \b
    Example:
      specmap trace clean --dry-run

    A killed rank leaves its ring, 2 MB in /dev/shm, until 'specmap trace read' takes the last
    records into its run. Here all rings of yours go that no process uses any more; records in
    them that were not read are lost.
    """
    from specmap.trace.leftover import left_rings, remove

    rings = left_rings()
    for ring in rings:
        if not dry_run:
            remove(ring)
        screen.out(f"{ring}\n")
    counted = f"{len(rings)} ring{'' if len(rings) == 1 else 's'}"
    said = "can be removed" if dry_run else "removed"
    screen.out(f"{counted} {said}, {sum(rings.values()) / 1e6:.1f} MB\n")
    return 0
