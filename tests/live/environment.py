"""Virtual environments with a real SGLang release and torch for the CPU.

They take minutes and 2 GB each, so they stay in the user's cache, one folder for each list of
requirements and Python. A folder counts only once its marker stands: one that was left half
made is thrown away and made again. ``python -m tests.live.environment`` makes all of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import platformdirs

HERE = Path(__file__).parent
RELEASES = ("0.5.9", "0.5.23")
HOSTED = {"0.5.12": "0.5.9"}  # runs from a folder, in the environment of another release
MARKER = "complete"
NEEDED_BYTES = 4 * 2**30  # the environment and what pip unpacks beside it


class BrokenEnvironmentError(RuntimeError):
    """An environment could not be made; the message has the last lines of pip."""


def root() -> Path:
    """Return the folder of all environments."""
    return Path(platformdirs.user_cache_dir("specmap")) / "live"


def requirements_of(release: str) -> Path:
    """Return the pinned requirements of a release."""
    return HERE / f"requirements-{release}.txt"


def key_of(requirements: str, python: Sequence[int] = sys.version_info[:3]) -> str:
    """Return the name of the folder for these requirements and this Python."""
    text = f"{'.'.join(map(str, python))}\n{requirements}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def python_of(release: str) -> Path:
    """Return the Python that has this release; its environment is made when missing.

    Raises:
        BrokenEnvironmentError: pip failed, or the disk is too full to try.
    """
    release = HOSTED.get(release, release)
    folder = root() / key_of(requirements_of(release).read_text("utf-8"))
    python = folder / "bin" / "python"
    if not (folder / MARKER).exists():
        root().mkdir(parents=True, exist_ok=True)
        with locked(folder.with_suffix(".lock")):
            if not (folder / MARKER).exists():
                make(folder, requirements_of(release))
    return python


def packages_of(release: str) -> Path:
    """Return the folder of installed packages that goes with :func:`python_of`.

    Raises:
        BrokenEnvironmentError: see :func:`python_of`.
    """
    [found] = python_of(release).parent.parent.glob("lib/python*/site-packages")
    return found


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock; a second process waits for the first to finish its environment."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def make(folder: Path, requirements: Path) -> None:
    """Make the environment, then its marker.

    Raises:
        BrokenEnvironmentError: pip failed, or the disk is too full to try.
    """
    shutil.rmtree(folder, ignore_errors=True)
    free = shutil.disk_usage(folder.parent).free
    if free < NEEDED_BYTES:
        raise BrokenEnvironmentError(
            f"{folder.parent}: {free / 2**30:.1f} GiB free, an environment needs "
            f"{NEEDED_BYTES / 2**30:.0f} GiB; make room and run again"
        )
    run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    [torch] = [line for line in requirements.read_text("utf-8").split() if line[:7] == "torch=="]
    run([*pip, torch, "--constraint", str(requirements)])
    run([*pip, "--no-deps", "--requirement", str(requirements)])
    (folder / MARKER).touch()


def run(command: Sequence[str]) -> None:
    """Run one step.

    Raises:
        BrokenEnvironmentError: the step failed.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-8:])
        raise BrokenEnvironmentError(f"{' '.join(command)} failed:\n{tail}")


if __name__ == "__main__":
    for each in RELEASES:
        print(f"{each}: {python_of(each)}")  # noqa: T201
