"""In which releases a launch argument exists: ``rules/arguments.toml``, made from the wheels."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from specmap.errors import RulesError
from specmap.scan.vocabulary import rules_folder


@dataclass(frozen=True, slots=True)
class Renamed:
    """An old argument whose value goes to another field, and from which release on.

    ``now`` is the argument that the source names instead, "" if it names none.
    """

    field: str
    now: str
    since: str


@dataclass(frozen=True, slots=True)
class ArgumentHistory:
    """The first and last release of each argument, among the releases that were read.

    An argument that was dropped and came back has several ranges, oldest first.
    """

    releases: tuple[str, ...]
    ranges: Mapping[str, tuple[tuple[str, str], ...]]
    renamed: Mapping[str, Renamed]

    def about(self, flag: str, release: str | None) -> str:
        """Say in words where else a flag exists and what replaced it; "" if nothing is known."""
        parts = []
        ranges = self.ranges.get(flag, ())
        here = Version(release) if release else None
        before = [r for r in ranges if here and Version(r[1]) < here]
        after = [r for r in ranges if here and Version(r[0]) > here]
        if before:
            last = before[-1][1]
            parts.append(f"last in {last}, gone in {self._following(last)}")
        if after:
            parts.append(f"added in {after[0][0]}")
        if ranges and not before and not after:
            parts.append(f"in {ranges[0][0]} to {ranges[-1][1]}")
        if flag in self.renamed:
            renamed = self.renamed[flag]
            if renamed.now:
                parts.append(f"replaced by {renamed.now} in {renamed.since}")
        return ", ".join(parts)

    def _following(self, release: str) -> str:
        return self.releases[self.releases.index(release) + 1]


def load_history(path: Path | None = None) -> ArgumentHistory:
    """Read the history.

    Raises:
        RulesError: the file is missing or does not say what it must.
    """
    path = path or rules_folder() / "arguments.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        releases = tuple(data["releases"])
        ranges: dict[str, tuple[tuple[str, str], ...]] = {}
        for span, flags in data["arguments"].items():
            first, _, last = span.partition(" -")
            for flag in flags:
                ranges[flag] = (*ranges.get(flag, ()), (first, last.strip() or releases[-1]))
        renamed = {flag: Renamed(*entry) for flag, entry in data["renamed"].items()}
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise RulesError(f"{path.name}: {error}") from error
    return ArgumentHistory(releases, ranges, renamed)
