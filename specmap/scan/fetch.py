"""Wheels from the package index, through the user's own pip and its settings."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from specmap.errors import TargetError

_PROJECT = "sglang"
# The wheel is read, never run, so any interpreter tag will do: releases are pure wheels or
# carry a CPython tag and a platform, whatever Python runs specmap.
_PYTHONS = ("3.11", "3.12", "3.13", "3.10")
# pip takes a manylinux tag as it stands and derives no older ones from it.
_PLATFORMS = tuple(
    f"{libc}_{machine}"
    for machine in ("x86_64", "aarch64")
    for libc in (*(f"manylinux_2_{minor}" for minor in range(45, 16, -1)), "manylinux2014", "linux")
)
_RETRIES = "2"
_VERSION_LIST = re.compile(r"\(from versions: (?P<versions>[^)]*)\)")


class Index(Protocol):
    """Where releases come from; tests put a folder in its place."""

    def newest(self) -> str:
        """Return the newest release.

        Raises:
            TargetError: the index cannot be read.
        """

    def download(self, version: str, folder: Path) -> Path:
        """Put the wheel of ``version`` into ``folder`` and return its path.

        Raises:
            TargetError: there is no such wheel, or it cannot be downloaded.
        """


class PipIndex:
    """The package index that the user's pip is set up for.

    pip compares each download with the hash that the index states.
    """

    def newest(self) -> str:
        """Return the newest final release; see :meth:`Index.newest`."""
        return self.releases()[0]

    def releases(self) -> tuple[str, ...]:
        """Return the final releases and post-releases on the index, newest first.

        Raises:
            TargetError: the index cannot be read.
        """
        result = _pip("index", "versions", *_wheel_options(_PYTHONS[0]), _PROJECT)
        listed = re.search(r"^Available versions: (.+)$", result.stdout, re.MULTILINE)
        if result.returncode != 0 or listed is None:
            raise TargetError(
                f"the package index has no list of SGLang releases ({_last_error(result)}); "
                "check the network, or give a path or 'sglang==VERSION'"
            )
        return tuple(version.strip() for version in listed[1].split(","))

    def download(self, version: str, folder: Path) -> Path:
        """Download one wheel; see :meth:`Index.download`."""
        known: list[str] = []
        for python in _PYTHONS:
            options = ("--no-deps", "--quiet", "--dest", str(folder), *_wheel_options(python))
            result = _pip("download", *options, f"{_PROJECT}=={version}")
            wheels = sorted(folder.glob("*.whl"))
            if result.returncode == 0 and wheels:
                return wheels[0]
            listed = _VERSION_LIST.search(result.stderr)
            if listed is None:
                raise TargetError(
                    f"sglang=={version}: pip could not download it: {_last_error(result)}"
                )
            known += [v for v in listed["versions"].split(", ") if v and v != "none"]
            if not known:
                break
        raise TargetError(_missing(version, known))


def _wheel_options(python: str) -> list[str]:
    tag = f"cp{python.replace('.', '')}"
    options = ["--only-binary=:all:", "--python-version", python, "--implementation", "cp"]
    for abi in (tag, "abi3", "none"):
        options += ["--abi", abi]
    for platform in _PLATFORMS:
        options += ["--platform", platform]
    return options


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip"]
    elif (found := shutil.which("pip")) is not None:
        command = [found]
    else:
        raise TargetError(
            "a release is fetched with pip, and there is none; "
            "run 'python -m ensurepip' or give the path of a SGLang tree"
        )
    options = ["--disable-pip-version-check", "--no-input", "--retries", _RETRIES]
    return subprocess.run(
        [*command, *arguments[:1], *options, *arguments[1:]],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _last_error(result: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    if errors[-1:] == ["ERROR: Exception:"]:  # a traceback follows, whose last line says it
        errors = lines
    return errors[-1].removeprefix("ERROR:").strip() if errors else "pip said nothing"


def _missing(version: str, known: list[str]) -> str:
    if not known:
        return (
            f"sglang=={version}: the package index cannot be reached or has no SGLang wheel; "
            "check the network, or give the path of a SGLang tree"
        )
    family = ".".join(version.split(".")[:2]) + "."
    near = [v for v in dict.fromkeys(known) if v.startswith(family)] or list(dict.fromkeys(known))
    return f"sglang=={version}: no such wheel on the package index; it has {', '.join(near[-6:])}"
