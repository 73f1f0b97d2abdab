"""The folder of a run: chosen, checked, and described in ``run.json``."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from specmap.errors import OutputError
from specmap.trace.spool import SCHEMA

RUN_FILE = "run.json"
PLAN_FILE = "plan.json"
_DEFAULT = Path("output")
_SECRET = re.compile(r"(?i)(^|[-_])(keys?|token|password|passphrase|secret|credentials?)$")
_NUMBERED = re.compile(r"trace-(\d+)")


def make(named: Path | None) -> Path:
    """Make the folder of a new run and return it, absolute; ``output/trace-<n>`` by default.

    Raises:
        OutputError: it already holds a run, or cannot be written.
    """
    try:
        folder = _numbered(_DEFAULT) if named is None else named
        folder.mkdir(parents=True, exist_ok=True)
        taken = next((f for f in (RUN_FILE, PLAN_FILE) if (folder / f).exists()), None)
        if taken is not None:
            raise OutputError(f"{str(folder)!r} already holds a run ({taken}); name another --dir")
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            probe.write(b"specmap")
    except OSError as error:
        where = str(named or _DEFAULT)
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot write a run to {where!r}: {reason}; name another --dir"
        ) from None
    return folder.resolve()


def _numbered(parent: Path) -> Path:
    """Make the next free numbered folder; two runs that start at once get two."""
    parent.mkdir(parents=True, exist_ok=True)
    taken = [_NUMBERED.fullmatch(path.name) for path in parent.iterdir()]
    number = max((int(match[1]) for match in taken if match is not None), default=0) + 1
    while True:
        folder = parent / f"trace-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def describe(folder: Path, facts: Mapping[str, object], plan: str) -> None:
    """Write ``run.json`` and ``plan.json``, before anything starts.

    Raises:
        OutputError: the disk is full, or the folder is gone.
    """
    text = json.dumps({"schema": SCHEMA, **facts}, indent=1, sort_keys=True)
    try:
        (folder / PLAN_FILE).write_text(plan, "utf-8")
        (folder / RUN_FILE).write_text(text + "\n", "utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot write to {str(folder)!r}: {reason}; name another --dir"
        ) from None


def discard(folder: Path) -> None:
    """Take back a run that did not begin: its two files, and its folder if that is all."""
    for name in (RUN_FILE, PLAN_FILE):
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


def without_secrets(command: Sequence[str]) -> list[str]:
    """Return a command with the values of keys, tokens and passwords replaced by ``***``."""
    kept: list[str] = []
    for word in command:
        name, equals, _ = word.partition("=")
        if equals and _SECRET.search(name):
            word = f"{name}=***"
        elif kept and kept[-1].startswith("-") and _SECRET.search(kept[-1]):
            word = "***"
        kept.append(word)
    return kept
