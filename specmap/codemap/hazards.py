"""Facts that lint rules select from beside the passes: stage tests, capture tables,
fallbacks, and what graph runners do to their static buffers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from specmap.codemap.source import Span


@dataclass(frozen=True, slots=True)
class ModeTest:
    """One test of an ``if`` chain that asks a batch for its forward mode.

    ``true_for`` are the modes for which the test holds, by the mode's own methods.
    ``chain`` is the line of the chain's first ``if``, ``order`` counts its tests from 0.
    """

    span: Span
    holder: str
    text: str
    predicate: str
    true_for: tuple[str, ...]
    chain: int
    order: int


class EntryKind(StrEnum):
    """``runner`` a class that a table gives for a device; ``backend`` an attention backend
    that a test admits to capture."""

    RUNNER = "runner"
    BACKEND = "backend"


@dataclass(frozen=True, slots=True)
class CaptureEntry:
    """One entry of what is captured: of a table by device, or of a list of backends.

    ``table`` is the table's or list's name, ``key`` the device. ``subject`` is the
    expression whose class is tested. ``platforms`` are those on which the entry holds,
    ``runs_on`` those for which the backend's own module has code.
    """

    span: Span
    holder: str
    kind: EntryKind
    table: str
    key: str
    target: str
    subject: str = ""
    platforms: tuple[str, ...] = ()
    runs_on: tuple[str, ...] = ()


class FallbackKind(StrEnum):
    """``caught`` an error of a capture is caught; ``disabled`` a setting is turned off."""

    CAUGHT = "caught"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Fallback:
    """A place where the source gives up a graph or a feature.

    ``says`` tells whether it logs, warns or prints there, ``raises`` whether it stops, and
    ``restored`` whether the function puts the old value back.
    """

    span: Span
    holder: str
    kind: FallbackKind
    text: str
    says: bool
    raises: bool
    restored: bool = False


class Role(StrEnum):
    """When a runner's code runs: ``init`` and ``capture`` once, ``region`` inside the
    captured body, ``replay`` in every cycle."""

    INIT = "init"
    CAPTURE = "capture"
    REGION = "region"
    REPLAY = "replay"


class UseKind(StrEnum):
    """``make`` a new tensor is stored; ``rebind`` another object is stored; ``fill`` the
    tensor is written in place; ``read``; ``update`` in place, depending on the old value;
    ``collect`` a Python container or counter grows."""

    MAKE = "make"
    REBIND = "rebind"
    FILL = "fill"
    READ = "read"
    UPDATE = "update"
    COLLECT = "collect"


@dataclass(frozen=True, slots=True)
class BufferUse:
    """What a graph runner does to one attribute.

    ``target`` is the attribute with local names spelt out (``self.buffers.positions``),
    ``value`` what is written, ``restored`` whether the region undoes it.
    """

    span: Span
    holder: str
    runner: str
    role: Role
    kind: UseKind
    target: str
    text: str
    value: str = ""
    restored: bool = False


@dataclass(frozen=True, slots=True)
class RunnerRead:
    """A worker reads a buffer of a graph runner.

    ``decided`` tells whether a test of the runner's decision leads there.
    """

    span: Span
    holder: str
    text: str
    runner: str
    route: Span
    decided: bool


@dataclass(frozen=True, slots=True)
class MetadataField:
    """A field of the attention metadata as one builder of a backend fills it.

    ``builder`` is ``eager`` or ``graph``. ``source`` is the batch's field that the value
    starts from, ``dtype`` the type that it is cast to (empty: as it came).
    """

    span: Span
    holder: str
    backend: str
    builder: str
    name: str
    text: str
    source: str
    dtype: str


@dataclass(frozen=True, slots=True)
class CapturedMode:
    """A forward mode that a graph runner captures."""

    span: Span
    holder: str
    runner: str
    mode: str


@dataclass(frozen=True, slots=True)
class Hazards:
    """All of these facts, each in a stable order."""

    mode_tests: tuple[ModeTest, ...] = ()
    capture_entries: tuple[CaptureEntry, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    buffer_uses: tuple[BufferUse, ...] = ()
    runner_reads: tuple[RunnerRead, ...] = ()
    metadata_fields: tuple[MetadataField, ...] = ()
    captured_modes: tuple[CapturedMode, ...] = ()
