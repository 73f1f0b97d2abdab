"""Values that the text does not settle: unresolved variables and placeholders.

They stay in the text as they were written; no rule here replaces one by a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from specmap.errors import SpecmapError

_VARIABLE = r"\$\{[^{}]*\}|\$\(\(?[^()]*\)?\)|\$[A-Za-z_]\w*|\$[0-9@*#?]"
_TEMPLATE = r"\{\{[^{}]*\}\}|<[A-Za-z][^<>\n\"'$|;]*>"
_UNKNOWN = re.compile(f"{_VARIABLE}|{_TEMPLATE}")

# What source and command lines state: JSON's types, with tuples for lists.
Value = str | int | float | bool | None | tuple["Value", ...] | Mapping[str, "Value"]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is not known; ``text`` is what stands in its place in the source."""

    text: str


class ArgumentError(SpecmapError):
    """SGLang itself would refuse this command line and exit with 2."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def unknown_parts(text: str) -> tuple[str, ...]:
    """Return the variables (``$TP``, ``${TP:-8}``, ``$(nproc)``) and placeholders in a text.

    Placeholders are ``<model>`` and ``{{ model }}``.
    """
    return tuple(_UNKNOWN.findall(text))


def is_open(word: str) -> bool:
    """Whether a word may stand for any number of arguments: ``$EXTRA_ARGS``, ``...``."""
    return bool(unknown_parts(word)) or word in ("...", "\u2026")
