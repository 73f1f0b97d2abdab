"""The verb fix: rewrites a tree, or shows what it would rewrite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmap import __version__, cli_options
from specmap.cli_review import Screen, Shown
from specmap.errors import SpecmapError
from specmap.nearest import meant

if TYPE_CHECKING:
    from specmap.fixed import Fixed

_FAILED = 2
_LEVELS = ("static", "equality", "ledger")


@click.command(cls=cli_options.Verb)
@click.argument("target", required=False)
@click.option("--select", multiple=True, metavar="IDS", help="These rewrites only.")
@click.option("--diff", "show_diff", is_flag=True, help="Show the changes as one diff.")
@click.option("--write", is_flag=True, help="Change the files of the tree.")
@click.option("--patch-dir", metavar="DIR", help="Write one patch a rewrite, for 'git am'.")
@click.option("--unsafe", is_flag=True, help="Also apply what no proof was run for.")
@click.option("--allow-dirty", is_flag=True, help="Write though git knows other changes.")
@click.option(
    "--prove", type=click.Choice(_LEVELS), default=_LEVELS[-1], show_default=True,
    help="The last layer of proof that runs.",
)  # fmt: skip
@click.option("--explain", metavar="ID", help="Show the page of one rewrite, or 'all' for a list.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
@cli_options.platform
@cli_options.no_cache
@cli_options.quiet
@click.pass_obj
def fix(
    screen: Screen,
    target: str | None,
    select: tuple[str, ...],
    show_diff: bool,
    write: bool,
    patch_dir: str | None,
    unsafe: bool,
    allow_dirty: bool,
    prove: str,
    explain: str | None,
    as_json: bool,
    platform: str,
    no_cache: bool,
    quiet: bool,
) -> Shown:
    """Rewrite a SGLang tree so that verify replays its graph.

    TARGET is any target of 'specmap scan'. Without --write, --diff or --patch-dir nothing is
    changed and the report says what would be. Only a folder can be written; releases and
    installed packages give a diff or patches.

    \b
    Examples:
      specmap fix python/sglang
      specmap fix python/sglang --write
      specmap fix sglang==0.5.9 --patch-dir patches
      specmap fix --explain SPF101

    Exit code 0: nothing is left that fix would change (what is refused does not count); 1: there
    are rewrites that were not written to the tree; 2: the tool or its input failed, or a rewrite
    did.
    """
    if explain is not None:
        return Shown(_page(explain))
    if write and (show_diff or patch_dir):
        raise click.UsageError("--write goes with neither --diff nor --patch-dir")
    from specmap.fixed import Request, fix_tree

    request = Request(
        target=target,
        select=tuple(part.strip() for value in select for part in value.split(",") if part.strip()),
        write=write,
        unsafe=unsafe,
        allow_dirty=allow_dirty,
        level=prove,
        platform=platform,
        use_cache=not no_cache,
    )
    with screen.progress(quiet) as progress:
        fixed = fix_tree(request, progress)
    return _shown(fixed, screen, show_diff=show_diff, patch_dir=patch_dir, as_json=as_json)


def _shown(
    fixed: Fixed, screen: Screen, *, show_diff: bool, patch_dir: str | None, as_json: bool
) -> Shown:
    from specmap.codemap.remedy import Outcome
    from specmap.fix.patches import diff, patches
    from specmap.fix.write import write_patches
    from specmap.report.fix_json import render_fix_json
    from specmap.report.fix_text import render_fix

    report, notes = fixed.report, [f"wrote {file}" for file in fixed.written]
    if patch_dir is not None:
        made = patches(report.applied, fixed.prefix, __version__, fixed.encodings)
        write_patches(Path(patch_dir), dict(made))
        notes += [f"wrote {name}" for name, _ in made]
    text = render_fix_json(report) if as_json else render_fix(report, screen.width)
    if show_diff:
        text = diff(report.before, report.after, fixed.prefix, fixed.encodings)
    failed = any(attempt.outcome is Outcome.FAILED for attempt in report.attempts)
    left = bool(report.applied) and not fixed.request.write
    return Shown(text, _FAILED if failed else int(left), None, tuple(notes))


def _page(name: str) -> str:
    from specmap.fix.catalogue import CATALOGUE
    from specmap.report.fix_text import render_catalogue, render_rewrite

    if name == "all":
        return render_catalogue(CATALOGUE)
    known = {key: rewrite for rewrite in CATALOGUE for key in (rewrite.id, rewrite.name)}
    found = known.get(name) or known.get(name.upper())
    if found is None:
        raise SpecmapError(f"no rewrite {name!r}; {meant(name, known, '--explain all lists them')}")
    return render_rewrite(found)
