"""Which lines of a file hold code: two files whose code is the same differ only in the others."""

from __future__ import annotations

import hashlib
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO

from specmap.scan.parse import utf8_lines

_OUTSIDE = frozenset(
    {
        tokenize.ENCODING,
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The lines with code, by number, and a hash of what they say without comments."""

    lines: tuple[int, ...]
    digest: str


def layout_of(data: bytes) -> Layout | None:
    """Return the layout of a file; ``None`` when it cannot be read as Python.

    Blank lines, comments, and white space at the end of a line are left out.
    """
    held: set[int] = set()
    comments: dict[int, int] = {}
    try:
        for token in tokenize.tokenize(BytesIO(data).readline):
            if token.type == tokenize.COMMENT:
                comments[token.start[0]] = token.start[1]
            elif token.type not in _OUTSIDE:
                held.update(range(token.start[0], token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    text = [line.decode("utf-8", "replace") for line in utf8_lines(data)]
    total = hashlib.sha256()
    lines = tuple(sorted(held))
    for line in lines:
        code = text[line - 1][: comments.get(line)].rstrip()
        total.update(code.encode() + b"\n")
    return Layout(lines, total.hexdigest())


def moved_lines(old: bytes, new: bytes) -> Mapping[int, int] | None:
    """Return the new number of every line with code; ``None`` when the code differs."""
    before, after = layout_of(old), layout_of(new)
    if before is None or after is None or before.digest != after.digest:
        return None
    return dict(zip(before.lines, after.lines, strict=True))
