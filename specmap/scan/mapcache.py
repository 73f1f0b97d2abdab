"""The user's cache of finished maps, by the content of the tree and of the scanner itself."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from specmap.codemap import packed
from specmap.codemap.graph import CodeMap
from specmap.errors import RulesError
from specmap.scan import reuse
from specmap.scan.checkout import PACKAGE, Checkout
from specmap.scan.index import Tree
from specmap.scan.store import cache_errors
from specmap.scan.vocabulary import rules_folder

KEPT = 40
KEPT_READS = 8
_SUFFIX = ".map"
_READS = ".reads"
_TRIED = 2
_SOURCES = ("codemap", "scan")


@dataclass(frozen=True, slots=True)
class MapKey:
    """What decides what a map holds: the tree's content and names, and how it is read.

    ``reader`` is the same for all trees that one scanner reads for one platform.
    """

    reader: str
    whole: str
    tree: Tree | None


def map_key(checkout: Checkout, platform: str, vocabulary: Path | None) -> MapKey:
    """Return a hash over everything that decides what the map of a checkout holds.

    A fetched tree is known by the manifest that was just compared with it; the files of any
    other tree are read.

    Raises:
        RulesError: the vocabulary cannot be read.
    """
    reader = reader_digest(platform, vocabulary)
    tree = None if checkout.content else Tree(checkout.root, PACKAGE)
    content = tree.digest if tree else checkout.content
    named = (reader, checkout.label, checkout.release, checkout.commit, content)
    return MapKey(reader, hashlib.sha256(repr(named).encode()).hexdigest(), tree)


def reader_digest(platform: str, vocabulary: Path | None) -> str:
    """Return a hash of the scanner, its vocabulary and the Python that runs it.

    Raises:
        RulesError: the vocabulary cannot be read.
    """
    reader = hashlib.sha256(repr((platform, sys.version_info[:2])).encode())
    for part in (_words(vocabulary), _own_sources()):
        reader.update(hashlib.sha256(part).digest())
    return reader.hexdigest()


Scan = Callable[[Callable[[Tree], None]], CodeMap]
"""Scans, and hands on the tree that it read."""


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


def cached_map(folder: Path, key: MapKey, checkout: Checkout, scan: Scan) -> CodeMap:
    """Return the map kept in ``folder`` under ``key``; without one, scan and keep it.

    A map of a tree that differs in nothing that matters is renewed instead. ``scan`` is
    called with what is to be told the tree when it was read. An entry that cannot be read is
    removed and scanned anew. The newest :data:`KEPT` entries stay.

    Raises:
        CacheError: the folder cannot be written; found out before the scan, not after it.
    """
    entry = folder / (key.whole + _SUFFIX)
    with cache_errors(folder.parent):
        found = _read(entry) or _renewed(folder, key, checkout)
    if found is not None:
        return found
    with cache_errors(folder.parent):
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".new-")
        os.close(handle)
    fresh, reads = Path(name), Path(f"{name}{_READS}")

    def keep(tree: Tree) -> None:
        with cache_errors(folder.parent):
            reuse.keep(reads, tree)

    try:
        codemap = scan(keep)
        with cache_errors(folder.parent):
            fresh.write_bytes(zlib.compress(packed.dumps(codemap).encode()))
            fresh.replace(entry)
            if reads.exists():
                reads.replace(folder / f"{key.whole}.{key.reader[:16]}{_READS}")
    finally:
        fresh.unlink(missing_ok=True)
        reads.unlink(missing_ok=True)
    _prune(folder, _SUFFIX, KEPT)
    _prune(folder, _READS, KEPT_READS)
    return codemap


def _renewed(folder: Path, key: MapKey, checkout: Checkout) -> CodeMap | None:
    """Return a kept map made anew for this tree, from the kept one that differs least."""
    tree = key.tree or Tree(checkout.root, PACKAGE)
    near: list[tuple[int, str, Path, reuse.Reads, list[str]]] = []
    for path in folder.glob(f"*.{key.reader[:16]}{_READS}"):
        reads = reuse.load(path)
        changed = reuse.changed_files(reads, tree.hashes) if reads else None
        if reads is not None and changed is not None:
            near.append((len(changed), path.name, path, reads, changed))
    for _, name, path, reads, changed in sorted(near, key=lambda n: n[:2])[:_TRIED]:
        if reuse.may_be_renewed(path, reads, changed, tree):
            kept = _read(folder / (name.partition(".")[0] + _SUFFIX))
            found = kept and reuse.renewed(kept, path, reads, changed, tree, checkout)
            if found:
                return found
    return None


def _read(entry: Path) -> CodeMap | None:
    try:
        return packed.loads(zlib.decompress(entry.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, zlib.error):
        entry.unlink(missing_ok=True)
        return None


def _prune(folder: Path, suffix: str, kept: int) -> None:
    """Remove all but the newest entries; another scan may be doing the same."""
    aged = []
    for entry in folder.glob(f"*{suffix}"):
        with contextlib.suppress(OSError):
            aged.append((entry.stat().st_mtime_ns, entry))
    for _, entry in sorted(aged, reverse=True)[kept:]:
        with contextlib.suppress(OSError):
            entry.unlink()
