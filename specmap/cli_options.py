"""Options that several verbs take in the same words."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import click

from specmap import pipeline

# What a hook, an action or an alias sets and its user sets anew: there the last one counts.
ANEW = frozenset({"--base", "--format", "--output", "--output-format"})

# Which of several values to give.
_OF_SEVERAL = {
    "--args-file": ". Of a command and its server's log give the log: it is what the server took"
}


class Verb(click.Command):
    """A command that takes an option with one value once: of two, neither counts in silence."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line.

        Raises:
            click.UsageError: an option with one value is given more than once.
        """
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option, times in Counter(given).items():
                if times > 1 and isinstance(option, click.Option) and not _repeats(option):
                    more = _OF_SEVERAL.get(option.opts[0], "")
                    raise click.UsageError(
                        f"{option.opts[0]} is given more than once; it has one value{more}",
                        ctx,
                    )
        return super().parse_args(ctx, args)


class Place(click.Path):
    """A file or folder; an empty word, as an unset variable leaves it, is not the current one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the path."""
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


class PositiveNumber(click.FloatRange):
    """A finite number above zero; ``nan`` is in no range and yet passes for one."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


class Written(click.FloatRange):
    """A number as people write it: ``141GB`` as 141; where ``whole``, ``9.0`` as 90."""

    def __init__(self, unit: str = "", whole: bool = False) -> None:
        super().__init__()
        self.name = "integer" if whole else "float"
        self._unit = unit
        self._whole = whole

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number; a whole one is an int."""
        text = str(value).strip()
        if self._unit and text.upper().endswith(self._unit):
            text = text[: -len(self._unit)].rstrip()
        if not self._whole:
            try:
                return float(text)
            except ValueError:
                self.fail(f"{value!r} is not a valid float.", param, ctx)
        if not re.fullmatch(r"[+-]?\d+|\d{1,2}\.\d", text):
            self.fail(f"{value!r} is not a valid integer.", param, ctx)
        return int(text.replace(".", ""))


def _repeats(option: click.Option) -> bool:
    return option.multiple or option.is_flag or option.count or bool(ANEW & set(option.opts))


class Verbs(Verb, click.Group):
    """A group of verbs."""

    command_class = Verb


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
