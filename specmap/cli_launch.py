"""The options that state a launch, its outcome, and the verb ``why``."""

from __future__ import annotations

import codecs
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from specmap import cli_options, pipeline
from specmap.cli_review import Screen, Shown
from specmap.errors import SpecmapError
from specmap.launched import Launch
from specmap.report.options import RenderOptions

_FORMATS = ("text", "json")
_FAILED = 2

_OPTIONS = (
    click.option("--args", "text", metavar="ARGS", help="Launch command, or its arguments alone."),
    click.option(
        "--args-file",
        metavar="FILE",
        help="File with the command: shell, docker, Kubernetes, Python, or a YAML config; "
        "'-' is standard input.",
    ),
    click.option("--server", type=int, metavar="N", help="Which one, if it starts several (1)."),
    click.option("--env", multiple=True, metavar="K=V", help="A variable of the server."),
    click.option("--model-config", metavar="PATH", help="The model's config.json, or its folder."),
    click.option("--draft-config", metavar="PATH", help="The same of the draft model."),
    click.option(
        "--gpu-memory",
        type=cli_options.Written("GB"),
        metavar="GB",
        help="Memory of one GPU: 80, 141.",
    ),
    click.option(
        "--sm",
        type=cli_options.Written(whole=True),
        metavar="N",
        help="Compute capability: 90 (or 9.0) is Hopper.",
    ),
    click.option("--tp", type=int, metavar="N", help="Tensor-parallel size."),
    click.option(
        "--batch",
        multiple=True,
        metavar="K=V,...",
        help="The batch: bs=4, and what is not as assumed (logprob=yes); the keys are below.",
    ),
    click.option("--concurrency", type=int, metavar="N", help="Requests that run at once."),
    click.option(
        "--expect", multiple=True, metavar="PHASE=VERDICT,...", help="Fail unless these hold."
    ),
)
_NAMES = (
    "text", "args_file", "server", "env", "model_config", "draft_config", "gpu_memory", "sm",
    "tp", "batch", "concurrency", "expect",
)  # fmt: skip


class LaunchVerb(cli_options.Verb):
    """A verb with the options of a launch; its help explains the keys of ``--batch``."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what is assumed of a batch, by key."""
        from specmap.verdicts.words import load_words

        with formatter.section("Keys of --batch (KEY=yes: it is otherwise; unknown: nobody knows)"):
            formatter.write_dl([("bs", "requests in the batch"), *load_words().reasons.items()])


def launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a launch; the command gets them as ``launch``, None without any."""
    return _with_options(function, _launch)


def own_launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same options; without a command its text is "", for one that is known otherwise."""
    return _with_options(function, lambda given: _launch(given, ""))


def _with_options(
    function: Callable[..., Any], read: Callable[[dict[str, Any]], Launch | None]
) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **keywords: Any) -> Any:
        given = {name: keywords.pop(name) for name in _NAMES}
        return function(*args, launch=read(given), **keywords)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def _launch(given: dict[str, Any], own: str | None = None) -> Launch | None:
    """Build the launch from the options; ``own`` is its text where none is given.

    Raises:
        SpecmapError: options contradict each other, or a file cannot be read.
    """
    text, file = given["text"], given["args_file"]
    if text is None and all(value in (None, ()) for value in given.values()):
        return None
    if text is not None and file is not None:
        raise SpecmapError("--args and --args-file both state the command; give one")
    stated = text if file is None else _read(file)
    if own is not None and stated is not None and not stated.strip():
        raise SpecmapError("the launch command is empty; --args or --args-file state it")
    if stated is None:
        stated = own
    if stated is None:
        raise SpecmapError("these options need a launch command: --args or --args-file")
    model, draft = given["model_config"], given["draft_config"]
    return Launch(
        text=stated,
        server=given["server"],
        env=_pairs(given["env"]),
        model_config=Path(model) if model else None,
        draft_config=Path(draft) if draft else None,
        gpu_memory=given["gpu_memory"],
        sm=given["sm"],
        tp=given["tp"],
        batch=",".join(given["batch"]),
        concurrency=given["concurrency"],
        expect=",".join(given["expect"]),
        folder=Path(file).parent if file and file != "-" else Path(),
        source=f"--args-file {file!r}" if file is not None else "",
    )


def _read(file: str) -> str:
    """Return the text of a file; a byte that is no text, as in a long log, does not refuse it."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise SpecmapError(f"--args-file {file!r}: {error.strerror or error}") from None
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if wide else "utf-8", "replace")


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise SpecmapError(f"--env {text}: expected NAME=VALUE")
        if found.setdefault(name, value) != value:
            raise SpecmapError(f"--env {text}: {name} is also given as {found[name]!r}; state one")
    return found


@dataclass(frozen=True, slots=True)
class Show:
    """How a result is shown: format, file or None, the terminal, and whether to be quiet."""

    name: str
    output: str | None
    screen: Screen
    quiet: bool

    @property
    def file(self) -> Path | None:
        """The file to write, None for standard output."""
        return Path(self.output) if self.output and self.output != "-" else None

    @property
    def options(self) -> RenderOptions:
        """Width and colour of the text."""
        return RenderOptions(width=self.screen.width, color=self.screen.color and self.file is None)


def judged(
    target: str | None,
    launch: Launch,
    show: Show,
    *,
    workers: tuple[str, ...] = (),
    phases: tuple[str, ...] = (),
    platform: str,
    use_cache: bool,
) -> Shown:
    """Return the outcome of a launch in one of the formats; ``phases`` narrows it.

    Raises:
        SpecmapError: the format shows no launch, or see ``launched.judge_launch``.
    """
    from specmap.launched import judge_launch, narrowed, undecided

    if show.name not in _FORMATS:
        raise SpecmapError(f"--format {show.name} draws the map; a launch is shown as text or json")
    if workers:
        raise SpecmapError("--worker narrows the map; a launch selects its own worker")
    pipeline.check_phases(phases)
    with show.screen.progress(show.quiet) as progress:
        outcome = judge_launch(
            target, launch, platform=platform, use_cache=use_cache, progress=progress
        )
    outcome = narrowed(outcome, phases)
    if show.name == "json":
        from specmap.report.outcome_json import render_outcome_json

        text = render_outcome_json(outcome)
    else:
        from specmap.report.outcome_text import render_outcome

        text = render_outcome(outcome, show.options)
    open_ = "" if outcome.findings else undecided(outcome)
    failed = tuple(filter(None, (outcome.partial, open_)))
    return Shown(text, _FAILED if failed else int(outcome.findings), show.file, failed)


@click.command(cls=LaunchVerb)
@click.argument("target")
@click.argument("place")
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
def why(
    screen: Screen,
    target: str,
    place: str,
    platform: str,
    name: str,
    output: str | None,
    no_cache: bool,
    quiet: bool,
    launch: Launch | None,
) -> Shown:
    """Show why a PLACE of TARGET replays a graph or runs eager.

    PLACE is a phase (WORKER.PHASE), a function, class, flag or file, or FILE:LINE. Printed are
    the way from the scheduler to each sink with the guards on it, and the tests of the graph;
    with a launch command also their values, where those come from, and the smallest changes that
    give another verdict. For a line without a graph flag: the lines that may have been meant, here
    and in the releases of the cache. Exit code: 1 where --expect does not hold, else 0.

    \b
    Examples:
      specmap why sglang==0.5.9 EAGLEWorker.verify
      specmap why sglang==0.5.9 eagle_worker.py:322
      specmap why sglang==0.5.12 EAGLEWorkerV2.draft_extend --args-file launch.sh --sm 90
    """
    from specmap.explained import explain

    show = Show(name, output, screen, quiet)
    with screen.progress(quiet) as progress:
        found = explain(
            target, place, launch, platform=platform, use_cache=not no_cache, progress=progress
        )
    unmet = [e for e in (found.outcome.expectations if found.outcome else ()) if not e.met]
    said = tuple(f"{e.phase} was expected {e.expected} and is {e.found}" for e in unmet)
    if name == "json":
        from specmap.report.outcome_json import render_explanation_json

        return Shown(render_explanation_json(found), int(bool(unmet)), show.file, said)
    from specmap.report.explanation_text import render_explanation

    return Shown(render_explanation(found, show.options), int(bool(unmet)), show.file, said)
