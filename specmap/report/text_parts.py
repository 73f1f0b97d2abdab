"""Building blocks of the text report: colours, tables, conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

from rich.box import ROUNDED
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from specmap.codemap.condition import Condition, render
from specmap.codemap.graph import Guard, Phase
from specmap.report.conditions import terms_in
from specmap.report.options import RenderOptions
from specmap.report.wording import guard_text, verdict_word

# A column this wide or narrower is never wrapped; two of them fit beside a readable third.
_NARROW = 46
# A column of sentences that is narrower is not read but spelt out.
_READABLE = 30
_RULES = 3

STYLES = {
    "GRAPH": "bold green",
    "PIECEWISE": "bold cyan",
    "EAGER": "bold red",
    "NOT_RUN": "dim",
    "UNKNOWN": "bold magenta",
    "depends": "bold yellow",
    "constant": "red",
    "dropped": "red",
    "explicit": "red",
    "implicit": "yellow",
    "none": "dim",
    "removable": "bold yellow",
    "unresolved": "magenta",
}


def console(options: RenderOptions) -> tuple[Console, StringIO]:
    """Return a console that writes into memory, whatever the terminal is."""
    sink = StringIO()
    made = Console(
        file=sink,
        width=max(options.width, 80),
        force_terminal=options.color,
        color_system="standard" if options.color else None,
        no_color=not options.color,
        legacy_windows=False,
        force_jupyter=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    return made, sink


def word(text: str) -> Text:
    """Return a word in its colour; a word that has none stays plain."""
    return Text(text, style=STYLES.get(text, ""))


def verdict(phase: Phase) -> Text:
    """Return the verdict of a phase in its colour."""
    return word(verdict_word(phase))


def heading(text: str, note: str = "") -> Text:
    """Return a section heading."""
    return Text.assemble((text, "bold"), (f"  {note}" if note else "", "dim"))


def indent(block: RenderableType, by: int = 2) -> Padding:
    """Move a block to the right."""
    return Padding(block, (0, 0, 0, by))


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str | Text]], wide: str, *more: str
) -> Table:
    """Return a ruled table; the cells of the columns ``wide`` and ``more`` wrap, others last."""
    made = Table(box=ROUNDED, border_style="dim", header_style="bold")
    filled = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    for index, column in enumerate(columns):
        longest = max((measure(row[index]) for row in filled), default=0)
        made.add_column(
            column,
            overflow="fold",
            no_wrap=column not in (wide, *more) and longest <= _NARROW,
            justify="right" if column == "line" else "left",
        )
    for row in filled:
        made.add_row(*row)
    return made


def spread(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    wide: str,
    *more: str,
    width: int,
) -> Iterator[RenderableType]:
    """Yield a table; where its column ``wide`` has no room to be read, its cells stand below it.

    ``width`` is that of the page, in characters. A cell below is named by the row's first.
    """
    at = columns.index(wide)
    filled = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [
        max(len(name), *(measure(row[index]) for row in filled)) if filled else len(name)
        for index, name in enumerate(columns)
    ]
    left = width - sum(w + _RULES for w in widths) - 1 + widths[at]
    if left >= min(widths[at], _READABLE):
        yield table(columns, filled, wide, *more)
        return
    yield table(
        [name for name in columns if name != wide],
        [[*row[:at], *row[at + 1 :]] for row in filled],
        *(more or columns[-1:]),
    )
    for row in filled:
        if row[at].plain:
            said = "; ".join(row[at].plain.splitlines())
            yield indent(Text.assemble((row[0].plain, "bold"), f", {wide}: {said}"))


def measure(cell: Text) -> int:
    """Return the width of a cell's longest line."""
    return max((len(line) for line in cell.plain.splitlines()), default=0)


def grid(rows: Iterable[Sequence[RenderableType]]) -> Table:
    """Return unruled columns; all but the first are dim and give way last."""
    made = Table.grid(padding=(0, 2), pad_edge=False)
    for index, row in enumerate(rows):
        if index == 0:
            for column in range(len(row)):
                made.add_column(overflow="fold", style="dim" if column else "")
        made.add_row(*row)
    return made


def short_condition(term: Condition, limit: int) -> str:
    """Return a condition on one line, or say how many terms are listed elsewhere."""
    text = render(term) if terms_in(term) < limit else ""
    return text if 0 < len(text) <= limit else f"{terms_in(term)} terms, listed below"


def guards(found: Sequence[Guard]) -> str:
    """Return guards outermost first, each with its line."""
    return "\n".join(f"line {guard.span.line}: {guard_text(guard)}" for guard in found)
