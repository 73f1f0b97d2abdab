"""Writes rewritten files: all or none, each in one move, with the mode that it had."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from specmap.atomic import replacing
from specmap.codemap.source import encoding_of


def write_files(root: Path, texts: Mapping[str, str]) -> None:
    """Write files below ``root``: first all beside their places, then all moved there.

    Raises:
        OutputError: a file could not be written; no file was changed then.
    """
    files = sorted(texts)
    advice = "make the tree writable, or use --patch-dir"
    with replacing([root / file for file in files], advice=advice) as places:
        for file, place in zip(files, places, strict=True):
            old = root / file
            before = old.read_bytes() if old.is_file() else b""
            place.write_bytes(encoded(texts[file], before))


def encoded(text: str, before: bytes) -> bytes:
    """Return a rewritten text in the encoding of the file, and with its BOM."""
    return text.encode(encoding_of(before))
