"""The verb ``sweep``: one launch over a grid of settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmap import cli_options
from specmap.cli_launch import LaunchVerb, Show, launch_options
from specmap.cli_review import Screen, Shown
from specmap.errors import SpecmapError
from specmap.launched import Launch
from specmap.report.options import RenderOptions

if TYPE_CHECKING:
    from specmap.codemap.sweep import Sweep

_FORMATS = ("text", "json", "markdown", "csv")
_FAILED = 2


@click.command(cls=LaunchVerb)
@click.argument("target", required=False)
@click.option("--target", "named", metavar="TARGET", help="The tree, in place of the argument.")
@click.option(
    "--vary", multiple=True, metavar="NAME=V,V,...",
    help="Vary an argument of SGLang (or a variable, in capitals) over values, a range 1..5, "
    "yes/no for a switch, 'unset' to leave it out; may be repeated.",
)  # fmt: skip
@click.option(
    "--run", "runs", multiple=True, metavar="DIR", type=cli_options.Place(),
    help="A recorded run to rank the cells by; may be repeated.",
)  # fmt: skip
@click.option(
    "--accept-length", "accept_lengths", multiple=True, metavar="STEPS=VALUE",
    help="Tokens a request and cycle at STEPS draft steps, or at STEPS/TOPK/TOKENS.",
)  # fmt: skip
@cli_options.platform
@click.option(
    "--format", "-f", "name", type=click.Choice(_FORMATS), default="text", show_default=True,
    help="Output format.",
)  # fmt: skip
@cli_options.output
@cli_options.no_cache
@cli_options.quiet
@launch_options
@click.pass_obj
def sweep(
    screen: Screen,
    target: str | None,
    named: str | None,
    vary: tuple[str, ...],
    runs: tuple[Path, ...],
    accept_lengths: tuple[str, ...],
    platform: str,
    name: str,
    output: str | None,
    no_cache: bool,
    quiet: bool,
    launch: Launch | None,
) -> Shown:
    """Try a launch over a grid of settings: which cells lose a graph, why, and which are fastest.

    TARGET is any target of 'specmap scan'. Every combination of the varied values and batch
    sizes is a cell; --batch takes several sizes (bs=1,4,16). What SGLang refuses to start is a
    cell, too. With recorded runs, cells are ranked by predicted tokens a second: from measured
    cycles and accept lengths, and stated rules between them. What was not measured and follows
    by no rule stays unranked.

    \b
    Examples:
      specmap sweep sglang==0.5.9 --args-file launch.sh --vary cuda-graph-max-bs=2,4,8 \\
          --batch bs=1,4,16
      specmap sweep sglang==0.5.9 --args-file launch.sh --vary speculative-num-steps=1..5 \\
          --vary attention-backend=triton,flashinfer,fa3
      specmap sweep --args-file launch.sh --vary speculative-num-steps=1..5 --batch bs=4 \\
          --run output/trace-1 --run output/trace-2 --accept-length 2=1.9

    Exit code 1: a cell loses a graph or is refused, a preflight finding, or --expect does not
    hold somewhere; 2: nothing can be told, or the tool failed.
    """
    from specmap.sweep.grid import read_axes
    from specmap.sweep.sweeping import SweepRequest, sweep_launch

    if target is not None and named is not None:
        raise SpecmapError("the tree is named twice, as an argument and by --target; give one")
    if launch is None:
        raise SpecmapError("a sweep needs a launch command: --args or --args-file")
    show = Show(name, output, screen, quiet)
    request = SweepRequest(launch, read_axes(vary), runs, accept_lengths)
    with screen.progress(quiet) as progress:
        found = sweep_launch(
            target or named, request, platform=platform, use_cache=not no_cache, progress=progress
        )
    undecided = "" if found.findings else found.undecided
    failed = tuple(filter(None, (found.partial, undecided)))
    text = _renderer(name)(found, show.options)
    return Shown(text, _FAILED if failed else int(found.findings), show.file, failed)


def _renderer(name: str) -> Callable[[Sweep, RenderOptions], str]:
    if name == "json":
        from specmap.report.sweep_json import render_sweep_json

        return lambda sweep, options: render_sweep_json(sweep)
    if name == "text":
        from specmap.report.sweep_text import render_sweep

        return render_sweep
    from specmap.report.sweep_table import render_sweep_csv, render_sweep_markdown

    made = render_sweep_csv if name == "csv" else render_sweep_markdown
    return lambda sweep, options: made(sweep)
