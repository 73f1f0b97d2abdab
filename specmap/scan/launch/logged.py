"""What a server's log shows: the settings that it started with, and its decode batches."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from specmap.codemap.outcome import LoggedBatch
from specmap.scan.launch.shelllexer import balanced
from specmap.scan.vocabulary import ArgumentNames

_WORDS = ("logged_batch", "logged_running", "logged_graph", "logged_rank")
# So many lines of one width, the largest, were broken by a terminal.
_BROKEN = 2


@dataclass(frozen=True, slots=True)
class Start:
    """One settings object in a log: its source, its line, and the batches up to the next one.

    ``tree`` is None where it cannot be read; ``wrong`` then says why.
    """

    tree: ast.Module | None
    line: int
    batches: tuple[LoggedBatch, ...]
    wrong: str = ""


def parsed(text: str) -> ast.Module | None:
    """Return a text as Python, None where it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def starts(text: str, names: ArgumentNames) -> tuple[Start, ...]:
    """Return the ``Name(field=value, ...)`` of a log, in order.

    Where one cannot be read as it stands, lines that a terminal or ``fold`` broke at one width
    are joined.
    """
    found = tuple(_starts(text, names))
    lengths = list(map(len, text.split("\n")))
    width = max(lengths)
    if (found and not _wrong(found)) or lengths.count(width) < _BROKEN or not width:
        return found
    joined = re.sub(rf"^(.{{{width}}})\n", r"\1", text, flags=re.M)
    again = tuple(_starts(joined, names, width))
    return again if _wrong(again) < _wrong(found) or not found else found


def _wrong(found: Sequence[Start]) -> int:
    return sum(start.tree is None for start in found)


def _starts(text: str, names: ArgumentNames, width: int | None = None) -> Iterator[Start]:
    pattern = rf"\b({'|'.join(sorted(map(re.escape, names.calls)))})\(\w+="
    matches = list(re.finditer(pattern, text))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    for match, until in zip(matches, ends, strict=False):
        end = balanced(text[:until], match.end(1), "(", ")")
        tree = parsed(text[match.start() : end]) if end else None
        line = _line(text[: match.start()], width)
        wrong = "" if tree else f"{match[1]}( in line {line} "
        if not end:
            wrong += "is not closed: the line is cut; take it whole from the server's log"
        elif tree is None:
            wrong += "cannot be read: it is broken over several lines, or not as it was printed"
        yield Start(tree, line, _batches(text[match.start() : until], names), wrong)


def _line(before: str, width: int | None) -> int:
    """Return the line in which a text ends, counted from 1; ``width``: as it was before joining."""
    lines = before.split("\n")
    if width is None:
        return len(lines)
    return sum(max(1, ceil(len(line) / width)) for line in lines[:-1]) + len(lines[-1]) // width + 1


def _batches(text: str, names: ArgumentNames) -> tuple[LoggedBatch, ...]:
    """Count the decode batches by running requests, the smallest first."""
    words = {name: "|".join(map(re.escape, getattr(names, name))) for name in _WORDS}
    pattern = (
        rf"(?:{words['logged_batch']})\b.*?(?:{words['logged_running']}):\s*(\d+)\b"
        rf"(?:.*?\b(?:{words['logged_graph']}):\s*(True|False)\b)?"
    )
    rank = re.compile(rf"\b(?:{words['logged_rank']})\d+\b")
    counts: dict[int, list[int]] = {}
    ranks = False
    for match in re.finditer(pattern, text):
        head = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        ranks = ranks or rank.search(head) is not None
        count = counts.setdefault(int(match[1]), [0, 0])
        if match[2]:
            count[match[2] == "False"] += 1
    return tuple(
        LoggedBatch(size, graph, eager, ranks)
        for size, (graph, eager) in sorted(counts.items())
        if size
    )
