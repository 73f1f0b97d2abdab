"""Composes the steps for ``why``: tree, place and perhaps a launch -> explanation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from specmap.codemap.explanation import Explanation, PhaseReason, PlaceReason
from specmap.codemap.graph import CodeMap
from specmap.codemap.outcome import Outcome
from specmap.codemap.source import lines_of, text_of
from specmap.codemap.verdict import PhaseName
from specmap.errors import SpecmapError
from specmap.launched import Launch, Prepared, check, ready
from specmap.pipeline import (
    Progress,
    Resolved,
    default_cache_dir,
    resolved,
    scan_resolved,
    scan_tree,
)

if TYPE_CHECKING:
    from specmap.scan.vocabulary import Vocabulary
    from specmap.why.lines import OtherRelease
    from specmap.why.places import LinePlace, PhasePlace, Place

# How many other releases are scanned for the line that was meant, and how many are named.
_SCANNED = 4
_NAMED = 2


def explain(
    target: str | None,
    place: str,
    launch: Launch | None,
    *,
    platform: str = "cuda",
    use_cache: bool = True,
    progress: Progress | None = None,
) -> Explanation:
    """Return why a phase, symbol, flag, file or line of a SGLang tree behaves as it does.

    Raises:
        TargetError: there is no such tree.
        SpecmapError: nothing is called ``place``, or the launch cannot be read.
    """
    from specmap.scan.launch.library import Library
    from specmap.scan.vocabulary import load_vocabulary
    from specmap.why.places import PhasePlace, find_place

    vocabulary = load_vocabulary()
    if launch is not None:
        check(vocabulary, launch)
    with resolved(target, use_cache=use_cache, progress=progress) as tree:
        codemap = scan_resolved(tree, platform=platform, progress=progress)
        answer = Explanation(codemap.target, place, (), None, None)
        if launch is None:
            named = find_place(codemap, place, (), _settings(tree, vocabulary))
            phases = (_plain(codemap, named),) if isinstance(named, PhasePlace) else ()
            found = _found(tree, codemap, named, use_cache, progress)
            return replace(answer, phases=phases, found=found)
        alone = place in set(PhaseName)
        settings = _settings(tree, vocabulary)
        if not alone:
            find_place(codemap, place, (), settings)
        library = Library(tree.checkout.root, vocabulary.package)
        prepared = ready(codemap, library, vocabulary, launch)
        outcome = prepared.judged()
        if alone and (not outcome.workers or outcome.refusal is not None):
            why = "the server refuses to start" if outcome.refusal else "no worker runs"
            raise SpecmapError(f"{place}: {why}; specmap scan with this launch says more")
        named = find_place(codemap, place, [worker.id for worker in outcome.workers], settings)
        answer = replace(answer, found=_found(tree, codemap, named, use_cache, progress))
        return _launched(answer, named, prepared, outcome)


def _settings(tree: Resolved, vocabulary: Vocabulary) -> dict[str, str]:
    """Return the settings that launch arguments give, each with its argument."""
    from specmap.scan.launch.declared import read

    return {a.field: a.flags[0] for a in read(tree.checkout.root, vocabulary).arguments}


def _found(
    tree: Resolved, codemap: CodeMap, named: Place, use_cache: bool, progress: Progress | None
) -> PlaceReason | None:
    """Return what stands at a place; None for a phase."""
    from specmap.scan.vocabulary import load_vocabulary
    from specmap.why.lines import (
        argument_reason,
        file_reason,
        flag_reason,
        line_reason,
        symbol_reason,
    )
    from specmap.why.places import ArgumentPlace, FilePlace, FlagPlace, LinePlace, SymbolPlace

    if isinstance(named, ArgumentPlace):
        flag = _settings(tree, load_vocabulary())[named.name]
        return argument_reason(codemap, named.name, flag)
    if isinstance(named, SymbolPlace):
        return symbol_reason(codemap, named.symbol)
    if isinstance(named, FlagPlace):
        return flag_reason(codemap, named.name)
    if isinstance(named, FilePlace):
        return file_reason(codemap, named.file)
    if not isinstance(named, LinePlace):
        return None
    source = _lines(tree, named.file)
    found = line_reason(codemap, named.file, named.line, source, ())
    if not found.likely:
        return found
    others = _others(codemap, named, use_cache, progress)
    return line_reason(codemap, named.file, named.line, source, others)


def _plain(codemap: CodeMap, named: PhasePlace) -> PhaseReason:
    from specmap.why.phases import phase_reason

    return phase_reason(codemap, named.worker, named.phase)


def _launched(
    answer: Explanation, named: object, prepared: Prepared, outcome: Outcome
) -> Explanation:
    """Add what a launch makes of the place."""
    from specmap.why.changes import alternatives
    from specmap.why.phases import not_run, phase_reason
    from specmap.why.places import PhasePlace

    question = prepared.question
    if not isinstance(named, PhasePlace):
        return replace(answer, found=_valued(answer.found, prepared, outcome), outcome=outcome)
    if all(worker.id != named.worker.id for worker in outcome.workers):
        missed = not_run(prepared.codemap, named.worker, named.phase, outcome)
        return replace(answer, phases=(missed,), outcome=outcome)
    evaluator, court = prepared.settings(), prepared.court()
    size = question.batch.size or 1
    judged = court.phase(named.phase)
    reason = phase_reason(
        prepared.codemap, named.worker, named.phase, lambda atom: court.value(atom, size)
    )
    facts = evaluator.facts()
    needs = tuple(need.term for need in reason.needs)
    reason = replace(
        reason,
        verdict=judged.verdict,
        alternatives=alternatives(prepared.setup(), facts.facts, judged, needs),
    )
    return replace(answer, phases=(reason,), outcome=outcome)


def _valued(found: PlaceReason | None, prepared: Prepared, outcome: Outcome) -> PlaceReason | None:
    """Give the tests of a line their values under a launch, for the workers that it runs."""
    if found is None or not found.tests:
        return found
    court, size = prepared.court(), prepared.question.batch.size or 1
    run = {worker.id: worker for worker in outcome.workers}
    tests = []
    for test in found.tests:
        if test.worker in run:
            court.truths.phase = test.phase
            tests.append(replace(test, value=court.value(test.atom, size)))
    return replace(found, tests=tuple(tests))


def _lines(tree: Resolved, file: str) -> list[str]:
    try:
        return lines_of(text_of((tree.checkout.root / file).read_bytes()))
    except OSError as error:
        raise SpecmapError(f"cannot read {file}: {error}") from None


def _others(
    codemap: CodeMap, named: LinePlace, use_cache: bool, progress: Progress | None
) -> tuple[OtherRelease, ...]:
    """Return the maps of the nearest cached releases whose line may be the one meant."""
    from specmap.why.lines import OtherRelease, may_set_flag

    if not use_cache or codemap.release is None:
        return ()
    found: list[OtherRelease] = []
    scanned = 0
    names = {flag.name for flag in codemap.flags}
    for release in _cached(codemap.release):
        path = default_cache_dir() / "releases" / release / "tree" / named.file
        if not may_set_flag(_text(path), named.line, names):
            continue
        other = scan_tree(f"sglang=={release}", platform=codemap.platform, progress=progress)
        scanned += 1
        if any(f.span.file == named.file and f.span.line == named.line for f in other.flags):
            found.append(OtherRelease(release, other))
        if len(found) == _NAMED or scanned == _SCANNED:
            break
    return tuple(found)


def _cached(release: str) -> list[str]:
    """Return the other releases in the cache, the nearest first."""
    folder = default_cache_dir() / "releases"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    known: list[Version] = []
    for name in names:
        try:
            known.append(Version(name))
        except InvalidVersion:
            continue
    here = Version(release)
    order = sorted({*known, here})
    at = order.index(here)
    others = [v for v in order if v != here]
    return [str(v) for v in sorted(others, key=lambda v: (abs(order.index(v) - at), str(v)))]


def _text(path: Path) -> list[str]:
    try:
        return lines_of(text_of(path.read_bytes()))
    except OSError:
        return []
