"""The command line: options in, exit code out. The only module that prints or exits.

Exit codes: 0 nothing to report, 1 findings, 2 the tool or its input failed.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from specmap import __version__, cli_options, pipeline
from specmap.cli_fix import fix
from specmap.cli_launch import LaunchVerb, Show, judged, launch_options, why
from specmap.cli_report import report
from specmap.cli_review import Screen, Shown, diff, explain, lint, rules
from specmap.cli_sweep import sweep
from specmap.cli_trace import trace
from specmap.errors import OutputError, SpecmapError
from specmap.launched import Launch
from specmap.report import RenderOptions

_FAILED = 2
_INTERRUPTED = 130
# Without a terminal nothing wraps: lines stay whole for grep and diff.
_PLAIN_WIDTH = 10_000
# After so long a command whose progress nobody sees says that it is at work.
_PATIENCE_S = 10.0


def main() -> NoReturn:
    """Run the command line and exit; every failure is one line on stderr."""
    gc.disable()  # one short run over trees without cycles
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _ended)
    try:
        result = command.main(standalone_mode=False)
        code = _show(result) if isinstance(result, Shown) else result
    except click.exceptions.Abort:
        code = _fail("interrupted", _INTERRUPTED)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        verb = context.command_path if context is not None else "specmap"
        code = _fail(f"{error.format_message()} (see {verb} --help)")
    except SpecmapError as error:
        code = _fail(str(error))
    except Exception as error:
        if os.environ.get("SPECMAP_TRACEBACK"):
            raise
        kind = type(error).__name__
        code = _fail(f"internal error, {kind}: {error}; SPECMAP_TRACEBACK=1 shows where")
    gc.freeze()  # the interpreter would search millions of objects for cycles as it ends
    sys.exit(code)


def _ended(number: int, _: FrameType | None) -> NoReturn:
    """End by a signal as by an error: what is half written goes, what is held is let go."""
    raise SystemExit(128 + number)


def _fail(message: str, code: int = _FAILED) -> int:
    click.echo(f"specmap: {' '.join(message.split())}", err=True)
    return code


def _note(message: str) -> None:
    _fail(message)


def _show(shown: Shown) -> int:
    """Print what a verb leaves, or write it to the file that was named."""
    if shown.output is None:
        _print(shown.text.encode("utf-8", "surrogateescape"))
    else:
        pipeline.write_file(shown.output, shown.text.encode())
    for note in shown.notes:
        _fail(note)
    return shown.code


@click.group(
    cls=cli_options.Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="specmap", message="%(prog)s %(version)s")
@click.pass_context
def command(context: click.Context) -> None:
    """Which phase of a speculative decode cycle replays a CUDA graph, which runs eager, and why.

    \b
    Examples:
      specmap scan sglang==0.5.12 --args-file launch.sh --gpu-memory 80 --sm 90 --batch bs=4
      specmap lint --base origin/main
      specmap trace --live -- python -m sglang.launch_server --model-path m ...
      specmap report sglang==0.5.12 --args-file launch.sh
    """
    watched = sys.stdout.isatty()
    context.obj = Screen(
        _progress, _width(watched), _color(watched), lambda text: _print(text.encode()), _note
    )
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _verb in (why, sweep, lint, rules, explain, diff, fix, trace, report):
    command.add_command(_verb)


@command.command(cls=LaunchVerb)
@click.argument("target", required=False)
@click.option(
    "--worker",
    "workers",
    multiple=True,
    metavar="NAME",
    help="Show this worker class only; may be repeated.",
)
@click.option(
    "--phase",
    "phases",
    multiple=True,
    metavar="NAME",
    help="Show this phase only; may be repeated.",
)
@click.option(
    "--platform",
    type=click.Choice(pipeline.PLATFORMS),
    default="cuda",
    show_default=True,
    help="Cut the code that this platform never takes.",
)
@click.option(
    "--format",
    "-f",
    "name",
    type=click.Choice(pipeline.FORMATS),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--output",
    "-o",
    metavar="PATH",
    help="Where to write; '-' is standard output. Text goes there by default, "
    "other formats to a file under output/.",
)
@cli_options.no_cache
@click.option("--quiet", "-q", is_flag=True, help="No progress bar, no names of written files.")
@launch_options
@click.pass_obj
def scan(
    screen: Screen,
    target: str | None,
    workers: tuple[str, ...],
    phases: tuple[str, ...],
    platform: str,
    name: str,
    output: str | None,
    no_cache: bool,
    quiet: bool,
    launch: Launch | None,
) -> int | Shown:
    """Map the speculative workers of a SGLang tree, from its source.

    TARGET is a folder of the tree (the speculative folder, srt, the package, a repository
    root), 'installed', 'sglang==VERSION' (from the package index) or 'git:REV' (of the
    repository you stand in). Without one: the installed SGLang, else the newest release.

    \b
    Examples:
      specmap scan sglang==0.5.9 --worker EAGLEWorker
      specmap scan sglang/srt/speculative --phase verify
      specmap scan git:main --format json -o -
      specmap scan installed --worker EAGLEWorker --format svg
      specmap scan sglang==0.5.12 --args-file launch.sh --gpu-memory 80 --sm 90 --batch bs=4

    With a launch command the outcome is shown instead of the map: which worker runs, and one
    word a phase. Exit code 1: a phase that could replay will not, or --expect does not hold;
    2: every phase of the cycle is UNKNOWN.

    Drawings (svg, png) need Graphviz; without its 'dot' program the .dot and Mermaid texts
    are written instead. Exit code 2: no drawing was made, the scan failed, or the map is partial.
    """
    if launch is not None:
        return judged(
            target,
            launch,
            Show(name, output, screen, quiet),
            workers=workers,
            phases=phases,
            platform=platform,
            use_cache=not no_cache,
        )
    pipeline.check_phases(phases)
    if name == "png" and output == "-":
        raise click.UsageError("png is not text, it cannot go to standard output; name a file")
    with _progress(quiet) as progress:
        codemap = pipeline.scan_tree(
            target, platform=platform, use_cache=not no_cache, progress=progress
        )
        pipeline.check_names(codemap, workers, phases)
    to_stdout = output == "-" or (output is None and name == "text")
    options = _options(workers, phases, to_stdout)
    if to_stdout:
        _print(pipeline.render(codemap, name, options))
    else:
        written = pipeline.write(codemap, name, options, Path(output) if output else None)
        if not _report_written(written, quiet):
            return _FAILED
    return _fail(codemap.unread) if codemap.unread else 0


def _options(workers: tuple[str, ...], phases: tuple[str, ...], to_stdout: bool) -> RenderOptions:
    watched = to_stdout and sys.stdout.isatty()
    return RenderOptions(
        workers=workers, phases=phases, width=_width(watched), color=_color(watched)
    )


def _width(watched: bool) -> int:
    if watched:
        return shutil.get_terminal_size((100, 24)).columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else _PLAIN_WIDTH


def _color(watched: bool) -> bool:
    return watched and not os.environ.get("NO_COLOR")


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[pipeline.Progress | None]:
    """Show a bar for each step, on stderr, when a person watches; else one line if it is long."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _told_once()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=None)
        yield lambda step, done, total: bars.update(
            task, description=step, completed=done, total=total or None
        )


def _told_once() -> pipeline.Progress:
    """Return what says once, after some seconds, that the work goes on."""
    began, told = time.monotonic(), False

    def progress(step: str, done: int, total: int) -> None:
        nonlocal told
        if not told and time.monotonic() - began > _PATIENCE_S:
            told = True
            _fail(f"still at work ({step}); a first look at a tree takes up to a minute")

    return progress


def _print(content: bytes) -> None:
    """Write to standard output; a reader that stops early is no error.

    Raises:
        OutputError: standard output cannot be written.
    """
    encoding = sys.stdout.encoding or "utf-8"
    if encoding.lower().replace("-", "") != "utf8":
        content = content.decode().encode(encoding, "replace")
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except OSError as error:
        # What is left in the buffer must not fail once more when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            reason = error.strerror or str(error)
            raise OutputError(f"cannot write to standard output: {reason}") from None


def _report_written(written: pipeline.Written, quiet: bool) -> bool:
    """Name the files; return whether they are what was asked for."""
    if not quiet:
        _print("".join(f"wrote {path}\n" for path in written.paths).encode())
    if written.dot_missing:
        _fail(
            "Graphviz's 'dot' program is not installed, so DOT and Mermaid were written instead; "
            "install the package 'graphviz' of your system and run this again"
        )
    return not written.dot_missing
