"""Writes files beside their places and moves them there, so that none is ever half there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from specmap.errors import OutputError


@contextmanager
def replacing(
    paths: Sequence[Path], *, advice: str = "name another place", make_folders: bool = False
) -> Iterator[tuple[Path, ...]]:
    """Yield where to write each file; all are moved to their places at the end, or none.

    What a link points to is replaced, not the link, and keeps its mode. A device or a pipe is
    written to as it is. ``make_folders`` makes the folders above that are missing. ``advice``
    ends the message of an error.

    Raises:
        OutputError: a file could not be written; no place was changed then.
    """
    fresh: dict[Path, Path] = {}
    try:
        for path in paths:
            fresh[path] = _beside(path, make_folders)
        yield tuple(fresh[path] for path in paths)
        moves = [(new, _place(path)) for path, new in fresh.items() if new != path]
        for new, place in moves:
            if place.exists():
                new.chmod(place.stat().st_mode & 0o7777)
        with _put_back([place for _, place in moves]) as moved:
            for new, place in moves:
                moved.append(place)
                new.replace(place)
    except OSError as error:
        named = next((p for p, f in fresh.items() if str(f) == error.filename), paths[0])
        reason = error.strerror or str(error)
        raise OutputError(f"cannot write {str(named)!r}: {reason}; {advice}") from None
    finally:
        for path, new in fresh.items():
            if new != path:
                with suppress(OSError):  # a read-only file system refuses even what is not there
                    new.unlink()


@contextmanager
def _put_back(places: Sequence[Path]) -> Iterator[list[Path]]:
    """Put back what stood at the places that the body names, if it does not come to its end."""
    several = len(places) > 1  # one move is made or not
    stood = [place for place in places if several and place.exists()]
    kept = {place: place.with_name(f".{place.name}.{os.getpid()}.old") for place in stood}
    moved: list[Path] = []
    try:
        for place, old in kept.items():
            _keep(place, old)
        yield moved
    except BaseException:
        for place in moved if several else ():
            if place in kept:
                kept[place].replace(place)
            else:
                place.unlink(missing_ok=True)
        raise
    finally:
        for old in kept.values():
            old.unlink(missing_ok=True)


def _keep(place: Path, old: Path) -> None:
    """Give a file a second name, or a copy where the file system has none."""
    try:
        old.hardlink_to(place)
    except OSError:
        shutil.copy2(place, old)


def _place(path: Path) -> Path:
    try:
        return path.resolve() if path.is_symlink() else path
    except RuntimeError:
        raise OutputError(f"cannot write {str(path)!r}: the link leads to itself") from None


def _beside(path: Path, make_folders: bool) -> Path:
    """Return where the new file stands until it is whole; the path of a device or pipe itself."""
    if path.is_dir():
        raise OutputError(f"cannot write {str(path)!r}: it is a folder; name a file")
    if path.exists() and not path.is_file():
        return path
    place = _place(path)
    if make_folders:
        place.parent.mkdir(parents=True, exist_ok=True)
    return place.with_name(f".{place.name}.{os.getpid()}.new")
