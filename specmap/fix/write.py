"""Writes rewritten files: all or none, each in one move, with the mode that it had."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from specmap.atomic import replacing
from specmap.codemap.source import encoding_of
from specmap.errors import OutputError


def write_files(root: Path, texts: Mapping[str, str]) -> None:
    """Write files below ``root``: first all beside their places, then all moved there.

    Raises:
        OutputError: a file could not be written, is read-only, or is a link out of the tree; no
            file was changed then.
    """
    files = sorted(texts)
    for file in files:
        _check(root, file)
    advice = "make the tree writable, or use --patch-dir"
    with replacing([root / file for file in files], advice=advice) as places:
        for file, place in zip(files, places, strict=True):
            old = root / file
            before = old.read_bytes() if old.is_file() else b""
            place.write_bytes(encoded(texts[file], before))


def write_patches(folder: Path, patches: Mapping[str, bytes]) -> None:
    """Write all patches of a run into a folder, or none; those of a run before are replaced.

    Raises:
        OutputError: a file could not be written, or the folder has a patch that ``git am``
            would take for one of this run; no file was changed then.
    """
    others = sorted(p.name for p in folder.glob("*.patch") if p.name not in patches)
    if others and patches:
        raise OutputError(
            f"cannot write patches to {str(folder)!r}: it has {others[0]!r}, which is none of "
            "this run; name an empty folder"
        )
    names = sorted(patches)
    with replacing([folder / name for name in names], make_folders=True) as places:
        for name, place in zip(names, places, strict=True):
            place.write_bytes(patches[name])


def _check(root: Path, file: str) -> None:
    """Refuse a file that somebody protects, and one that also belongs elsewhere."""
    place = root / file
    if not place.resolve().is_relative_to(root.resolve()):
        raise OutputError(
            f"cannot write {str(place)!r}: it is a link out of the tree; "
            "put a copy in its place, or use --patch-dir"
        )
    if place.is_file() and not place.stat().st_mode & 0o222:
        raise OutputError(
            f"cannot write {str(place)!r}: it is read-only; "
            "make it writable (chmod u+w), or use --patch-dir"
        )


def encoded(text: str, before: bytes) -> bytes:
    """Return a rewritten text in the encoding of the file, and with its BOM."""
    return text.encode(encoding_of(before))
