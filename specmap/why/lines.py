"""What stands at a line, in a symbol or a file, where a flag is set, and what may be meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from specmap.codemap.condition import atoms_of
from specmap.codemap.explanation import Likely, PlaceReason, PlaceTest
from specmap.codemap.graph import CodeMap, Flag, FlagStatus, Function
from specmap.codemap.source import Span, qualname_of
from specmap.errors import SpecmapError

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class OtherRelease:
    """The map of another release, to look for the same line in."""

    release: str
    codemap: CodeMap


def line_reason(
    codemap: CodeMap, file: str, line: int, source: Sequence[str], others: Sequence[OtherRelease]
) -> PlaceReason:
    """Return what stands at a line; ``source`` holds the file's lines.

    Raises:
        SpecmapError: the file has no such line.
    """
    if not 1 <= line <= len(source):
        raise SpecmapError(f"{file} has {len(source)} lines, there is no line {line}")
    holder = _holder(codemap, file, line)
    flags = [f for f in codemap.flags if f.span.file == file and _covers(f.span, line)]
    edges = [e for e in codemap.edges if e.span.file == file and e.span.line == line]
    facts = [flag_text(flag) for flag in flags]
    facts += [
        f"{d.kind.replace('_', ' ')} decision: {d.text}"
        for d in codemap.decisions
        if d.span.file == file and _covers(d.span, line) and d.kind != "capture"
    ]
    facts += [f"calls {qualname_of(c)}" for e in edges for c in e.callees]
    # Those of callers differ from worker to worker.
    guards = flags[0].guards if flags else edges[0].guards if edges else ()
    found = PlaceReason(
        symbol=holder.id if holder is not None else file,
        span=Span(file, line, line),
        source=source[line - 1].strip(),
        facts=tuple(dict.fromkeys(facts)),
        guards=tuple(g for g in guards if holder is not None and g.holder == holder.id),
        passes=tuple(_passes(codemap, holder.id)) if holder is not None else (),
    )
    tests = tuple(_tests(codemap, file, line))
    if flags or tests:
        return replace(found, tests=tests)
    likely = (*_nearest(codemap, file, line), *_elsewhere(file, line, others))
    return replace(found, facts=("no graph flag is set here", *found.facts), likely=likely)


def _tests(codemap: CodeMap, file: str, line: int) -> Iterator[PlaceTest]:
    """Yield the tests of a line on which the ends of a phase depend, each once."""
    seen = set()
    for worker in codemap.workers:
        for phase in worker.phases:
            for atom in (a for arm in phase.arms for a in atoms_of(arm.condition)):
                at = atom.span is not None and atom.span.file == file and _covers(atom.span, line)
                if at and (worker.id, phase.name, atom) not in seen:
                    seen.add((worker.id, phase.name, atom))
                    yield PlaceTest(worker.id, phase.name, atom)


def symbol_reason(codemap: CodeMap, symbol: str) -> PlaceReason:
    """Return what a function or class is to the phases."""
    spans = {f.id: f.span for f in codemap.functions} | {c.id: c.span for c in codemap.classes}
    span = spans.get(symbol)
    if span is None:
        raise SpecmapError(f"{qualname_of(symbol)} is not in the map")
    inside = [f for f in codemap.flags if f.holder == symbol]
    facts = [f"{place_of(f)}: {flag_text(f)}" for f in inside]
    facts += [
        f"{d.span.line}: {d.kind.replace('_', ' ')} decision: {d.text}"
        for d in codemap.decisions
        if d.holder == symbol
    ]
    passes = tuple(_passes(codemap, symbol))
    return PlaceReason(symbol, span, "", tuple(dict.fromkeys(facts)), (), passes)


def flag_reason(codemap: CodeMap, name: str) -> PlaceReason:
    """Return the places where a flag is set, handed on or dropped."""
    flags = sorted(
        (flag for flag in codemap.flags if flag.name == name),
        key=lambda flag: (flag.span.file, flag.span.line),
    )
    facts = [
        f"{flag.span.file}:{flag.span.line}: {flag_text(flag)}, in {qualname_of(flag.holder)}"
        for flag in flags
    ]
    return PlaceReason(name, None, "", tuple(dict.fromkeys(facts)), (), ())


def argument_reason(codemap: CodeMap, name: str, flag: str) -> PlaceReason:
    """Return the phases whose graph depends on a test that names a setting; ``flag`` gives it."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    found = {
        f"{worker.name}.{phase.name}": None
        for worker in codemap.workers
        for phase in worker.phases
        for arm in phase.arms
        if any(word.search(atom.text) for atom in atoms_of(arm.condition))
    }
    none = "no test names it: it may count by what is made of it, as the captured sizes"
    tests = "the phases that are named here have it in a test of their graph" if found else none
    ask = "what a test makes of it: specmap why TARGET WORKER.PHASE with a launch that gives it"
    facts = (f"a launch argument: {flag}", tests, ask)
    return PlaceReason(name, None, "", facts, (), tuple(found))


def file_reason(codemap: CodeMap, file: str) -> PlaceReason:
    """Return the functions of a file that the map has, and the phases that they hold."""
    held: dict[str, list[str]] = {}
    for worker in codemap.workers:
        for phase in worker.phases:
            held.setdefault(phase.holder, []).append(f"{worker.name}.{phase.name}")
    inside = sorted(
        (function for function in codemap.functions if function.span.file == file),
        key=lambda function: (function.span.line, function.id),
    )
    facts = [
        f"{function.span.line}: {qualname_of(function.id)}"
        + (f", phase {', '.join(held[function.id])}" if function.id in held else "")
        for function in inside
    ]
    passes = [name for function in inside for name in held.get(function.id, ())]
    nothing = "the map has no function of this file: no phase runs through it"
    return PlaceReason(file, None, "", tuple(facts) or (nothing,), (), tuple(passes))


def place_of(flag: Flag) -> str:
    """Return the line of a flag."""
    return str(flag.span.line)


def flag_text(flag: Flag) -> str:
    """Say what a flag is: constant, computed, handed on or dropped, and in which phase."""
    value = f" {flag.value}" if flag.status is FlagStatus.CONSTANT else ""
    where = (
        f" (value {flag.tuple_position + 1} of a tuple)" if flag.tuple_position is not None else ""
    )
    return f"{flag.name} is {flag.status.value}{value}{where}, phase {flag.phase}"


def _covers(span: Span, line: int) -> bool:
    return span.line <= line <= span.end_line


def _holder(codemap: CodeMap, file: str, line: int) -> Function | None:
    around = [f for f in codemap.functions if f.span.file == file and _covers(f.span, line)]
    return max(around, key=lambda f: f.span.line, default=None)


def _passes(codemap: CodeMap, symbol: str) -> Iterator[str]:
    """Yield the phases that run through a function, as ``Worker.phase``."""
    for worker in codemap.workers:
        for phase in worker.phases:
            chains = (name for arm in phase.arms for name, _ in arm.chain)
            if phase.holder == symbol or symbol in chains:
                yield f"{worker.name}.{phase.name}"


def _nearest(codemap: CodeMap, file: str, line: int) -> Iterator[Likely]:
    """Yield the flags of the file, those that are constant first, then the nearest."""
    flags = [f for f in codemap.flags if f.span.file == file]
    flags.sort(key=lambda f: (_unlikely(codemap, f, line), abs(f.span.line - line), f.span.line))
    for flag in flags[:_SHOWN]:
        yield Likely(None, flag.span, flag.text, flag_text(flag))


def _unlikely(codemap: CodeMap, flag: Flag, line: int) -> tuple[bool, bool]:
    """Rank a flag: one in the same function, and a constant, is what people look for."""
    holder = _holder(codemap, flag.span.file, line)
    return holder is None or flag.holder != holder.id, flag.status is not FlagStatus.CONSTANT


def _elsewhere(file: str, line: int, others: Sequence[OtherRelease]) -> Iterator[Likely]:
    """Yield the flags that other releases have on the same line of the same file."""
    name = file.rpartition("/")[2]
    for other in others:
        for flag in other.codemap.flags:
            if flag.span.file.endswith(f"/{name}") and _covers(flag.span, line):
                yield Likely(other.release, flag.span, flag.text, flag_text(flag))


def may_set_flag(source: Sequence[str], line: int, names: set[str]) -> bool:
    """Whether a line of another release looks as if it set a flag: it names one, or a constant."""
    if not 1 <= line <= len(source):
        return False
    text = source[line - 1].partition("#")[0]
    words = set(re.findall(r"\w+", text))
    return bool(words & names) or bool(words & {"True", "False"} and "return" in words)
