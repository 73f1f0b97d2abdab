"""Composes the steps: target -> checkout -> map -> output. No logic of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from specmap.atomic import replacing
from specmap.codemap.graph import CodeMap
from specmap.codemap.verdict import PhaseName
from specmap.errors import OutputError, SpecmapError, TargetError
from specmap.nearest import meant
from specmap.report import RENDERERS, RenderOptions

if TYPE_CHECKING:
    from specmap.scan.checkout import Checkout
    from specmap.scan.index import Tree

Progress = Callable[[str, int, int], None]
"""Told the step, how much of it is done, and how much there is (0: not known)."""

PLATFORMS = ("cuda", "hip", "npu", "xpu", "musa", "cpu")
FORMATS = tuple(RENDERERS)
_NEED_DOT = ("svg", "png")
_WITHOUT_DOT = ("dot", "mermaid")


@dataclass(frozen=True, slots=True)
class Written:
    """Files that were written, and whether a drawing was asked for that needs ``dot``."""

    paths: tuple[Path, ...]
    dot_missing: bool


def default_cache_dir() -> Path:
    """Return ``SPECMAP_CACHE_DIR``, or else the place of the user's caches."""
    named = os.environ.get("SPECMAP_CACHE_DIR")
    if named:
        return Path(named).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("specmap", appauthor=False)


def scan_tree(
    target: str | Path | None = None,
    *,
    platform: str = "cuda",
    cwd: Path | None = None,
    cache_dir: Path | None = None,
    use_cache: bool = True,
    progress: Progress | None = None,
    vocabulary: Path | None = None,
) -> CodeMap:
    """Scan a SGLang tree and return its code map, from the cache if nothing changed.

    ``target`` is a folder of a tree, ``installed``, ``sglang==VERSION`` or ``git:REV``;
    without one, the installed SGLang, else the newest release. Arms that ``platform``
    never takes are cut. With ``use_cache=False`` nothing is read from or left in a cache.
    ``vocabulary`` names another file of SGLang's names.

    Raises:
        TargetError: there is no such tree, or it cannot be fetched.
        CacheError: the cache folder cannot be used.
        RulesError: the vocabulary cannot be read.
    """
    with resolved(
        target, cwd=cwd, cache_dir=cache_dir, use_cache=use_cache, progress=progress
    ) as tree:
        return scan_resolved(tree, platform=platform, progress=progress, vocabulary=vocabulary)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A tree on disk, and the cache for its map; ``None`` keeps no map."""

    checkout: Checkout
    cache: Path | None


@contextlib.contextmanager
def resolved(
    target: str | Path | None = None,
    *,
    cwd: Path | None = None,
    cache_dir: Path | None = None,
    use_cache: bool = True,
    progress: Progress | None = None,
) -> Iterator[Resolved]:
    """Find or fetch the tree that ``target`` names; without a cache it is gone afterwards.

    Raises:
        TargetError: there is no such tree, or it cannot be fetched.
        CacheError: the cache folder cannot be used.
    """
    from specmap.scan.checkout import resolve_target

    if progress is not None:
        progress("find the tree", 0, 0)
    with _cache_folder(cache_dir, use_cache) as folder:
        checkout = resolve_target(
            None if target is None else str(target), cwd=cwd or Path.cwd(), cache_dir=folder
        )
        yield Resolved(checkout, folder / "scan" if use_cache else None)


def scan_resolved(
    tree: Resolved,
    *,
    platform: str = "cuda",
    progress: Progress | None = None,
    vocabulary: Path | None = None,
) -> CodeMap:
    """Return the code map of a tree that was found, from the cache if nothing changed.

    Raises:
        CacheError: the cache folder cannot be used.
        RulesError: the vocabulary cannot be read.
        SpecmapError: there is no such platform.
    """
    if platform not in PLATFORMS:
        raise SpecmapError(f"no platform {platform!r}; there are {', '.join(PLATFORMS)}")
    from specmap.scan.mapcache import cached_map, map_key

    def scanned(done: Callable[[Tree], None] | None = None) -> CodeMap:
        from specmap.scan.build import scan

        return scan(
            tree.checkout, platform=platform, progress=progress, vocabulary=vocabulary, done=done
        )

    if tree.cache is None:
        return scanned()
    key = map_key(tree.checkout, platform, vocabulary)
    return cached_map(tree.cache, key, tree.checkout, scanned)


@contextlib.contextmanager
def _cache_folder(cache_dir: Path | None, use_cache: bool) -> Iterator[Path]:
    if use_cache:
        yield cache_dir or default_cache_dir()
        return
    try:
        folder = tempfile.TemporaryDirectory(prefix="specmap-")
    except OSError as error:
        raise OutputError(f"no temporary folder: {error.strerror or error}; set TMPDIR") from None
    with folder as name:
        yield Path(name)


def told_apart(labels: tuple[str, str], roots: tuple[Path, Path]) -> tuple[str, str]:
    """Return the names of two trees; where they are the same, with a folder that differs."""
    if labels[0] != labels[1] or roots[0] == roots[1]:
        return labels
    (one, other), last = (root.parts for root in roots), (roots[0].name, roots[1].name)
    pairs = zip_longest(one, other)
    differ = next(pair for pair in pairs if pair[0] != pair[1])
    named = [part or name for part, name in zip(differ, last, strict=True)]
    return f"{labels[0]} ({named[0]})", f"{labels[1]} ({named[1]})"


def check_phases(phases: Iterable[str]) -> None:
    """Refuse a phase name that does not exist.

    Raises:
        SpecmapError: naming the nearest phases.
    """
    known = [str(phase) for phase in PhaseName]
    for phase in phases:
        if phase not in known:
            raise SpecmapError(f"no phase {phase!r}; {_nearest(phase, known)}")


def check_names(codemap: CodeMap, workers: Sequence[str], phases: Sequence[str]) -> None:
    """Refuse workers that the map does not hold, and phases that they do not have.

    Raises:
        SpecmapError: naming the nearest workers, or the phases that there are.
    """
    known = sorted({worker.name for worker in codemap.workers})
    ids = {worker.id for worker in codemap.workers}
    for name in workers:
        if name not in known and name not in ids:
            near = codemap.unread or _nearest(name, known)
            raise SpecmapError(f"no worker {name!r} in {codemap.target}; {near}")
    check_phases(phases)
    chosen = [w for w in codemap.workers if not workers or w.name in workers or w.id in workers]
    there = {str(phase.name) for worker in chosen for phase in worker.phases}
    for phase in phases:
        if phase not in there:
            has = ", ".join(str(p) for p in PhaseName if p in there) or "none"
            raise SpecmapError(f"phase {phase!r} is in none of the workers shown; they have: {has}")


def _nearest(name: str, known: Sequence[str]) -> str:
    return meant(name, known, f"there are: {', '.join(known) or 'none'}")


def render(codemap: CodeMap, name: str, options: RenderOptions) -> bytes:
    """Return the map in the format ``name`` (one of :data:`FORMATS`), text as UTF-8."""
    content = RENDERERS[name].render(codemap, options)
    return content.encode() if isinstance(content, str) else content


def write(codemap: CodeMap, name: str, options: RenderOptions, output: Path | None) -> Written:
    """Write the map to ``output``, by default to a file named after it under ``output/``.

    A folder as ``output`` means a file of the default name in it. Without the ``dot``
    program a drawing is written as DOT and Mermaid text beside the place it would have.

    Raises:
        OutputError: a file could not be written; nothing is left half-written.
    """
    stem = _file_stem(codemap, options)
    dot_missing = name in _NEED_DOT and shutil.which("dot") is None
    paths = []
    for written in _WITHOUT_DOT if dot_missing else (name,):
        suffix = RENDERERS[written].suffix
        if output is None:
            path = Path("output") / (stem + suffix)
        elif output.is_dir():
            path = output / (stem + suffix)
        else:
            path = output.with_suffix(suffix) if dot_missing else output
        write_file(path, render(codemap, written, options))
        paths.append(path)
    return Written(tuple(paths), dot_missing)


def _file_stem(codemap: CodeMap, options: RenderOptions) -> str:
    parts = [codemap.target.replace("==", "-"), *options.workers, *options.phases]
    return re.sub(r"[^A-Za-z0-9.+_-]+", "-", ".".join(part.rpartition("::")[2] for part in parts))


def write_file(path: Path, content: bytes) -> None:
    """Write beside ``path`` and move it there, so that a failure leaves nothing behind.

    Raises:
        OutputError: the file could not be written.
    """
    write_parts(path, (content,))


def write_parts(path: Path, parts: Iterable[bytes]) -> None:
    """Write a long file part by part, beside its place, and move it there.

    Folders that are missing are made below ``output/`` of the current folder alone: elsewhere
    they are a slip of the pen.

    Raises:
        OutputError: the file could not be written; nothing is left of it.
    """
    ours = path.resolve().is_relative_to(Path("output").resolve())
    with replacing([path], make_folders=ours) as (fresh,), fresh.open("wb") as file:
        file.writelines(parts)


def local_target(cwd: Path) -> str:
    """Return the current folder as the target.

    Raises:
        TargetError: no SGLang tree is around or below it.
    """
    from specmap.scan.checkout import resolve_target

    try:
        resolve_target(".", cwd=cwd, cache_dir=cwd)
    except TargetError:
        raise TargetError(
            f"there is no SGLang tree around or below {str(cwd)!r}; name one, as a path or as "
            "'sglang==VERSION'"
        ) from None
    return "."
