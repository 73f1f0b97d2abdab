"""Options that several verbs take in the same words."""

from __future__ import annotations

import click

from specmap import pipeline

platform = click.option(
    "--platform", type=click.Choice(pipeline.PLATFORMS), default="cuda", show_default=True,
    help="Which arms count.",
)  # fmt: skip
output = click.option(
    "--output", "-o", metavar="PATH", help="Write there; standard output is the default."
)
no_cache = click.option(
    "--no-cache", is_flag=True, help="Neither read nor keep anything in the cache."
)
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress bar.")
