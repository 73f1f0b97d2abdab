"""The user's cache of finished maps, by the content of the tree and of the scanner itself."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

from specmap.codemap import packed
from specmap.codemap.graph import CodeMap
from specmap.errors import RulesError
from specmap.scan.checkout import PACKAGE, Checkout
from specmap.scan.index import Tree
from specmap.scan.store import cache_errors
from specmap.scan.vocabulary import rules_folder

KEPT = 40
_SUFFIX = ".map"
_SOURCES = ("codemap", "scan")


def map_key(checkout: Checkout, platform: str, vocabulary: Path | None) -> str:
    """Return a hash over everything that decides what the map of a checkout holds.

    A fetched tree is known by the manifest that was just compared with it; the files of any
    other tree are read.

    Raises:
        RulesError: the vocabulary cannot be read.
    """
    named = (checkout.label, checkout.release, checkout.commit, platform, sys.version_info[:2])
    total = hashlib.sha256(repr(named).encode())
    content = checkout.content or Tree(checkout.root, PACKAGE).digest
    for part in (content.encode(), _words(vocabulary), _own_sources()):
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


def _words(vocabulary: Path | None) -> bytes:
    path = vocabulary or rules_folder() / "vocabulary.toml"
    try:
        return path.read_bytes()
    except OSError as error:
        raise RulesError(f"cannot read {path.name}: {error.strerror or error}") from None


def _own_sources() -> bytes:
    package = Path(__file__).parents[1]
    files = sorted(file for folder in _SOURCES for file in (package / folder).glob("*.py"))
    return b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)


def cached_map(folder: Path, key: str, scan: Callable[[], CodeMap]) -> CodeMap:
    """Return the map kept in ``folder`` under ``key``; without one, scan and keep it.

    An entry that cannot be read is removed and scanned anew. The newest :data:`KEPT`
    entries stay.

    Raises:
        CacheError: the folder cannot be written; found out before the scan, not after it.
    """
    entry = folder / (key + _SUFFIX)
    with cache_errors(folder.parent):
        found = _read(entry)
    if found is not None:
        return found
    with cache_errors(folder.parent):
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".new-")
        os.close(handle)
    fresh = Path(name)
    try:
        codemap = scan()
        with cache_errors(folder.parent):
            fresh.write_bytes(zlib.compress(packed.dumps(codemap).encode()))
            fresh.replace(entry)
    finally:
        fresh.unlink(missing_ok=True)
    _prune(folder)
    return codemap


def _read(entry: Path) -> CodeMap | None:
    try:
        return packed.loads(zlib.decompress(entry.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, zlib.error):
        entry.unlink(missing_ok=True)
        return None


def _prune(folder: Path) -> None:
    """Remove all but the newest entries; another scan may be doing the same."""
    aged = []
    for entry in folder.iterdir():
        with contextlib.suppress(OSError):
            aged.append((entry.stat().st_mtime_ns, entry))
    for _, entry in sorted(aged, reverse=True)[KEPT:]:
        with contextlib.suppress(OSError):
            entry.unlink()
