"""Where something stands in the source: files, spans and symbol ids."""

from __future__ import annotations

import ast
import tokenize
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A range of whole lines in one file.

    ``file`` is POSIX and relative to the folder that holds the ``sglang`` package;
    lines count from 1 and ``end_line`` is included.
    """

    file: str
    line: int
    end_line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that the map was built from, with the hash of its bytes."""

    file: str
    sha256: str


def symbol_id(file: str, qualname: str) -> str:
    """Return the id of a class or function: ``path/to/file.py::Qual.name``."""
    return f"{file}::{qualname}"


def qualname_of(symbol: str) -> str:
    """Return the dotted name inside its module, without the file."""
    return symbol.rpartition("::")[2]


def file_of(symbol: str) -> str:
    """Return the file part of a symbol id."""
    return symbol.rpartition("::")[0]


def encoding_of(data: bytes) -> str:
    """Return the encoding of a Python file (PEP 263): UTF-8 where it declares none, or nonsense."""
    try:
        return tokenize.detect_encoding(BytesIO(data).readline)[0]
    except SyntaxError:
        return "utf-8"


def text_of(data: bytes) -> str:
    """Return a Python file as text: decoded as it declares, without a BOM, lines end in ``\\n``."""
    text = data.decode(encoding_of(data), "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines_of(text: str) -> list[str]:
    """Split into lines as Python counts them: a form feed ends none."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


@lru_cache(maxsize=1 << 14)
def canonical(text: str) -> str:
    """Return source text as if one formatter had written it; other text on one line."""
    try:
        return ast.unparse(ast.parse(text.strip()))
    except (SyntaxError, ValueError, RecursionError):
        return " ".join(text.split())
