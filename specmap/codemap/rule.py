"""What a lint rule is: a declaration, and a pure detector that selects from the map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar


class Severity(StrEnum):
    """How much a finding matters to a running server; the words are SARIF's."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Confidence(StrEnum):
    """How sure the detector is that a finding is real."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Needs(StrEnum):
    """What the map must hold: facts of the source, of a running server, or both."""

    STATIC = "static"
    OBSERVED = "observed"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as its ``rule.toml`` declares it.

    ``id`` is never used again (``SPM101``); ``name`` reads after "allow"; ``summary`` is
    one sentence without a final stop; ``topic`` groups rules; ``detector`` is
    ``module:function`` and ``parameters`` is what it is given. ``first_release`` and
    ``last_release`` (included) are the SGLang releases that the rule is about, ``None``
    leaves that end open. ``explanation`` is the rule's page in Markdown. ``fixable`` is
    derived from the rule's examples. ``origin`` names the distribution that brought the rule.
    """

    id: str
    name: str
    summary: str
    topic: str
    severity: Severity
    confidence: Confidence
    needs: Needs
    detector: str
    parameters: Mapping[str, object] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    first_release: str | None = None
    last_release: str | None = None
    explanation: str = ""
    fixable: bool = False
    origin: str = "specmap"

    def is_selected_by(self, selector: str) -> bool:
        """Tell whether a selector is this rule's id, the id's beginning, its name or topic."""
        begins = selector[:1].isupper() and self.id.startswith(selector)
        return begins or selector in (self.name, self.topic)


_Detector = TypeVar("_Detector", bound=Callable[..., object])
_DECLARED = "__specmap_parameters__"


def takes(**parameters: type) -> Callable[[_Detector], _Detector]:
    """Declare the parameters of a detector: name and type (``str``, ``int``, ``bool``, ``list``).

    All are required in ``rule.toml``. A list holds strings; a detector without this
    decorator takes no parameters.
    """

    def mark(detector: _Detector) -> _Detector:
        setattr(detector, _DECLARED, MappingProxyType(dict(parameters)))
        return detector

    return mark


def parameters_of(detector: Callable[..., object]) -> Mapping[str, type]:
    """Return what :func:`takes` declared for a detector; nothing without it."""
    declared: Mapping[str, type] = getattr(detector, _DECLARED, MappingProxyType({}))
    return declared
