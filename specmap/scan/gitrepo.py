"""The git repository that the user stands in: revisions, tags and files of a commit."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

from packaging.version import InvalidVersion, Version

from specmap.errors import TargetError

# Where the package lies inside a repository, in the order they are tried.
_PLACES = ("python/sglang", "sglang")


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
        advice = "try git fetch" if _git(repository, "rev-list", "-1", "--all") else "commit first"
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
    """Yield path and content of the package's files at ``commit``, as a checkout has them.

    Paths are relative to the folder that holds the package. Nothing but regular files.

    Raises:
        TargetError: the commit holds no SGLang package, or git failed.
    """
    place = place_of(repository, commit)
    command = ["git", "-C", str(repository), "archive", "--format=tar", commit, "--", place]
    prefix = place.removesuffix("sglang")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    content = archive.extractfile(member) if member.isreg() else None
                    if content is not None:
                        yield member.name.removeprefix(prefix), content.read()
        except tarfile.TarError as error:
            raise TargetError(f"git:{commit[:12]}: git archive failed: {error}") from None
        finally:
            process.kill()


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
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None
