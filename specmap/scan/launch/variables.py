"""Which environment variables a tree reads, by its text: a misspelt one has no effect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from specmap.nearest import meant


def unread(root: Path, package: str, names: Iterable[str]) -> dict[str, str]:
    """Return a line on each variable of the package's own that stands nowhere in its files.

    Only names that begin as the package's do can be told: libraries read variables, too.
    """
    own = package.upper()
    missing = {name for name in names if "_" in name and own.startswith(name.partition("_")[0])}
    for text in _texts(root / package) if missing else ():
        missing -= {n for n in missing if n in text and re.search(rf"\b{re.escape(n)}\b", text)}
        if not missing:
            break
    if not missing:
        return {}
    known = {found for text in _texts(root / package) for found in _variables(text, own)}
    return {
        name: f"nothing in this tree reads {name}; {meant(name, known, 'see its spelling', 1)}"
        for name in sorted(missing)
    }


def _variables(text: str, own: str) -> Iterable[str]:
    return re.findall(rf"\b{own}_[A-Z0-9_]*[A-Z0-9]\b", text)


def _texts(package: Path) -> Iterator[str]:
    for file in sorted(package.rglob("*.py")):
        try:
            yield file.read_text("utf-8", "replace")
        except OSError:
            continue
