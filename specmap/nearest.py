"""What a name that nobody knows was most likely meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ALIKE = 0.55


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return up to ``count`` known names that look most like ``name``, or begin with it.

    Case, leading dashes, and dashes against underscores make no difference.
    """
    wanted = _plain(name)
    plain = {_plain(candidate): candidate for candidate in sorted(set(known))}
    close = difflib.get_close_matches(wanted, sorted(plain), n=count, cutoff=_ALIKE)
    begun = [found for found in sorted(plain, key=len) if wanted and found.startswith(wanted)]
    return [plain[found] for found in dict.fromkeys((*close, *begun))][:count]


def meant(name: str, known: Iterable[str], otherwise: str, count: int = 3) -> str:
    """Return the question ``did you mean A or B?``, ``otherwise`` where nothing is near."""
    near = nearest(name, known, count)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-").lower()
