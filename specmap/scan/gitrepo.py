"""The git repository that the user stands in: revisions, tags and files of a commit."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from packaging.version import InvalidVersion, Version

from specmap.errors import TargetError
from specmap.scan import release

# Where the package lies inside a repository, in the order they are tried.
_PLACES = ("python/sglang", "sglang")
# What git sets for its hooks; it would hide the repository that a folder lies in.
_OF_A_HOOK = frozenset(
    {"GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}
)


def find(folder: Path) -> Path | None:
    """Return the top folder of the repository around ``folder``, or ``None``."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    return Path(top) if top else None


def holds(repository: Path, package: Path) -> bool:
    """Tell whether ``package`` is the repository's own SGLang, not one that lies inside it."""
    return any((repository / place).resolve() == package for place in _PLACES)


def commit_of(repository: Path, revision: str) -> str:
    """Return the full hash of the commit that ``revision`` names.

    Raises:
        TargetError: the repository has no such commit.
    """
    option_like = revision.startswith("-")
    commit = (
        None
        if option_like
        else _git(repository, "rev-parse", "--verify", "--quiet", revision + "^{commit}")
    )
    if not commit:
        advice = release.meant(revision) or (
            "try git fetch" if _git(repository, "rev-list", "-1", "--all") else "commit first"
        )
        raise TargetError(f"git:{revision}: no such revision in {repository.name!r}; {advice}")
    return commit


def common_ancestor(repository: Path, one: str, other: str) -> str | None:
    """Return the hash of the commit from which two revisions went apart, or ``None``."""
    return _git(repository, "merge-base", one, other) or None


def head_of(repository: Path, package: Path) -> str | None:
    """Return HEAD's hash, with ``-dirty`` behind it when the package was changed since."""
    head = _git(repository, "rev-parse", "--verify", "--quiet", "HEAD")
    if not head:
        return None
    changed = _git(repository, "status", "--porcelain", "--", str(package))
    return f"{head}-dirty" if changed else head


def nearest_release(repository: Path, revision: str) -> str | None:
    """Return the release of the nearest tag like ``v0.5.9`` before ``revision``."""
    tag = _git(repository, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", revision)
    try:
        return str(Version(tag.removeprefix("v"))) if tag else None
    except InvalidVersion:
        return None


def package_files(repository: Path, commit: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the package's files at ``commit``, as git keeps them.

    Paths are relative to the folder that holds the package. Nothing but regular files. Attributes
    of the repository, such as ``export-ignore``, hide and change nothing.

    Raises:
        TargetError: the commit holds no SGLang package, or git cannot read a file of it.
    """
    place = place_of(repository, commit)
    prefix = place.removesuffix("sglang")
    listed = _git(repository, "ls-tree", "-r", "-z", commit, "--", f"{place}/") or ""
    rows = [row.partition("\t") for row in listed.split("\0") if row.startswith("100")]
    names = [(head.split()[2], path.removeprefix(prefix)) for head, _, path in rows]
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{name}\n" for name, _ in names).encode())
        asked.seek(0)
        command = ["git", "-C", str(repository), "cat-file", "--batch"]
        with subprocess.Popen(
            command,
            env=_environment(),
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            try:
                for _, path in names:
                    yield path, _blob(process.stdout, f"git:{commit[:12]}: {path}")
            finally:
                process.kill()


def _blob(stream: IO[bytes], named: str) -> bytes:
    """Read one object of ``git cat-file --batch``: a line with its size, then its content."""
    *_, size = stream.readline().split() or [b""]
    content = stream.read(int(size)) if size.isdigit() else b""
    if not size.isdigit() or len(content) != int(size):
        raise TargetError(f"{named}: git has not got this file; try git fetch")
    stream.read(1)
    return content


def place_of(repository: Path, commit: str) -> str:
    """Return the way from the repository's top to the package at ``commit``.

    Where SGLang does not lie at its own place, the only package anywhere is meant.

    Raises:
        TargetError: the commit holds no SGLang package, or several.
    """
    for place in _PLACES:
        if _git(repository, "cat-file", "-t", f"{commit}:{place}/srt") == "tree":
            return place
    folders = _git(repository, "ls-tree", "-r", "-d", "-z", "--name-only", commit) or ""
    found = [f.removesuffix("/srt") for f in folders.split("\0") if f.endswith("/sglang/srt")]
    if len(found) == 1:
        return found[0]
    what = f"several SGLang packages ({', '.join(found)})" if found else "no 'python/sglang/srt'"
    raise TargetError(f"git:{commit[:12]}: {what} in that commit; is this a SGLang repository?")


def _git(folder: Path, *arguments: str) -> str | None:
    """Run git and return what it prints, or ``None`` when it fails or is not installed."""
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=_environment(),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name not in _OF_A_HOOK}
