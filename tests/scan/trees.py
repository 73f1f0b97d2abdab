"""Builds the outline of a SGLang tree, and wheels of it."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from specmap.errors import TargetError

OUTLINE = {
    "sglang/__init__.py": "",
    "sglang/srt/managers/scheduler.py": "class Scheduler: ...\n",
    "sglang/srt/speculative/eagle_worker.py": "class EAGLEWorker: ...\n",
}


def plant(folder: Path, files: Mapping[str, str] = OUTLINE) -> Path:
    """Write ``files`` below ``folder`` and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def pack(path: Path, files: Mapping[str, str] = OUTLINE) -> Path:
    """Write a wheel with ``files`` and return its path."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


class FakeIndex:
    """A package index in memory: wheels by version, and how often one was asked for."""

    def __init__(self, wheels: Mapping[str, Mapping[str, str]], newest: str = "0.5.9") -> None:
        self.wheels = wheels
        self.latest = newest
        self.downloads = 0

    def newest(self) -> str:
        return self.latest

    def download(self, version: str, folder: Path) -> Path:
        self.downloads += 1
        if version not in self.wheels:
            raise TargetError(f"sglang=={version}: no such wheel")
        return pack(folder / f"sglang-{version}-py3-none-any.whl", self.wheels[version])
