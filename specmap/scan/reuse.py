"""What a map depended on, kept beside it, and when that makes it the map of a changed tree too.

A scan parses some hundred files of thousands; about the others it asks only whether their text
holds certain words. So a map holds for a tree in which

- a file that was not parsed says the same about everything that was asked;
- a parsed file has the same code: blank lines and comments came or went (the lines move).

Any other difference makes a new scan. Nothing is guessed from what usually matters.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from specmap.codemap.graph import CodeMap
from specmap.codemap.source import SourceFile
from specmap.scan.checkout import Checkout
from specmap.scan.index import Asked, Tree
from specmap.scan.layout import moved_lines
from specmap.scan.parse import module_name

_RECORD = "reads.json"
# More changed files than this are rarely all outside what a scan reads.
_MOST = 200


@dataclass(frozen=True, slots=True)
class Reads:
    """What one scan read: every file's hash, what was asked, and what the unparsed ones said."""

    files: Mapping[str, str]
    parsed: frozenset[str]
    asked: Asked
    said: Mapping[str, list[str]]


def keep(path: Path, tree: Tree) -> None:
    """Write what a finished scan read, with the text of what it parsed."""
    parsed = sorted(tree.parsed)
    record = {
        "files": tree.hashes,
        "parsed": parsed,
        "asked": {
            "classes": sorted(tree.asked.classes),
            "bases": sorted(tree.asked.bases),
            "modules": sorted(tree.asked.modules),
            "folders": sorted(tree.asked.folders),
            "words": [[*key, sorted(words)] for key, words in sorted(tree.asked.words.items())],
        },
        "said": tree.said(),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(_RECORD, json.dumps(record))
        for file in parsed:
            archive.writestr(file, tree.source(file))


def load(path: Path) -> Reads | None:
    """Read what :func:`keep` wrote; ``None`` when it is gone or of another kind."""
    try:
        with zipfile.ZipFile(path) as archive:
            record = json.loads(archive.read(_RECORD))
        asked = record["asked"]
        return Reads(
            record["files"],
            frozenset(record["parsed"]),
            Asked(
                classes=set(asked["classes"]),
                bases=set(asked["bases"]),
                words={(kind, tuple(under)): set(w) for kind, under, w in asked["words"]},
                modules=set(asked["modules"]),
                folders=set(asked["folders"]),
            ),
            record["said"],
        )
    except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile):
        return None


def changed_files(reads: Reads, hashes: Mapping[str, str]) -> list[str] | None:
    """Return the files that differ from those that were read; ``None`` when they are too many."""
    found = [f for f in {**reads.files, **hashes} if reads.files.get(f) != hashes.get(f)]
    return sorted(found) if len(found) <= _MOST else None


def may_be_renewed(path: Path, reads: Reads, changed: list[str], tree: Tree) -> bool:
    """Whether no difference of the changed files matters, lines aside."""
    return all(
        _moved(path, file, tree) is not None
        if file in reads.parsed
        else _is_silent(file, reads, tree)
        for file in changed
    )


def renewed(
    codemap: CodeMap, path: Path, reads: Reads, changed: list[str], tree: Tree, checkout: Checkout
) -> CodeMap | None:
    """Return the map of ``tree``, made from that of a tree that differs in ``changed``.

    ``None`` when the new number of a line is not known for sure.
    """
    from specmap.scan.moved import ApartError, moved  # libcst, which most scans do without

    found = codemap
    for file in sorted(reads.parsed.intersection(changed)):
        lines = _moved(path, file, tree)
        try:
            found = moved(found, file, lines or {}, tree)
        except ApartError:
            return None
    hashes = tree.hashes
    return replace(
        found,
        target=checkout.label,
        release=checkout.release,
        commit=checkout.commit,
        files=tuple(SourceFile(f.file, hashes[f.file]) for f in found.files),
    )


def _moved(path: Path, file: str, tree: Tree) -> Mapping[int, int] | None:
    if not tree.hashes.get(file):
        return None
    with zipfile.ZipFile(path) as archive:
        return moved_lines(archive.read(file), tree.source(file))


def _is_silent(file: str, reads: Reads, tree: Tree) -> bool:
    """Whether an unparsed file says what it said about all that was asked."""
    asked = reads.asked
    if (file in reads.files) is not (file in tree.hashes):
        named = module_name(file) in asked.modules
        if named or any(file == f or file.startswith(f"{f}/") for f in asked.folders):
            return False
    now = asked.met_in(file, tree.source(file)) if file in tree.hashes else []
    return now == reads.said.get(file, []) and tree.hashes.get(file) != ""
