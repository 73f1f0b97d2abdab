"""Writes rewritten files: all or none, each in one move, with the mode that it had."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from specmap.atomic import replacing


def write_files(root: Path, texts: Mapping[str, str]) -> None:
    """Write files below ``root``: first all beside their places, then all moved there.

    Raises:
        OutputError: a file could not be written; no file was changed then.
    """
    files = sorted(texts)
    advice = "make the tree writable, or use --patch-dir"
    with replacing([root / file for file in files], advice=advice) as places:
        for file, place in zip(files, places, strict=True):
            place.write_bytes(texts[file].encode())
