"""What the PLACE of ``why`` names: a phase, a symbol, a flag, a file or a line of it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from os.path import normpath, sep

from specmap.codemap.graph import CodeMap, Phase, Worker
from specmap.codemap.source import qualname_of
from specmap.codemap.verdict import PhaseName
from specmap.errors import SpecmapError
from specmap.nearest import meant

_LINE = re.compile(r"(?P<file>.+\.py):(?P<line>\d+)")


@dataclass(frozen=True, slots=True)
class PhasePlace:
    """A phase of a worker."""

    worker: Worker
    phase: Phase


@dataclass(frozen=True, slots=True)
class SymbolPlace:
    """A function or class, by its id."""

    symbol: str


@dataclass(frozen=True, slots=True)
class LinePlace:
    """A line of a file; ``file`` is relative to the root."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A whole file, relative to the root."""

    file: str


@dataclass(frozen=True, slots=True)
class FlagPlace:
    """A graph flag, wherever it is set or handed on."""

    name: str


@dataclass(frozen=True, slots=True)
class ArgumentPlace:
    """A launch argument, by the setting that it gives."""

    name: str


Place = ArgumentPlace | PhasePlace | SymbolPlace | LinePlace | FilePlace | FlagPlace


def find_place(
    codemap: CodeMap, text: str, run: Collection[str] = (), settings: Collection[str] = ()
) -> Place:
    """Return what a text names; ``run`` are the workers that a launch runs, by id.

    A phase's name alone means that phase of the one worker that runs. ``settings`` are the
    settings that launch arguments give, without dashes.

    Raises:
        SpecmapError: nothing in the map is called so, or several things are.
    """
    if not text.strip():
        raise SpecmapError("the place is empty; name WORKER.PHASE or FILE:LINE")
    line = _LINE.fullmatch(text)
    if line is not None:
        return LinePlace(_file(codemap, line["file"]), int(line["line"]))
    if ".py:" in text and "::" not in text:
        raise SpecmapError(f"{text}: {text.partition('.py:')[2]!r} is no line number")
    if text.endswith(".py"):
        return FilePlace(_file(codemap, text))
    if text in set(PhaseName):
        return _phase(codemap, PhaseName(text), run)
    owner, _, name = text.rpartition(".")
    for worker in codemap.workers:
        for phase in worker.phases:
            if worker.name == owner and phase.name == name:
                return PhasePlace(worker, phase)
    if any(flag.name == text for flag in codemap.flags) and len(_called(codemap, text)) != 1:
        return FlagPlace(text)
    setting = text.lstrip("-").replace("-", "_")
    if setting in settings and not _called(codemap, text):
        return ArgumentPlace(setting)
    return SymbolPlace(_symbol(codemap, text))


def _phase(codemap: CodeMap, name: PhaseName, run: Collection[str]) -> PhasePlace:
    having = [(w, p) for w in codemap.workers for p in w.phases if p.name is name]
    found = [PhasePlace(w, p) for w, p in having if w.id in run]
    if len(found) == 1:
        return found[0]
    named = [place.worker.name for place in found] or [worker.name for worker, _ in having]
    asked = f"{named[0] if named else 'WORKER'}.{name}"
    which = f"a phase of {', '.join(named)}; name one, as {asked}" if named else "no worker's phase"
    hint = "" if run or not named else ", or give the launch that selects one (--args-file)"
    raise SpecmapError(f"{name} is {which}{hint}")


def _file(codemap: CodeMap, name: str) -> str:
    """Return the file of the map that a path names, from wherever it starts."""
    wanted = normpath(name).replace(sep, "/").lstrip("./")
    files = sorted(source.file for source in codemap.files)
    found = [file for file in files if f"/{file}".endswith(f"/{wanted}")]
    found = found or [file for file in files if f"/{wanted}".endswith(f"/{file}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise SpecmapError(f"{name} may be {' or '.join(found[:4])}; give more of its path")
    hint = meant(wanted, [f.rpartition("/")[2] for f in files], "the map was built without it")
    raise SpecmapError(f"no file {name} in the map of {codemap.target}; {hint}")


def _ids(codemap: CodeMap) -> set[str]:
    return {function.id for function in codemap.functions} | {c.id for c in codemap.classes}


def _called(codemap: CodeMap, text: str) -> list[str]:
    """Return the functions and classes that a text may name."""
    return sorted(
        i for i in _ids(codemap) if i == text or f".{qualname_of(i)}".endswith(f".{text}")
    )


def _symbol(codemap: CodeMap, text: str) -> str:
    found = _called(codemap, text)
    exact = [i for i in found if qualname_of(i) == text or i == text]
    if len(exact) == 1 or len(found) == 1:
        return (exact or found)[0]
    if found:
        raise SpecmapError(f"{text} may be {' or '.join(map(qualname_of, found[:4]))}; say which")
    workers = [f"{w.name}.{p}" for w in codemap.workers for p in PhaseName]
    names = [*workers, *map(qualname_of, sorted(_ids(codemap)))]
    hint = meant(text, names, "name WORKER.PHASE or FILE:LINE")
    raise SpecmapError(f"nothing is called {text} in the map of {codemap.target}; {hint}")
