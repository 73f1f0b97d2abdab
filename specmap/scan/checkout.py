"""Targets: what the user names -> a folder that holds SGLang's source."""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from specmap.errors import TargetError
from specmap.scan import fetch, gitrepo, release, store

PACKAGE = "sglang"
_PINNED = re.compile(r"sglang\s*==\s*(?P<version>.+)", re.IGNORECASE)
_GIT = "git:"
_FORMS = "a folder of a SGLang tree, 'installed', 'sglang==VERSION' or 'git:REV'"


@dataclass(frozen=True, slots=True)
class Checkout:
    """A SGLang tree on disk.

    ``root`` is the folder that holds the ``sglang`` package; ``label`` names the tree in
    the map and in file names and holds no absolute path; ``release`` and ``commit`` are
    ``None`` when the tree does not say. ``content`` is a hash of the files where one is
    known without reading them.
    """

    root: Path
    label: str
    release: str | None
    commit: str | None
    content: str | None = None


def resolve_target(
    target: str | None, *, cwd: Path, cache_dir: Path, index: fetch.Index | None = None
) -> Checkout:
    """Find or fetch the tree that ``target`` names.

    Without a target: the installed SGLang, else the newest release on the package index.
    Relative paths and ``git:`` revisions start from ``cwd``.

    Raises:
        TargetError: there is no such tree, it is not SGLang's, or it cannot be fetched.
        CacheError: the cache folder cannot be used.
    """
    index = fetch.PipIndex() if index is None else index
    if target is None:
        return _installed() or _released(index.newest(), cache_dir, index)
    if not target.strip():
        raise TargetError("the target is empty; give a path, 'installed', or 'sglang==VERSION'")
    if target == "installed":
        found = _installed()
        if found is None:
            raise TargetError(
                "SGLang is not installed in the Python that runs specmap; "
                "give a path or 'sglang==VERSION'"
            )
        return found
    if target.startswith(_GIT):
        return _from_git(target.removeprefix(_GIT), cwd, cache_dir)
    pinned = _PINNED.fullmatch(target.strip())
    if pinned is not None:
        return _released(_version(pinned["version"], target), cache_dir, index)
    return _from_path(target, cwd)


def _version(text: str, target: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion:
        raise TargetError(f"{target!r}: {text!r} is not a release; write sglang==0.5.9") from None


def _released(version: str, cache_dir: Path, index: fetch.Index) -> Checkout:
    root = store.release_tree(version, cache_dir, index)
    named = f"sglang=={version}"
    _check_package(root / PACKAGE, named)
    return Checkout(root, named, version, release.commit_in(root), store.content_of(root))


def _from_git(revision: str, cwd: Path, cache_dir: Path) -> Checkout:
    repository = gitrepo.find(cwd)
    if repository is None:
        hint = release.meant(revision)
        raise TargetError(
            f"git:{revision}: the current folder is in no git repository that git can read"
            + (f"; {hint}" if hint else "")
        )
    commit = gitrepo.commit_of(repository, revision)
    root = store.commit_tree(repository, commit, cache_dir)
    _check_package(root / PACKAGE, f"git:{revision}")
    version = release.release_in(root) or gitrepo.nearest_release(repository, commit)
    return Checkout(root, f"git:{commit[:12]}", version, commit, store.content_of(root))


def _from_path(target: str, cwd: Path) -> Checkout:
    package = _package_of(_real_folder(target, cwd), target)
    _check_package(package, target)
    root = package.parent
    version, commit = release.release_in(root), release.commit_in(root)
    repository = gitrepo.find(root)
    if repository is not None and gitrepo.holds(repository, package):
        version = version or gitrepo.nearest_release(repository, "HEAD")
        commit = gitrepo.head_of(repository, package) or commit
    return Checkout(
        root, f"path:{PACKAGE}-{version}" if version else f"path:{PACKAGE}", version, commit
    )


def _real_folder(target: str, cwd: Path) -> Path:
    """Return the folder without symlinks; a loop of symlinks is an error of its own."""
    try:
        folder = Path(os.path.realpath(cwd / Path(target).expanduser(), strict=True))
    except FileNotFoundError:
        hint = release.meant(target) or f"a target is {_FORMS}"
        raise TargetError(f"{target!r}: no such folder; {hint}") from None
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TargetError(f"{target!r} cannot be read: {reason}") from None
    if not folder.is_dir():
        raise TargetError(f"{target!r} is a file; a target is {_FORMS}")
    return folder


def _package_of(folder: Path, target: str) -> Path:
    """Find the package above, at or below ``folder``; never searches further than that."""
    above = [folder, *folder.parents]
    below = [folder / PACKAGE, folder / "python" / PACKAGE]
    for candidate in above + below:
        if candidate.name == PACKAGE and (candidate / "srt").is_dir():
            return candidate
    for candidate in [*below, folder]:
        if candidate.name == PACKAGE and (candidate / "__init__.py").is_file():
            raise TargetError(f"{target!r}: half a SGLang tree, 'sglang/srt' is missing")
    raise TargetError(
        f"{target!r} is not a SGLang tree: no 'sglang/srt' at, above or directly below it; "
        f"a target is {_FORMS}"
    )


def _check_package(package: Path, target: str) -> None:
    speculative = package / "srt" / "speculative"
    if not speculative.is_dir():
        raise TargetError(f"{target!r}: half a SGLang tree, 'sglang/srt/speculative' is missing")
    if not any(speculative.glob("*.py")):
        raise TargetError(f"{target!r}: 'sglang/srt/speculative' holds no Python file")


def _installed() -> Checkout | None:
    """Find the SGLang that this Python would import, without importing it."""
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    packages = [Path(place) for place in places if (Path(place) / "srt").is_dir()]
    if not packages:
        return None
    package = packages[0]
    _check_package(package, "installed")
    root = package.parent
    version = release.release_in(root) or _metadata_version()
    label = f"installed:{PACKAGE}-{version}" if version else f"installed:{PACKAGE}"
    return Checkout(root, label, version, release.commit_in(root))


def _metadata_version() -> str | None:
    import importlib.metadata

    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None
