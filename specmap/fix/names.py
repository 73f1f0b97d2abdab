"""What rewrites have to know by name, from ``rules/fix.toml`` and the vocabulary."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from specmap.errors import RulesError
from specmap.scan.vocabulary import Vocabulary, load_vocabulary, rules_folder

FILE = "fix.toml"
_LISTS = (
    "facts", "launch_facts", "numbers", "graph_flag", "logits", "verify_flag", "planned", "says",
    "host_mirrors", "host_flags", "once", "switches", "accept_lists", "no_algorithm",
    "eager_halves", "passes", "tail_guards",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Names:
    """The vocabulary of the scan, and the lists of ``fix.toml`` by key."""

    scan: Vocabulary
    lists: Mapping[str, tuple[str, ...]]

    def pairs(self, key: str) -> list[tuple[str, str]]:
        """Return the entries of a list that are written ``name := value``."""
        found = (entry.partition(" := ") for entry in self.lists[key])
        return [(name.strip(), value.strip()) for name, _, value in found]


def load_names() -> Names:
    """Read the names.

    Raises:
        RulesError: the file cannot be read, or lacks a list.
    """
    try:
        table = tomllib.loads((rules_folder() / FILE).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RulesError(f"{FILE}: {error}") from None
    missing = [key for key in _LISTS if not isinstance(table.get(key), list)]
    if missing:
        raise RulesError(f"{FILE}: missing: {', '.join(missing)}")
    return Names(load_vocabulary(), {key: tuple(map(str, table[key])) for key in _LISTS})
