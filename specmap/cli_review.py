"""The verbs of a review: lint, rules, explain, diff. Each returns what is to be shown."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmap import __version__, cli_options, pipeline
from specmap.errors import SpecmapError
from specmap.nearest import meant
from specmap.report.findings import FINDING_FORMATS

if TYPE_CHECKING:
    from specmap.review import Review

_FAILED = 2


@dataclass(frozen=True, slots=True)
class Shown:
    """What a verb leaves: text for standard output or for ``output``, lines for stderr."""

    text: str
    code: int = 0
    output: Path | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Screen:
    """What the command line knows about the terminal.

    ``out`` writes text to standard output and ``note`` a line to stderr, for verbs that go on
    after what they say; others return a :class:`Shown`.
    """

    progress: Callable[[bool], AbstractContextManager[pipeline.Progress | None]]
    width: int
    color: bool
    out: Callable[[str], None]
    note: Callable[[str], None]


@click.command(cls=cli_options.Verb)
@click.argument("target", required=False, metavar="[PATH]")
@click.option("--base", metavar="REV", help="Report only what was added since this revision.")
@click.option("--select", multiple=True, metavar="RULES", help="Run these rules only.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Do not run these rules.")
@click.option("--baseline", metavar="FILE", help="Accept the findings that this file lists.")
@click.option("--update-baseline", is_flag=True, help="Write all findings to the baseline file.")
@click.option("--statistics", is_flag=True, help="Count the findings of each rule.")
@click.option(
    "--output-format",
    "name",
    type=click.Choice(FINDING_FORMATS),
    help="How to show findings (full).",
)
@click.option("--platform", type=click.Choice(pipeline.PLATFORMS), help="Which arms count (cuda).")
@cli_options.output
@cli_options.no_cache
@cli_options.quiet
@click.pass_obj
def lint(
    screen: Screen,
    target: str | None,
    base: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    baseline: str | None,
    update_baseline: bool,
    statistics: bool,
    name: str | None,
    platform: str | None,
    output: str | None,
    no_cache: bool,
    quiet: bool,
) -> Shown:
    """Report what takes a phase out of its CUDA graph, stalls the host, or breaks replay.

    PATH is a folder of a SGLang tree, or any target of 'specmap scan'; by default the tree
    around or below the current folder. RULES are ids, beginnings of ids, names or topics,
    separated by commas. REV is a git revision (its common ancestor with the tree counts) or
    another target, such as 'sglang==0.5.23' for a fork. Defaults come from [tool.specmap] in
    pyproject.toml.

    \b
    Examples:
      specmap lint --base origin/main
      specmap lint python/sglang --select SPM2 --output-format sarif -o specmap.sarif
      specmap lint sglang==0.5.23 --statistics

    Accept a finding with '# specmap: allow NAME -- reason' at its line. Exit code 1: there
    are findings; 2: the tool, a rule or the input failed.
    """
    from specmap.review import Request, lint_tree

    if statistics and name not in (None, "full", "concise"):
        raise SpecmapError(f"--statistics is text for people; it cannot be written as {name}")
    request = Request(
        target=target,
        base=base,
        platform=platform,
        select=_split(select),
        ignore=_split(ignore),
        baseline=Path(baseline) if baseline else None,
        update_baseline=update_baseline,
        use_cache=not no_cache,
    )
    with screen.progress(quiet) as progress:
        review = lint_tree(request, progress)
    chosen = "statistics" if statistics else name or review.config.output_format or "full"
    return _linted(review, chosen, screen, output)


def _linted(review: Review, name: str, screen: Screen, output: str | None) -> Shown:
    from specmap.report.findings import FindingOptions, render_findings
    from specmap.report.wording import base_hint

    report = review.report
    options = FindingOptions(
        source=review.source,
        prefix=review.prefix,
        width=screen.width,
        color=screen.color and output is None,
        version=__version__,
    )
    notes = [f"rule {c.rule} failed, {c.place}: {c.message}" for c in report.crashes]
    notes += [note for note in (review.unread, review.doubt) if note]
    notes += [f"wrote {review.written}"] if review.written else []
    if not report.base and report.new and (hint := base_hint(report.target)):
        notes.append(hint)
    failed = bool(report.crashes or review.unread)
    return Shown(
        render_findings(report, name, options),
        _FAILED if failed else int(bool(report.new)),
        _file(output),
        tuple(notes),
    )


def _file(output: str | None) -> Path | None:
    return Path(output) if output and output != "-" else None


@click.command(cls=cli_options.Verb)
@click.option("--json", "as_json", is_flag=True, help="A JSON list instead of a table.")
@click.pass_obj
def rules(screen: Screen, as_json: bool) -> Shown:
    """List the lint rules, with those of installed rule packs.

    \b
    Example:
      specmap rules --json
    """
    from specmap.report.options import RenderOptions
    from specmap.report.rules_text import render_rules, render_rules_json
    from specmap.review import all_rules

    if as_json:
        return Shown(render_rules_json(all_rules()))
    return Shown(render_rules(all_rules(), RenderOptions(width=screen.width, color=screen.color)))


@click.command(cls=cli_options.Verb)
@click.argument("rule")
def explain(rule: str) -> Shown:
    """Show the page of one RULE, by its id or name.

    \b
    Examples:
      specmap explain SPM105
      specmap explain host-sync-on-cycle
    """
    from specmap.report.rules_text import render_rule
    from specmap.review import all_rules

    known = {name: r for r in all_rules() for name in (r.id, r.name)}
    found = known.get(rule) or known.get(rule.upper())
    if found is None:
        from specmap.fix.catalogue import CATALOGUE

        rewrites = {name: r.id for r in CATALOGUE for name in (r.id, r.name)}
        rewrite = rewrites.get(rule) or rewrites.get(rule.upper())
        hint = meant(rule, [*known, *rewrites], "'specmap rules' lists them")
        if rewrite is not None:
            hint = f"it is a rewrite: 'specmap fix --explain {rewrite}' shows its page"
        raise SpecmapError(f"no rule {rule!r}; {hint}")
    return Shown(render_rule(found))


@click.command(cls=cli_options.Verb)
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@click.option(
    "--format",
    "-f",
    "name",
    type=click.Choice(("text", "json", "markdown")),
    default="text",
    show_default=True,
    help="Output format; markdown fits a pull-request comment.",
)
@cli_options.platform
@click.option("--all", "everything", is_flag=True, help="Leave nothing out of a long list.")
@cli_options.output
@cli_options.no_cache
@cli_options.quiet
@click.pass_obj
def diff(
    screen: Screen,
    old: str,
    new: str,
    name: str,
    platform: str,
    everything: bool,
    output: str | None,
    no_cache: bool,
    quiet: bool,
) -> Shown:
    """Compare the speculative workers of two trees, most important first.

    A and B are targets of 'specmap scan': folders, releases, git revisions. Reported are
    workers and phases gained and lost, terms of the graph decisions, fallbacks that became
    errors, host synchronisations and renames. Code that only moved is not reported.

    \b
    Examples:
      specmap diff sglang==0.5.9 sglang==0.5.12
      specmap diff git:main . --format markdown

    Exit code 1: there are differences.
    """
    from specmap.report.diff import DiffOptions, render_diff
    from specmap.review import diff_trees

    with screen.progress(quiet) as progress:
        found, missing = diff_trees(
            old, new, platform=platform, use_cache=not no_cache, progress=progress
        )
    options = DiffOptions(
        width=screen.width, color=screen.color and output is None, everything=everything
    )
    return Shown(
        render_diff(found, name, options),
        _FAILED if missing else int(not found.empty),
        _file(output),
        (missing,) if missing else (),
    )


def _split(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
