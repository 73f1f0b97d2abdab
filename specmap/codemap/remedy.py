"""What a rewrite is, what it proposes, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from specmap.codemap.source import Span


class Safety(StrEnum):
    """``safe`` keeps every result; ``review`` a person should read; ``display`` changes only
    what is reported about a pass, never how it runs."""

    SAFE = "safe"
    REVIEW = "review"
    DISPLAY = "display"


class Outcome(StrEnum):
    """``applied``; ``refused`` a precondition failed or a proof did not run; ``conflicting``
    it overlaps one that was applied; ``failed`` the result broke a law or a proof."""

    APPLIED = "applied"
    REFUSED = "refused"
    CONFLICTING = "conflicting"
    FAILED = "failed"


class Layer(StrEnum):
    """The layers of proof, weakest first.

    ``syntax`` the result parses and every name is bound before it is read; ``map`` a scan
    of the result says what the rewrite promises; ``equality`` old and new code agree on
    random inputs; ``ledger`` the new code crosses between device and host less often; ``live``
    the real workers serve with it and give the tokens of greedy decoding.
    """

    SYNTAX = "syntax"
    MAP = "map"
    EQUALITY = "equality"
    LEDGER = "ledger"
    LIVE = "live"


class LayerStatus(StrEnum):
    """What became of one layer of proof."""

    HELD = "held"
    BROKEN = "broken"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class ProofStep:
    """One layer of a proof record: what ran, on what, with which result."""

    layer: Layer
    status: LayerStatus
    detail: str


@dataclass(frozen=True, slots=True)
class Change:
    """Characters ``start`` to ``end`` of a file become ``text``."""

    file: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Obligation:
    """What must be equal: two pieces of code that leave values in ``results``.

    ``setup`` makes what both read from the random ``inputs`` (name and kind, see
    :mod:`specmap.fix.prove`), on ``device``; ``pinned`` says whether that device has pinned
    memory beside it. ``helper`` names the helper that the new piece needs.
    """

    setup: str
    old: str
    new: str
    inputs: tuple[tuple[str, str], ...]
    results: tuple[str, ...]
    helper: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rewrite at one place: its changes, or the precondition that forbids it.

    ``facts`` are the preconditions that hold, with their places. ``workers`` are the class
    ids whose verify the rewrite promises to bring back under a graph. ``helper`` names the
    helper function that the file needs. ``nth`` tells places apart that read the same in one
    function, from 0 in the order of the untouched text.
    """

    rewrite: str
    span: Span
    holder: str
    what: str
    changes: tuple[Change, ...] = ()
    facts: tuple[str, ...] = ()
    refused: str = ""
    workers: tuple[str, ...] = ()
    helper: str = ""
    nth: int = 0

    @property
    def alike(self) -> tuple[str, str, str]:
        """What it has in common with those that read the same in one function."""
        return (self.rewrite, self.holder, self.what)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What identifies the proposal whatever its line."""
        return (*self.alike, self.nth)


Finder = Callable[..., Iterator[Proposal]]
"""Pure: reads a ``specmap.fix.tree.Tree``; no input or output, a stable order."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One entry of the catalogue.

    ``id`` is never used again; ``rules`` are the lint rules whose findings it can take away;
    ``layers`` must hold before it counts as proven; ``page`` explains it in Markdown;
    ``obligation`` is what the layer of equality runs; ``allows`` are lint rules that may speak of
    what comes back, which the record then says.
    """

    id: str
    name: str
    summary: str
    safety: Safety
    find: Finder
    rules: tuple[str, ...] = ()
    layers: tuple[Layer, ...] = (Layer.SYNTAX, Layer.MAP)
    page: str = ""
    obligation: Obligation | None = None
    allows: tuple[str, ...] = ()

    def is_selected_by(self, selector: str) -> bool:
        """Tell whether a selector is the id, its beginning, the name, or one of its rules."""
        begins = selector[:1].isupper() and self.id.startswith(selector)
        return begins or selector == self.name or selector in self.rules


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one proposal. ``reason`` says why it was not applied."""

    rewrite: Rewrite
    proposal: Proposal
    outcome: Outcome
    reason: str = ""
    proof: tuple[ProofStep, ...] = ()
    before: Mapping[str, str] = field(default_factory=dict, hash=False)
    after: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def proven(self) -> bool:
        """Whether every layer that the rewrite needs was run and held."""
        held = {step.layer for step in self.proof if step.status is LayerStatus.HELD}
        return set(self.rewrite.layers) <= held


@dataclass(frozen=True, slots=True)
class FixReport:
    """Everything that one run says: attempts by file and line, and the texts of the files.

    ``before`` and ``after`` hold the files that changed, by path relative to the folder that
    holds the package.
    """

    target: str
    release: str | None
    attempts: tuple[Attempt, ...]
    before: Mapping[str, str] = field(hash=False)
    after: Mapping[str, str] = field(hash=False)

    @property
    def applied(self) -> tuple[Attempt, ...]:
        """The rewrites that took place, in the order in which they were made."""
        return tuple(a for a in self.attempts if a.outcome is Outcome.APPLIED)
