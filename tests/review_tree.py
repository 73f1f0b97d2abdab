"""The small tree of the rules' examples, with changes, as a folder or a git repository."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from specmap.codemap.graph import CodeMap
from specmap.pipeline import scan_tree
from specmap.scan.vocabulary import rules_folder

SPECULATIVE = "sglang/srt/speculative"
VERIFY = f"{SPECULATIVE}/eagle_verify.py"
DRAFT = f"{SPECULATIVE}/eagle_draft.py"
RUNNER = "sglang/srt/model_executor/cuda_graph_runner.py"
LAST_LINE = "        batch.spec_info = result.logits_output\n"
SYNC = "        count = batch.seq_lens.sum().item()\n"

Run = Callable[..., tuple[int | str | None, str, str]]
"""Runs a command line and returns exit code, output and errors: the fixture ``run``."""


def plant(folder: Path) -> Path:
    """Copy the tree into ``folder`` and return it."""
    shutil.copytree(rules_folder() / "_tree", folder)
    return folder


def edit(folder: Path, file: str, *changes: tuple[str, str]) -> None:
    """Replace text in one file; each old text must be there."""
    path = folder / file
    text = path.read_text("utf-8")
    for old, new in changes:
        assert old in text, f"{old!r} is not in {file}"
        text = text.replace(old, new)
    path.write_text(text, "utf-8")


def edit_everywhere(folder: Path, words: Mapping[str, str]) -> None:
    """Replace words in every file."""
    for path in folder.rglob("*.py"):
        text = path.read_text("utf-8")
        for old, new in words.items():
            text = text.replace(old, new)
        path.write_text(text, "utf-8")


def scan(folder: Path) -> CodeMap:
    """Return the map of a tree, never from a cache."""
    return scan_tree(folder, use_cache=False)


def git(folder: Path, *arguments: str) -> str:
    """Run git in ``folder`` and return what it prints."""
    named = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    command = ["git", *named, *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return result.stdout.strip()


def commit(folder: Path, message: str = "change") -> str:
    """Commit everything in ``folder`` and return the commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path) -> Path:
    """Make a repository with the tree under ``python``, as SGLang has it."""
    plant(folder / "python")
    git(folder, "init", "--quiet")
    commit(folder, "first")
    return folder
