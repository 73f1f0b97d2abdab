"""Host synchronisations on the decode cycle, by how they make the host wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from specmap.codemap.finding import Match
from specmap.codemap.graph import CodeMap, HostSync, SyncKind
from specmap.codemap.rule import Confidence, Severity, takes
from specmap.lint.detectors.selecting import clip, phases_named, strings

_LABELLED = ("debug", "grammar", "logprob", "sampling")
_COPY = "host-to-device"


@takes(own=list)
def explicit(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """The source asks for the value: ``.item()``, ``.tolist()``, ``.cpu()``, ``synchronize()``."""
    for sync in _on_cycle(codemap):
        if sync.kind is SyncKind.EXPLICIT and sync.rule != _COPY:
            yield _match(sync, "waits for the device", strings(parameters, "own"))


@takes(own=list)
def hidden(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """The operation hides the wait: a mask index, a tensor as size or as truth value."""
    for sync in _on_cycle(codemap):
        if sync.kind is SyncKind.IMPLICIT:
            yield _match(sync, f"waits for the device ({sync.rule})", strings(parameters, "own"))


@takes(own=list)
def pageable(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A copy to the device from memory that is not pinned, or that the host waits for."""
    for sync in _on_cycle(codemap):
        if sync.kind is SyncKind.EXPLICIT and sync.rule == _COPY:
            yield _match(sync, "copies pageable host memory", strings(parameters, "own"))


@takes(own=list)
def captured(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A wait inside a captured region: it fails the capture, or its value is frozen in."""
    for sync in codemap.syncs:
        if sync.captured and sync.kind is not SyncKind.NONE and sync.rule != _COPY:
            yield _match(
                sync,
                "is captured: it breaks the capture, or replay keeps the value of the capture",
                strings(parameters, "own"),
            )


@takes(own=list)
def deciding(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """The test that chooses graph or eager waits for the device itself."""
    in_decision = _decides(codemap)
    for sync in codemap.syncs:
        if sync.kind is not SyncKind.NONE and in_decision(sync):
            yield _match(
                sync, "waits for the device to choose the path", strings(parameters, "own")
            )


def _decides(codemap: CodeMap) -> Callable[[HostSync], bool]:
    bodies = {d.holder for d in codemap.decisions if d.kind == "can_run"}
    terms = {
        (d.holder, line)
        for d in codemap.decisions
        if d.kind == "route"
        for line in range(d.span.line, d.span.end_line + 1)
    }
    return lambda sync: sync.holder in bodies or (sync.holder, sync.span.line) in terms


def _on_cycle(codemap: CodeMap) -> Iterator[HostSync]:
    in_decision = _decides(codemap)
    for sync in codemap.syncs:
        if sync.phase_between and not sync.captured and not in_decision(sync):
            yield sync


def _match(sync: HostSync, what: str, own: tuple[str, ...]) -> Match:
    label = sync.label if sync.label in _LABELLED else ""
    between = sync.phase_between.replace("->", " and ")
    removable = sync.label == "removable"
    return Match(
        span=sync.span,
        holder=sync.holder,
        anchor=sync.operation,
        message=f"{clip(sync.operation)} {what}"
        + (f" between {between}" if between else "")
        + (f" (only on the {label} path)" if label else ""),
        phases=phases_named(sync.phase_between),
        workers=sync.workers,
        severity=None if removable and not label else Severity.NOTE,
        confidence=_confidence(sync, own),
        label=label,
    )


def _confidence(sync: HostSync, own: tuple[str, ...]) -> Confidence:
    """High in the workers' own files; a backend or pool is one of many that can be chosen."""
    if sync.device == "unknown":
        return Confidence.LOW
    bare = sync.rule == "truth-test" and "(" not in sync.operation
    here = sync.span.file.rpartition("/")[0] in own
    return Confidence.HIGH if here and not bare else Confidence.MEDIUM
