"""A comparison as Markdown for a pull-request comment: the summary open, the rest folded."""

from __future__ import annotations

from collections.abc import Iterator

from specmap.compare.model import MapDiff
from specmap.report.diff import DiffOptions
from specmap.report.diff_text import sections

_OPEN = ("workers", "phases", "fallbacks that became errors")


def render(found: MapDiff, options: DiffOptions) -> str:
    """Return the comparison; lists that matter less are folded."""
    lines = [f"### specmap: {_code(found.old)} → {_code(found.new)}", ""]
    if found.empty:
        lines += ["No difference in workers, phases, decisions, synchronisations or names."]
    for title, said in sections(found, options.everything):
        lines += _section(title, said)
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, said: list[str]) -> Iterator[str]:
    block = ["```diff", *(_line(line) for line in said), "```"]
    if title in _OPEN:
        yield from [f"**{title.capitalize()}**", "", *block, ""]
        return
    summary = f"<summary>{title.capitalize()} ({len(said)} lines)</summary>"
    yield from ["<details>", summary, "", *block, "", "</details>", ""]


def _line(line: str) -> str:
    """Put the mark first, where GitHub's diff colours look for it."""
    bare = line.lstrip()
    indent = " " * (len(line) - len(bare))
    return f"{bare[0]} {indent}{bare[2:]}" if bare[:2] in ("+ ", "- ", "! ", "~ ") else f"  {line}"


def _code(text: str) -> str:
    return f"`{text}`"
