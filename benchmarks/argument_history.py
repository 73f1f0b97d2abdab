"""Writes rules/arguments.toml: in which releases each launch argument exists.

Run it with the releases to read, or with none for those that the file lists; they come from the
cache or the package index.
"""

from __future__ import annotations

import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from packaging.version import Version

from specmap.pipeline import default_cache_dir
from specmap.scan.checkout import resolve_target
from specmap.scan.launch.declared import Declarations, read
from specmap.scan.launch.history import load_history
from specmap.scan.vocabulary import load_vocabulary, rules_folder

HEADER = """\
# In which releases a launch argument exists, among those listed. Made by
# benchmarks/argument_history.py; not edited by hand.
"""


def main() -> None:
    """Read the releases and write the file."""
    vocabulary = load_vocabulary()
    releases = sorted(sys.argv[1:] or load_history().releases, key=Version)
    declared = {}
    for release in releases:
        target = f"sglang=={release}"
        tree = resolve_target(target, cwd=Path.cwd(), cache_dir=default_cache_dir())
        declared[release] = read(tree.root, vocabulary)
    (rules_folder() / "arguments.toml").write_text(text(declared), encoding="utf-8")


def text(declared: dict[str, Declarations]) -> str:
    """Return the file's contents; ``declared`` is ordered by release."""
    releases = list(declared)
    present: dict[str, list[str]] = {}
    renamed: dict[str, tuple[str, str, str]] = {}
    for release, declarations in declared.items():
        for argument in declarations.arguments:
            for flag in argument.flags:
                present.setdefault(flag, []).append(release)
                if argument.deprecated is not None:
                    entry = (argument.field, argument.deprecated, release)
                    renamed.setdefault(flag, entry)
    order = {release: index for index, release in enumerate(releases)}
    spans = [(span, flag) for flag, found in present.items() for span in _spans(found, order)]
    spans.sort(key=lambda item: (order[item[0][0]], order[item[0][1]], item[1]))
    lines = [HEADER, f"releases = {_listed(releases)}", "", "[arguments]"]
    for (first, last), group in groupby(spans, key=itemgetter(0)):
        span = f"{first} -" if last == releases[-1] else f"{first} - {last}"
        lines.append(f'"{span}" = {_listed([flag for _, flag in group])}')
    lines += ["", "# Old argument = [field, argument that the source names instead, since]."]
    lines += ["[renamed]"]
    lines += [f'"{flag}" = {_quoted(renamed[flag])}' for flag in sorted(renamed)]
    return "\n".join(lines) + "\n"


def _spans(found: list[str], order: dict[str, int]) -> list[tuple[str, str]]:
    """Return the runs of neighbouring releases, each as its first and last."""
    spans = [(found[0], found[0])]
    for release in found[1:]:
        first, last = spans[-1]
        if order[release] == order[last] + 1:
            spans[-1] = (first, release)
        else:
            spans.append((release, release))
    return spans


def _quoted(words: tuple[str, ...] | list[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def _listed(words: list[str]) -> str:
    """Return a TOML list, wrapped at 100 columns."""
    lines, line = [], "  "
    for word in words:
        item = f'"{word}", '
        if len(line) + len(item) > 100:
            lines.append(line.rstrip())
            line = "  "
        line += item
    return "[\n" + "\n".join([*lines, line.rstrip()]) + "\n]"


if __name__ == "__main__":
    main()
