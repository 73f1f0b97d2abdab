"""The engine: matches rewrites, applies those that do not overlap, reads the tree again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from specmap.codemap.graph import CodeMap
from specmap.codemap.remedy import (
    Attempt,
    Change,
    FixReport,
    Layer,
    LayerStatus,
    Outcome,
    ProofStep,
    Proposal,
    Rewrite,
)
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.errors import SpecmapError
from specmap.fix import syntax
from specmap.fix.facts import facts_of
from specmap.fix.helpers import insertion
from specmap.fix.lost import never, verifying
from specmap.fix.names import Names
from specmap.fix.tree import Tree

_ROUNDS = 6
Alike = tuple[str, str, str]
Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class Hands:
    """What the engine asks of those who call it.

    ``scan`` returns the map of the tree with changed texts over it; ``fresh`` names findings
    of lint that a map has and the first one lacks, as ``(function, text)``; ``prove`` runs the
    layers of proof beyond syntax and map for one proposal.
    """

    scan: Callable[[Mapping[str, str]], CodeMap]
    fresh: Callable[[CodeMap], Sequence[tuple[str, str]]]
    prove: Callable[[Rewrite, Proposal], tuple[ProofStep, ...]]
    unsafe: bool = False


@dataclass
class _Run:
    rewrites: Sequence[Rewrite]
    hands: Hands
    made: list[Attempt] = field(default_factory=list)
    failed: dict[Key, Attempt] = field(default_factory=dict)
    waiting: dict[Key, Attempt] = field(default_factory=dict)
    conflicts: dict[Key, Attempt] = field(default_factory=dict)
    gone: dict[Alike, set[int]] = field(default_factory=dict)
    spans: dict[Key, Span] = field(default_factory=dict)


def select(rewrites: Iterable[Rewrite], selectors: Sequence[str]) -> tuple[Rewrite, ...]:
    """Return the rewrites that ids, their beginnings, names or lint rules select; all without.

    Raises:
        SpecmapError: a selector is about no rewrite.
    """
    every = tuple(rewrites)
    for selector in selectors:
        if not any(rewrite.is_selected_by(selector) for rewrite in every):
            listed = ", ".join(f"{r.id} {r.name}" for r in every)
            raise SpecmapError(f"no rewrite {selector!r}; there are {listed}")
    return tuple(r for r in every if not selectors or any(map(r.is_selected_by, selectors)))


def fix(
    root: Path, codemap: CodeMap, rewrites: Sequence[Rewrite], names: Names, hands: Hands
) -> FixReport:
    """Rewrite a tree in memory until nothing more matches; a second run changes nothing.

    A rewrite that breaks a law, or does not keep what it promises, is taken back and the
    rest is done again without it.
    """
    run = _Run(rewrites, hands)
    original = Tree(root, codemap, names)
    for _ in range(_ROUNDS):
        run.made, run.waiting, run.conflicts, run.gone = [], {}, {}, {}
        last = _to_the_end(run, original)
        broken = _unkept(run, codemap, last)
        if not broken:
            break
        for attempt, reason in broken:
            run.failed[attempt.proposal.key] = replace(
                attempt, outcome=Outcome.FAILED, reason=reason
            )
    attempts = [*run.made, *run.failed.values(), *run.waiting.values()]
    known = {attempt.proposal.key for attempt in attempts}
    attempts += [attempt for key, attempt in run.conflicts.items() if key not in known]
    return FixReport(
        codemap.target,
        codemap.release,
        tuple(sorted(attempts, key=_order)),
        {file: original.text(file) for file in sorted(last.texts)},
        dict(sorted(last.texts.items())),
    )


def _order(attempt: Attempt) -> tuple[object, ...]:
    return (list(Outcome).index(attempt.outcome), attempt.proposal.span, attempt.rewrite.id)


def _to_the_end(run: _Run, tree: Tree) -> Tree:
    """Apply round after round; each reads the tree anew."""
    for _ in range(_ROUNDS):
        taken = _taken(run, tree)
        if not taken:
            break
        texts = _made(run, tree, taken)
        tree = tree.changed(run.hands.scan(texts), texts)
    return tree


def _taken(run: _Run, tree: Tree) -> list[Attempt]:
    """Return what can be applied in this round; the rest waits with its reason."""
    taken: list[Attempt] = []
    run.waiting = {}
    for rewrite in run.rewrites:
        for proposal in _numbered(run, rewrite.find(tree)):
            if proposal.key in run.failed:
                continue
            attempt = _judged(run, rewrite, proposal)
            other = next((t for t in taken if _overlap(t.proposal, proposal)), None)
            if attempt.outcome is Outcome.APPLIED and other is None:
                taken.append(attempt)
                continue
            if attempt.outcome is Outcome.APPLIED and other is not None:
                reason = f"{other.rewrite.id} changes the same lines"
                attempt = replace(attempt, outcome=Outcome.CONFLICTING, reason=reason)
                run.conflicts[proposal.key] = attempt
            run.waiting[proposal.key] = attempt
    return sorted(taken, key=lambda t: (t.proposal.span, t.rewrite.id))


def _numbered(run: _Run, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """Number those that read the same; the numbers of those that were made are taken.

    A place keeps the lines where it was seen first, those of the untouched text.
    """
    taken = {alike: set(numbers) for alike, numbers in run.gone.items()}
    for proposal in sorted(proposals, key=lambda p: (p.span, p.what)):
        numbers = taken.setdefault(proposal.alike, set())
        nth = next(n for n in count() if n not in numbers)
        numbers.add(nth)
        numbered = replace(proposal, nth=nth)
        span = run.spans.setdefault(numbered.key, numbered.span)
        yield replace(numbered, span=span)


def _judged(run: _Run, rewrite: Rewrite, proposal: Proposal) -> Attempt:
    if proposal.refused:
        return Attempt(rewrite, proposal, Outcome.REFUSED, proposal.refused)
    proof = run.hands.prove(rewrite, proposal)
    for step in proof:
        if step.status is LayerStatus.BROKEN:
            return Attempt(rewrite, proposal, Outcome.FAILED, step.detail, proof)
    lacking = [s for s in proof if s.status is LayerStatus.NOT_RUN and s.layer in rewrite.layers]
    if lacking and not run.hands.unsafe:
        reason = f"not proven: {lacking[0].layer}: {lacking[0].detail}; --unsafe applies it"
        return Attempt(rewrite, proposal, Outcome.REFUSED, reason, proof)
    return Attempt(rewrite, proposal, Outcome.APPLIED, "", proof)


def _overlap(one: Proposal, other: Proposal) -> bool:
    return any(
        a.file == b.file and ((a.start < b.end and b.start < a.end) or a.start == b.start)
        for a in one.changes
        for b in other.changes
    )


def _made(run: _Run, tree: Tree, taken: Sequence[Attempt]) -> dict[str, str]:
    """Apply one after the other and keep each one's texts before and after it."""
    texts = dict(tree.texts)
    done: list[Change] = []
    for attempt in taken:
        proposal = attempt.proposal
        files = sorted({change.file for change in proposal.changes})
        wanted = [*done, *proposal.changes]
        if proposal.helper and not _has(tree, files[0], proposal.helper, done):
            wanted.append(insertion(tree.source(files[0]), proposal.helper))
        after = {file: applied(tree.text(file), wanted, file) for file in files}
        before = {file: texts.get(file, tree.text(file)) for file in files}
        wrong = next((w for f in files if (w := syntax.broken(before[f], after[f]))), "")
        if wrong:
            run.failed[proposal.key] = replace(attempt, outcome=Outcome.FAILED, reason=wrong)
            continue
        done = wanted
        run.gone.setdefault(proposal.alike, set()).add(proposal.nth)
        texts.update(after)
        step = ProofStep(Layer.SYNTAX, LayerStatus.HELD, "parses; every name that is read is bound")
        run.made.append(replace(attempt, proof=(step, *attempt.proof), before=before, after=after))
    return texts


def _has(tree: Tree, file: str, helper: str, done: Sequence[Change]) -> bool:
    texts = [tree.text(file), *(c.text for c in done if c.file == file)]
    return any(f"{kind} {helper}(" in t or f"{kind} {helper}:" in t
               for t in texts for kind in ("def", "class"))  # fmt: skip


def applied(text: str, changes: Iterable[Change], file: str) -> str:
    """Return a text with the changes of its file made."""
    own = sorted((c for c in changes if c.file == file), key=lambda c: (c.start, c.end))
    parts, end = [], 0
    for change in own:
        parts += [text[end : change.start], change.text]
        end = change.end
    return "".join([*parts, text[end:]])


def _unkept(run: _Run, first: CodeMap, last: Tree) -> list[tuple[Attempt, str]]:
    """Return the attempts whose promise the last map breaks; the others get their proof."""
    facts = facts_of(last)
    able = {w.id for w, p in verifying(last) if not never(p.graph_when, facts)}
    fresh = run.hands.fresh(last.codemap) if run.made else ()
    worse = _worse(first, last.codemap)
    found: list[tuple[Attempt, str]] = []
    for index, attempt in enumerate(run.made):
        proposal = attempt.proposal
        here = [text for holder, text in fresh if holder == proposal.holder]
        allowed = [text for text in here if text.partition(" ")[0] in attempt.rewrite.allows]
        new = [text for text in here if text not in allowed]
        wanting = [w.rpartition("::")[2] for w in proposal.workers if w not in able]
        if new:
            found.append((attempt, f"lint finds what was not there before: {new[0]}"))
        elif wanting and len(wanting) == len(proposal.workers):
            found.append((attempt, f"verify of {', '.join(wanting)} still never replays"))
        elif worse:
            found.append((attempt, f"another phase suffers: {worse}"))
        else:
            detail = "a scan of the result finds nothing new in what was changed"
            detail += "; no phase lost its graph"
            if allowed:
                detail += f"; with the decision comes back: {'; '.join(allowed)}"
            if proposal.workers:
                names = ", ".join(w.rpartition("::")[2] for w in proposal.workers)
                detail += f"; verify can replay: {names}"
            step = ProofStep(Layer.MAP, LayerStatus.HELD, detail)
            run.made[index] = replace(attempt, proof=(*attempt.proof, step))
    return found


def _worse(first: CodeMap, last: CodeMap) -> str:
    """Name a phase that lost its graph, or a prefill that gained the one of verify."""
    was = {(w.id, p.name): p.verdict for w in first.workers for p in w.phases}
    for worker in last.workers:
        for phase in worker.phases:
            old, new = was.get((worker.id, phase.name), phase.verdict), phase.verdict
            prefill = phase.name is PhaseName.TARGET_PREFILL
            if old != new and (prefill or new is Verdict.EAGER):
                verdicts = [str(verdict or "it depends") for verdict in (old, new)]
                return f"{phase.name} of {worker.name}: {' -> '.join(verdicts)}"
    return ""
