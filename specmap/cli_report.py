"""The verb report: one HTML page with everything that is known of a tree, a launch, a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmap import cli_options, pipeline
from specmap.cli_launch import LaunchVerb, own_launch_options
from specmap.cli_review import Screen, Shown
from specmap.errors import SpecmapError

if TYPE_CHECKING:
    from specmap.launched import Launch

_FAILED = 2
_DEFAULT = Path("output/report.html")


@click.command(cls=LaunchVerb)
@click.argument("targets", nargs=-1, metavar="[TARGET | A B]")
@click.option("--run", type=cli_options.Place(), metavar="DIR", help="A recorded run of the tree.")
@click.option(
    "--output", "-o", metavar="PATH", default=str(_DEFAULT), show_default=True,
    help="Where to write; '-' is standard output.",
)  # fmt: skip
@click.option("--fix", is_flag=True, help="Also try and prove the rewrites of 'specmap fix'.")
@click.option("--platform", type=click.Choice(pipeline.PLATFORMS), help="Which arms count (cuda).")
@cli_options.no_cache
@click.option("--quiet", "-q", is_flag=True, help="No progress bar, no name of the written file.")
@own_launch_options
@click.pass_obj
def report(
    screen: Screen,
    targets: tuple[str, ...],
    run: Path | None,
    output: str,
    fix: bool,
    platform: str | None,
    no_cache: bool,
    quiet: bool,
    launch: Launch | None,
) -> Shown:
    """Write one HTML page: verdicts, call graph, conditions, findings, and what a run did.

    TARGET is any target of 'specmap scan', or the folder of a recorded run. With A and B the
    page shows two of them side by side, first what differs in arguments, versions and
    variables. The page holds everything and reaches no network. Without a launch command that
    of the run counts, with what the other options say of the model and the machine.

    \b
    Examples:
      specmap report sglang==0.5.12 --args-file launch.sh --gpu-memory 80
      specmap report --run output/trace-1
      specmap report sglang==0.5.9 sglang==0.5.12 -o output/compared.html
      specmap report output/trace-1 output/trace-2

    Exit codes as of 'scan' with a launch and of 'trace': 1 where a phase that could replay does
    not, in the launch or in the run; 0 where nothing is wrong, or no launch and no run was
    given; 2 where the tool or its input failed. Findings of lint do not count.
    """
    from specmap.reported import Request, report

    if len(targets) > 2:
        raise click.UsageError(f"one target, or two to compare; {len(targets)} were given")
    request = Request(targets, run, launch, fix, platform, not no_cache)
    if output != "-":
        _check(Path(output))
    with screen.progress(quiet) as progress:
        made = report(request, progress)
    code = _FAILED if made.blind else int(made.failing)
    notes = (*made.blind, *made.notes)
    if output == "-":
        return Shown(made.content.decode(), code, None, notes)
    pipeline.write_file(Path(output), made.content)
    return Shown("" if quiet else f"wrote {output}\n", code, None, notes)


def _check(path: Path) -> None:
    """Refuse a place that cannot be meant before the work is done.

    Raises:
        SpecmapError: it is a folder.
    """
    if path.is_dir():
        raise SpecmapError(f"--output {str(path)!r} is a folder; name a file in it")
