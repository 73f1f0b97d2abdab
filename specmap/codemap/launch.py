"""Launch facts: what one launch command makes of a release's settings.

Everything here was derived from the release's own argument code. A fact is definite only if
no missing input can change it; otherwise it lists what would settle it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from specmap.codemap.source import Span

Plain = None | bool | int | float | str | tuple["Plain", ...] | Mapping[str, "Plain"]


class OriginKind(StrEnum):
    """Where a setting got its value: the user, the declaration, or the argument code."""

    GIVEN = "given"
    DEFAULT = "default"
    ASSIGNED = "assigned"


@dataclass(frozen=True, slots=True)
class PathTest:
    """A test on the way to an assignment or a raise.

    ``outcome`` is ``true``, ``false`` or ``unknown``, the latter with what was taken.
    """

    text: str
    span: Span
    outcome: str


@dataclass(frozen=True, slots=True)
class FactOrigin:
    """One place that can have given a setting its value; ``tests`` led there, outermost first.

    ``span`` is None for what the user gave and for defaults.
    """

    kind: OriginKind
    span: Span | None
    tests: tuple[PathTest, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """The value of one setting after the launch.

    ``known`` says whether ``value`` is settled. Where it is not, ``alternatives`` lists the
    few values that it can have (empty: any), and ``reasons`` the inputs that would settle it.
    """

    name: str
    known: bool
    value: Plain
    alternatives: tuple[Plain, ...]
    reasons: tuple[str, ...]
    origins: tuple[FactOrigin, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A raise or assert that stops the start.

    ``certain`` when every way leads to it; otherwise the server *may* refuse, and ``reasons``
    are the inputs that would tell.
    """

    certain: bool
    error: str
    message: str
    span: Span
    tests: tuple[PathTest, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that the user gave and the argument code overwrote without refusing."""

    name: str
    given: Plain
    fact: Fact


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether one test of the map holds under a launch; ``truth`` is None where not settled.

    ``operands`` are the values that it compares, ``settings`` the settings that were read for
    it, with where they come from.
    """

    text: str
    truth: bool | None
    reasons: tuple[str, ...]
    operands: tuple[Fact, ...]
    settings: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What a release makes of a launch command.

    After a certain refusal every fact is unknown: there is no server. ``environment`` holds
    the variables that were stated or set on the way (None: unset). ``assumptions`` lists what
    was taken for granted about the machine and the model.
    """

    facts: Mapping[str, Fact]
    environment: Mapping[str, Fact]
    refusals: tuple[Refusal, ...]
    changes: tuple[Change, ...]
    assumptions: tuple[str, ...]

    @property
    def refused(self) -> Refusal | None:
        """The raise that certainly stops the start, or None."""
        return next((r for r in self.refusals if r.certain), None)

    def value(self, name: str) -> Plain:
        """Return the settled value of a setting.

        Raises:
            KeyError: there is no such setting, or it is not settled.
        """
        fact = self.facts[name]
        if not fact.known:
            raise KeyError(f"{name} is not settled: {', '.join(fact.reasons)}")
        return fact.value
