"""Builds the C ring with the C compiler that is there; without one, there is no C ring.

Two callers: the wheel's build (a hatchling hook), and the command line, which runs this file
with the server's own Python where that is another version: ``python build_ring.py FOLDER``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

_FLAGS = (
    "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra",
    "-Wno-deprecated-declarations",
)  # fmt: skip
_SOURCES = ("ring.c", "wrapper.c", "carried.c", "launches.c", "spans.c")
_TIMEOUT_S = 120


def name() -> str:
    """Return the file name of this Python's C ring."""
    return f"_ring{sysconfig.get_config_var('EXT_SUFFIX')}"


def build(into: str) -> str:
    """Compile the C ring for this Python into a folder; return its path.

    Raises:
        OSError: no compiler, no headers, or the compiler refused.
    """
    if not sys.platform.startswith("linux"):
        raise OSError("the C ring is built on Linux only")
    compiler = _compiler()
    include = sysconfig.get_path("include")
    if not os.path.exists(f"{include}/Python.h"):
        raise OSError("Python's C headers are not installed")
    here = os.path.dirname(os.path.abspath(__file__))
    sources = [os.path.join(here, one) for one in _SOURCES]
    os.makedirs(into, exist_ok=True)
    target = f"{into}/{name()}"
    with tempfile.TemporaryDirectory(dir=into) as folder:
        made = f"{folder}/{name()}"
        command = [compiler, *_FLAGS, f"-I{include}", "-o", made, *sources]
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise OSError(f"{compiler} refused the C ring: {done.stderr.decode()[:500]}")
        os.replace(made, target)
    return target


def _compiler() -> str:
    configured = str(sysconfig.get_config_var("CC") or "").split()
    for one in (os.environ.get("CC", ""), *configured[:1], "cc", "gcc", "clang"):
        if one and shutil.which(one):
            return one
    raise OSError("no C compiler")


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:
    pass
else:

    class BuildRing(BuildHookInterface[Any]):
        """Puts the C ring into wheels; a machine without a compiler gets a pure wheel."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile, and mark the wheel as one for this Python and platform."""
            if self.target_name != "wheel" or os.environ.get("SPECMAP_PURE"):
                return
            here = os.path.dirname(os.path.abspath(__file__))
            self._folder = tempfile.mkdtemp()
            try:
                made = build(here if version == "editable" else self._folder)
            except (OSError, subprocess.SubprocessError) as error:
                self.app.display_warning(f"specmap without its C ring: {error}")
                return
            inside = os.path.relpath(here, self.root)
            build_data["force_include"][made] = f"{inside}/{name()}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

        def finalize(self, version: str, build_data: dict[str, Any], artifact: str) -> None:
            """Remove what was compiled beside the wheel."""
            shutil.rmtree(getattr(self, "_folder", ""), ignore_errors=True)


if __name__ == "__main__":
    try:
        build(sys.argv[1])
    except (OSError, subprocess.SubprocessError) as problem:
        os.write(2, f"{problem}\n".encode())
        raise SystemExit(1) from None
