"""Called by a rewritten decision when something was false: what it was, and its numbers."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .faults import line_of, say
from .names import Names
from .records import NONE, REASON
from .ring import Ring, size_of, small
from .values import Getter, Scope, described, getter, operands
from .wrapplan import Plan

WHY, NOTE, KEPT = "_specmap_why", "_specmap_note", "_specmap_kept_"

# What was false: a site's number, the operands as they stood then, and whether it was None.
Kept = tuple[int, tuple[tuple[str, Any], ...], bool]


@dataclass(frozen=True)
class Site:
    """One conjunct. ``target`` is 0 where only a local name is assigned.

    ``text`` says what was false, ``none_text`` what to say when it was None; ``name`` is a
    local name whose own reason, where one was kept, says more.
    """

    target: int
    line: int
    text: str
    operands: tuple[tuple[str, Getter], ...]
    none_text: str = ""
    name: str = ""
    call: bool = False


def site_of(node: ast.expr, target: int, line: int, text: str = "", name: str = "") -> Site:
    """Return the site of a conjunct; ``text`` where its own text is not what was false."""
    path = not text and getter(node) is not None
    return Site(
        target=target,
        line=line,
        text=text or ast.unparse(node),
        operands=tuple(operands(node)),
        none_text=f"{ast.unparse(node)} is None" if path else "",
        name=name,
        call=not text and isinstance(node, ast.Call),
    )


class Reasons:
    """The sites of all rewritten decisions, and the two functions that their code calls."""

    def __init__(self, ring: Ring, names: Names, plan: Plan) -> None:
        self.sites: list[Site] = []
        self.armed: Callable[[], bool] = lambda: True
        self._ring, self._names, self._plan = ring, names, plan

    def add(self, site: Site) -> int:
        """Return the number of a new site."""
        self.sites.append(site)
        return len(self.sites) - 1

    def note(self, number: int, value: Any) -> tuple[Kept | None, Any]:
        """Return why a local name is about to be false, and the value, untouched."""
        try:
            if self.armed():
                frame = sys._getframe(1)
                return self._kept(number, value, frame.f_locals, frame.f_globals), value
        except Exception as error:
            say(f"a reason was lost: {line_of(error)}")
        return None, value

    def why(self, number: int, value: Any) -> Any:
        """Record why a decision said no; return its value, untouched."""
        try:
            if self.armed():
                frame = sys._getframe(1)
                self._record(number, value, frame.f_locals, frame.f_globals)
        except Exception as error:
            say(f"a reason was lost: {line_of(error)}")
        return value

    def _kept(self, number: int, value: Any, here: Scope, there: Scope) -> Kept:
        site = self.sites[number]
        noted: tuple[Kept | None, Any] | None = here.get(KEPT + site.name) if site.name else None
        if noted is not None and noted[0] is not None:
            return noted[0]
        shown: dict[str, Any] = {}
        for text, read in site.operands:
            one = described(text, read(here, there))
            if one is not None:
                shown[one[0]] = one[1]
        if not shown and type(value) in (bool, int) and not site.call:
            shown[site.text] = value
        return number, tuple(shown.items()), value is None

    def _record(self, number: int, value: Any, here: Scope, there: Scope) -> None:
        kept = self._kept(number, value, here, there)
        target = self.sites[number].target
        reason = self._intern(target, kept)
        batch = next((here[one] for one in self._plan.batch_parameters if one in here), None)
        mode = size = NONE
        if batch is not None:
            mode = small(getattr(batch, self._plan.mode, None))
            size = size_of(batch, self._plan.sizes)
        self._ring.put(target, REASON, mode, size, reason, 0)

    def _intern(self, target: int, kept: Kept) -> int:
        number, _, is_none = kept
        known = self._names.known((target, kept))
        if known is None and self._names.full:
            kept = (number, (), is_none)
            known = self._names.known((target, kept))
        if known is not None:
            return known
        site = self.sites[number]
        text = site.none_text if is_none and site.none_text else site.text
        fields: dict[str, Any] = {"target": target, "line": site.line, "conjunct": text}
        if site.call:
            fields["call"] = True
        return self._names.add("reason", (target, kept), **fields, operands=dict(kept[1]))
