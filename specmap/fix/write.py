"""Writes rewritten files: all or none, each in one move, with the mode that it had."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from specmap.errors import OutputError


def write_files(root: Path, texts: Mapping[str, str]) -> None:
    """Write files below ``root``: first all beside their places, then all moved there.

    Raises:
        OutputError: a file could not be written; no file was changed then.
    """
    fresh: list[tuple[Path, Path]] = []
    try:
        for file, text in sorted(texts.items()):
            place = (root / file).resolve()
            beside = place.with_name(f".{place.name}.{os.getpid()}.new")
            fresh.append((beside, place))
            beside.write_bytes(text.encode())
            if place.exists():
                beside.chmod(place.stat().st_mode & 0o7777)
        for beside, place in fresh:
            beside.replace(place)
    except OSError as error:
        named = error.filename or root
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot write {str(named)!r}: {reason}; make the tree writable, or use --patch-dir"
        ) from None
    finally:
        for beside, _ in fresh:
            beside.unlink(missing_ok=True)
