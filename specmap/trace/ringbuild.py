"""Builds the agent's C ring for the Python of a server, once, in the user's cache."""

from __future__ import annotations

import contextlib
import subprocess
from hashlib import sha256
from pathlib import Path

from specmap.trace.interpreter import Installed

_AGENT = Path(__file__).parent / "agent"
_BUILDER = _AGENT / "build_ring.py"
_MODULE = "_ring"
_BUILD_SECONDS = 120


def built_ring(server: Installed, cache: Path) -> Path | None:
    """Return the folder with the ring for this Python; None where it cannot be built.

    Then the agent takes the ring that is written in Python, and the report says so.
    """
    folder = cache / f"{_sources()}{server.suffix.removesuffix('.so')}"
    if not (folder / (_MODULE + server.suffix)).is_file():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                [server.python, str(_BUILDER), str(folder)],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=_BUILD_SECONDS, check=True,
            )  # fmt: skip
    return folder if (folder / (_MODULE + server.suffix)).is_file() else None


def _sources() -> str:
    """Return a hash of what is built, so that another specmap builds its own."""
    digest = sha256()
    for path in sorted(_AGENT.glob("*.[ch]")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
