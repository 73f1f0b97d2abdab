"""Replay safety: what makes a replay differ from the eager pass or from the capture."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from specmap.codemap.finding import Match, Step
from specmap.codemap.graph import CodeMap
from specmap.codemap.hazards import BufferUse, MetadataField, Role, RunnerRead, UseKind
from specmap.codemap.rule import Confidence
from specmap.codemap.source import Span
from specmap.lint.detectors.selecting import clip, place


def _by_runner(codemap: CodeMap) -> Iterator[list[BufferUse]]:
    runners: dict[str, list[BufferUse]] = {}
    for use in codemap.hazards.buffer_uses:
        runners.setdefault(use.runner, []).append(use)
    yield from (uses for _, uses in sorted(runners.items()))


def _once(matches: Iterable[Match]) -> Iterator[Match]:
    """Inherited methods are read once for every runner; a place is reported once."""
    yield from {(m.span, m.anchor): m for m in matches}.values()


def host_scalar(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """The captured body reads a Python value that every replay stores anew."""
    yield from _once(_host_scalars(codemap))


def _host_scalars(codemap: CodeMap) -> Iterator[Match]:
    for uses in _by_runner(codemap):
        made = {u.target for u in uses if u.kind is UseKind.MAKE}
        stored = _first(uses, lambda u: u.role is Role.REPLAY and u.kind is UseKind.REBIND)
        for use in uses:
            if use.role is not Role.REGION or use.kind is not UseKind.READ:
                continue
            if use.target in stored and use.target not in made:
                yield Match(
                    span=use.span,
                    holder=use.holder,
                    anchor=f"{use.target} in region",
                    message=f"{use.target} is read inside the captured region and stored anew at "
                    f"{place(stored[use.target].span)}: replay keeps the value of the capture",
                    related=(Step(stored[use.target].span, "stored in every cycle"),),
                )


def rebound_buffer(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A static buffer is replaced at replay; the graph keeps the address of the old one."""
    yield from _once(_rebound(codemap))


def _rebound(codemap: CodeMap) -> Iterator[Match]:
    for uses in _by_runner(codemap):
        made = {u.target for u in uses if u.kind is UseKind.MAKE and u.role is Role.INIT}
        made |= {u.target for u in uses if u.kind is UseKind.FILL and u.role is not Role.REGION}
        grouped = {u.target for u in uses if u.role is Role.INIT and _is_group(u)}
        read = _first(
            uses, lambda u: u.kind is UseKind.READ and u.role in (Role.CAPTURE, Role.REGION)
        )
        for use in uses:
            if use.role is not Role.REPLAY or use.kind not in (UseKind.REBIND, UseKind.MAKE):
                continue
            group = use.target.rpartition(".")[0]
            if (use.target in made or group in grouped) and use.target in read:
                yield Match(
                    span=use.span,
                    holder=use.holder,
                    anchor=use.text,
                    message=f"{use.target} is captured at {place(read[use.target].span)} and here "
                    "another tensor takes its place: the graph still reads the old one",
                    related=(Step(read[use.target].span, "the address that is captured"),),
                )


def _is_group(use: BufferUse) -> bool:
    """Whether an object that holds buffers is stored: ``self.buffers = Buffers(...)``."""
    name = use.value.partition("(")[0].rpartition(".")[2]
    return use.kind is UseKind.REBIND and "(" in use.value and "uffer" in name + use.target


def capture_only_effect(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A Python side effect in the captured body happens at capture and never at replay."""
    found = (
        Match(
            span=use.span,
            holder=use.holder,
            anchor=use.text,
            message=f"{clip(use.text)} happens while capturing and in no replay",
        )
        for uses in _by_runner(codemap)
        for use in uses
        if use.role is Role.REGION and use.kind is UseKind.COLLECT
    )
    yield from _once(found)


def changing_warmup(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """The captured body updates state in place that no replay sets again."""
    yield from _once(_changing(codemap))


def _changing(codemap: CodeMap) -> Iterator[Match]:
    for uses in _by_runner(codemap):
        filled = {
            u.target.rpartition(".")[2]
            for u in uses
            if u.role is Role.REPLAY and u.kind in (UseKind.FILL, UseKind.REBIND)
        }
        for use in uses:
            if use.role is not Role.REGION or use.kind is not UseKind.UPDATE or use.restored:
                continue
            if use.target.rpartition(".")[2] not in filled:
                yield Match(
                    span=use.span,
                    holder=use.holder,
                    anchor=use.text,
                    message=f"{clip(use.text)} runs in every warm-up and capture too, and no "
                    f"replay sets {use.target} again",
                    confidence=None if use.target.startswith("self.") else Confidence.LOW,
                )


def unequal_fill(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """Capture and replay fill one static buffer with counts of different units."""
    yield from _once(_unequal(codemap))


def _unequal(codemap: CodeMap) -> Iterator[Match]:
    for uses in _by_runner(codemap):
        fills = [u for u in uses if u.kind is UseKind.FILL]
        for target in dict.fromkeys(u.target for u in fills):
            captured = [u for u in fills if u.target == target and u.role is Role.CAPTURE]
            replayed = [u for u in fills if u.target == target and u.role is Role.REPLAY]
            counted = [u for u in captured if _units(u)]
            if counted and replayed and all(map(_units, replayed)):
                yield from _of_target(counted, replayed)


def _of_target(captured: list[BufferUse], replayed: list[BufferUse]) -> Iterator[Match]:
    there = frozenset[str]().union(*map(_units, captured))
    here = frozenset[str]().union(*map(_units, replayed))
    strange = [use for use in replayed if not _units(use) & there]
    yield from (_fill(use, captured[0], None) for use in strange)
    missing = [use for use in captured if _units(use) - here]
    if missing and not strange:
        yield _fill(replayed[-1], missing[0], Confidence.LOW)


def _fill(use: BufferUse, captured: BufferUse, confidence: Confidence | None) -> Match:
    return Match(
        span=use.span,
        holder=use.holder,
        anchor=use.text,
        message=f"{use.target} is filled with {use.value} here and with "
        f"{captured.value} at capture ({place(captured.span)})",
        related=(Step(captured.span, "filled at capture"),),
        confidence=confidence,
    )


def _units(use: BufferUse) -> frozenset[str]:
    """``requests`` for a bare batch size, ``tokens`` for a product of it; empty if unknown."""
    try:
        return _units_of(ast.parse(use.value, mode="eval").body)
    except SyntaxError:
        return frozenset()


def _units_of(node: ast.expr) -> frozenset[str]:
    if isinstance(node, ast.IfExp):
        arms = [_units_of(node.body), _units_of(node.orelse)]
        return frozenset[str]().union(*arms) if all(arms) else frozenset()
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        counts = _units_of(node.left) | _units_of(node.right)
        return frozenset({"tokens"}) if "requests" in counts else frozenset()
    if isinstance(node, ast.Name):
        if node.id == "num_tokens":
            return frozenset({"tokens"})
        if "bs" in node.id or "seqs" in node.id:
            return frozenset({"requests"})
    return frozenset()


def unequal_builders(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """The eager builder of a backend leaves a field in another type than the graph's."""
    fields: dict[tuple[str, str], list[MetadataField]] = {}
    for field in codemap.hazards.metadata_fields:
        fields.setdefault((field.backend, field.name), []).append(field)
    for _, group in sorted(fields.items()):
        graph = [f for f in group if f.builder == "graph"]
        eager = [f for f in group if f.builder == "eager"]
        expected = _type(graph)
        if expected:
            yield from _uncast(eager, expected, graph[0].span, "the graph's builder")
        else:
            yield from _unlike(eager)


def _type(graph: list[MetadataField]) -> str:
    """The type is what the graph's builder casts to, or what the field's name says."""
    named = {f.name.rpartition("_")[2] for f in graph} & {"int32", "int64"}
    types = {f.dtype for f in graph if f.dtype} or named
    # A view of a static buffer has the buffer's type; what is copied into it tells which.
    bare = [f for f in graph if not f.dtype and not f.text.startswith("self.")]
    return min(types) if len(types) == 1 and (named or not bare) else ""


def _unlike(eager: list[MetadataField]) -> Iterator[Match]:
    """The graph's builder does not show the type; here one store lacks the cast of the others."""
    for cast in {field.source: field for field in eager if field.dtype}.values():
        named = cast.name.endswith(f"_{cast.dtype}")
        same = [field for field in eager if named or field.source == cast.source]
        where = "the other stores of the eager builder"
        yield from _uncast(same, cast.dtype, cast.span, where)


def _uncast(eager: list[MetadataField], expected: str, other: Span, where: str) -> Iterator[Match]:
    for field in eager:
        if field.dtype != expected and expected not in field.source:
            yield Match(
                span=field.span,
                holder=field.holder,
                anchor=f"{field.name} = {field.text}",
                message=f"{field.name} keeps the type of {field.source} here and is {expected} in "
                f"{where} ({place(other)})",
                related=(Step(other, where),),
            )


def stale_buffer(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A worker reads a runner's buffer although the pass may have run eager."""
    made = {
        part
        for use in codemap.hazards.buffer_uses
        if use.kind in (UseKind.MAKE, UseKind.FILL) and use.target.startswith("self.")
        for part in use.target.split(".")[1:]
    }
    reads: dict[tuple[str, str], list[RunnerRead]] = {}
    for read in codemap.hazards.runner_reads:
        owner, _, part = read.text.rpartition(".")
        if not read.decided and part in made:
            reads.setdefault((read.holder, owner), []).append(read)
    for (holder, owner), (first, *others) in reads.items():
        yield Match(
            span=first.span,
            holder=holder,
            anchor=f"{owner}.buffers",
            message=f"{first.text} is read whether or not {first.runner} replayed: after an "
            "eager pass it holds an older batch",
            related=(
                Step(first.route, "the decision"),
                *(Step(read.span, f"{read.text} is read too") for read in others),
            ),
        )


def _first(uses: Iterable[BufferUse], wanted: Callable[[BufferUse], bool]) -> dict[str, BufferUse]:
    found: dict[str, BufferUse] = {}
    for use in uses:
        if wanted(use):
            found.setdefault(use.target, use)
    return found
