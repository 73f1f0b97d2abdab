"""The user's cache of fetched trees.

An entry is a folder ``KIND/NAME`` with the tree and a manifest of every file's size and
time. It is built beside its place and moved there in one step, under a lock, so that two
scans never see half of one. An entry that does not match its manifest is built anew; the
wheel it came from is kept with its hash, so that this needs no network.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from specmap.errors import CacheError, TargetError
from specmap.scan import fetch, gitrepo

_MANIFEST = "manifest.json"
_TREE = "tree"

Files = Iterable[tuple[str, bytes]]


def release_tree(version: str, cache_dir: Path, index: fetch.Index) -> Path:
    """Return the folder that holds the sources of a release, fetched if need be.

    Raises:
        TargetError: the wheel cannot be downloaded or is no good.
        CacheError: the cache folder cannot be used.
    """
    kind = cache_dir / "releases"
    with cache_errors(cache_dir):
        return _entry(kind, version, lambda: _release_files(version, cache_dir / "wheels", index))


def commit_tree(repository: Path, commit: str, cache_dir: Path) -> Path:
    """Return the folder that holds the package as it was at a commit.

    Raises:
        TargetError: the commit holds no SGLang package.
        CacheError: the cache folder cannot be used.
    """
    with cache_errors(cache_dir):
        return _entry(
            cache_dir / "commits", commit, lambda: gitrepo.package_files(repository, commit)
        )


def content_of(root: Path) -> str:
    """Return a hash that changes with the files of a tree of this cache.

    It is the hash of the manifest, which was compared with the files when ``root`` was
    handed out.

    Raises:
        CacheError: the manifest is gone.
    """
    manifest = root.parent / _MANIFEST
    with cache_errors(root.parents[2]):
        return _sha256(manifest)


@contextlib.contextmanager
def cache_errors(cache_dir: Path) -> Iterator[None]:
    """Turn an ``OSError`` into one line that names the cache folder.

    Raises:
        CacheError: the body met an ``OSError``.
    """
    try:
        yield
    except OSError as error:
        raise CacheError(
            f"the cache folder {str(cache_dir)!r} cannot be used: {error.strerror or error}; "
            "name another in SPECMAP_CACHE_DIR, or use --no-cache"
        ) from error


def _entry(kind: Path, name: str, files: Callable[[], Files]) -> Path:
    entry = kind / name
    if _intact(entry):
        return entry / _TREE
    kind.mkdir(parents=True, exist_ok=True)
    with _lock(kind / f".{name}.lock"):
        if not _intact(entry):
            _build(entry, files())
    return entry / _TREE


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(entry: Path, files: Files) -> None:
    prefix = f".{entry.name}.new-"
    _clear(entry.parent, prefix)
    fresh = Path(tempfile.mkdtemp(prefix=prefix, dir=entry.parent))
    try:
        (fresh / _TREE).mkdir()
        for name, content in files:
            if _wanted(name):
                path = fresh / _TREE / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        (fresh / _MANIFEST).write_text(json.dumps(_listing(fresh / _TREE), indent=0), "utf-8")
        _remove(entry)
        fresh.rename(entry)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _clear(folder: Path, prefix: str) -> None:
    """Remove what a killed scan left; the caller holds the lock."""
    for leftover in folder.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _wanted(name: str) -> bool:
    path = PurePosixPath(name)
    outside = path.is_absolute() or ".." in path.parts or "\\" in name
    if outside or not path.parts or ":" in path.parts[0]:
        raise TargetError(f"unsafe path in the archive: {name!r}; nothing was unpacked")
    source = path.suffix == ".py" and path.parts[0] == "sglang"
    return source or (path.name == "METADATA" and path.parent.name.endswith(".dist-info"))


def _listing(folder: Path) -> dict[str, list[int]]:
    """Return size in bytes and modification time in ns of every file below ``folder``."""
    found: dict[str, list[int]] = {}
    pending = [(os.fspath(folder), "")]
    while pending:
        place, prefix = pending.pop()
        with os.scandir(place) as items:
            for item in items:
                if item.is_dir(follow_symlinks=False):
                    if item.name != "__pycache__":
                        pending.append((item.path, f"{prefix}{item.name}/"))
                else:
                    status = item.stat(follow_symlinks=False)
                    found[prefix + item.name] = [status.st_size, status.st_mtime_ns]
    return dict(sorted(found.items()))


def _intact(entry: Path) -> bool:
    try:
        recorded = json.loads((entry / _MANIFEST).read_bytes())
        return bool(recorded) and recorded == _listing(entry / _TREE)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False


def _release_files(version: str, wheels: Path, index: fetch.Index) -> Iterator[tuple[str, bytes]]:
    wheel = _wheel(version, wheels, index)
    try:
        yield from _unpacked(wheel)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        _remove(wheel)
        raise TargetError(
            f"sglang=={version}: the wheel is not a readable zip file ({error}); "
            "it was removed, run the scan again"
        ) from None


def _unpacked(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if not info.is_dir() and _wanted(info.filename):
                yield info.filename, archive.read(info)


def _wheel(version: str, wheels: Path, index: fetch.Index) -> Path:
    """Return the cached wheel if its bytes still have the recorded hash, else download it."""
    wheel, record = wheels / f"sglang-{version}.whl", wheels / f"sglang-{version}.sha256"
    if (
        wheel.is_file()
        and record.is_file()
        and record.read_text("ascii", "replace") == _sha256(wheel)
    ):
        return wheel
    wheels.mkdir(parents=True, exist_ok=True)
    prefix = f".download-{version}-"
    _clear(wheels, prefix)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=wheels) as folder:
        fetched = index.download(version, Path(folder))
        digest = Path(folder) / "sha256"
        digest.write_text(_sha256(fetched), "ascii")
        fetched.replace(wheel)
        digest.replace(record)
    return wheel


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
