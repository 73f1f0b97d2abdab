"""Makes mutants of real releases, lints them, and counts what is caught.

One tree carries many mutants, in functions of their own, and is scanned once; what a mutant
does to another is a miss or an alarm like any other. Run as
``python -m tests.mutations.score --seed 7``.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from specmap.codemap.finding import Finding, FindingStatus, LintReport
from specmap.codemap.graph import CodeMap
from specmap.codemap.source import file_of, qualname_of
from specmap.compare.renames import find_renames
from specmap.lint.changed import with_changes
from specmap.lint.engine import lint_map
from specmap.lint.known import Before, accept, known_of
from specmap.lint.rulebook import GRAPH_LOST, GRAPH_UNTOLD, load_folder
from specmap.pipeline import scan_tree
from specmap.scan.vocabulary import rules_folder
from tests.mutations.capturefaults import CAPTURE_FAULTS
from tests.mutations.edits import apply
from tests.mutations.faults import FAULTS, Mutant, Release
from tests.mutations.harmless import HARMLESS, Change
from tests.mutations.lossfaults import LOSS_FAULTS
from tests.mutations.replayfaults import REPLAY_FAULTS
from tests.releases.trees import checkout_of

RULES = load_folder(rules_folder())
_LOST = next(rule for rule in RULES if rule.id == GRAPH_LOST)
RELEASES = ("0.5.9", "0.5.12", "0.5.23")
# Faults that cut a pass or a runner out of the map stand in a tree of their own.
_CUTTING = ("SPM113", "SPM115", "SPM101", "SPM105", "SPM106", "SPM109")
# What takes a phase out of its graph for every batch.
_LOSSES = ("SPM113", "SPM101", "SPM105", "SPM106")
# What they leave may be seen anywhere.
_ANYWHERE = ("SPM105", "SPM106")


@dataclass
class Score:
    """What was injected and what came of it."""

    caught: list[Mutant] = field(default_factory=list)
    missed: list[Mutant] = field(default_factory=list)
    equivalent: list[Mutant] = field(default_factory=list)
    harmless: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)


def release_of(name: str) -> Release:
    """Return a release with the map of its untouched tree."""
    return Release(scan_tree(f"sglang=={name}"), Path(checkout_of(name).root))


def lint(codemap: CodeMap) -> LintReport:
    """Run all rules over a map; no comment suppresses anything."""
    report = lint_map(codemap, RULES, source=lambda file: None, known=RULES)
    assert not report.crashes, report.crashes
    return report


@contextmanager
def copied(release: Release) -> Iterator[Release]:
    """A copy of a release's tree that can be changed, under the map of the untouched one."""
    with tempfile.TemporaryDirectory(prefix="specmap-mutants-") as name:
        shutil.copytree(release.root / "sglang", Path(name, "sglang"), ignore=_only_python)
        yield Release(release.codemap, Path(name))


def fresh(release: Release) -> list[Finding]:
    """Return the findings that a changed tree adds to its release, as ``lint --base`` would."""
    old, new = release.codemap, scan_tree(release.root, use_cache=False)
    renames = find_renames(old, new)
    before = Before(
        known_of(lint(old)), renames, frozenset(qualname_of(f.id) for f in old.functions)
    )
    now = frozenset(qualname_of(f.id) for f in new.functions)
    report = accept(lint(new), before, "was there before", now)
    origin = Path(checkout_of(old.release or "").root)
    report = with_changes(report, (old, new), (_text(origin), _text(release.root)), renames)
    return [f for f in report.findings if f.status is FindingStatus.NEW]


def _text(root: Path) -> Callable[[str], str | None]:
    return lambda file: (root / file).read_text("utf-8") if (root / file).is_file() else None


def _only_python(folder: str, names: list[str]) -> set[str]:
    return {n for n in names if Path(folder, n).is_file() and not n.endswith(".py")}


def choose(
    release: Release, rng: random.Random, each: int, rules: Sequence[str] = ()
) -> list[Mutant]:
    """Pick up to ``each`` mutants of every fault; no two of a rule in one function."""
    chosen: list[Mutant] = []
    for fault in (*FAULTS, *REPLAY_FAULTS, *CAPTURE_FAULTS, *LOSS_FAULTS):
        sites = [m for m in fault(release, rng) if not rules or m.rule in rules]
        rng.shuffle(sites)
        taken: set[str] = set()
        for mutant in sites:
            if len(taken) == each:
                break
            place = f"{mutant.file}:{mutant.holder or mutant.edits[0].line}"
            if place not in taken:
                taken.add(place)
                chosen.append(mutant)
    return chosen


def batches(release: Release, mutants: Iterable[Mutant]) -> list[list[Mutant]]:
    """Spread mutants over trees: one in a function, and cutting ones apart from the rest."""
    trees: list[tuple[bool, set[str], list[Mutant]]] = []
    for mutant in mutants:
        cutting = mutant.rule in _CUTTING
        lines = [(mutant.file, edit.line) for edit in mutant.edits]
        lines += [(span.file, span.line) for span in mutant.near]
        places = {f"{file}:{_around(release, file, line)}" for file, line in lines}
        if cutting:
            places = {mutant.file}
        # A loss has one cause: two faults that lose the same phase stand in two trees.
        if mutant.rule in (GRAPH_LOST, GRAPH_UNTOLD, "SPM106"):
            places.add(GRAPH_LOST)
        tree = next((t for t in trees if t[0] is cutting and not t[1] & places), None)
        if tree is None:
            tree = (cutting, set(), [])
            trees.append(tree)
        tree[1].update(places)
        tree[2].append(mutant)
    return [found for _, _, found in trees]


def _around(release: Release, file: str, line: int) -> str:
    """The function around a line."""
    spans = [f for f in release.codemap.functions if f.span.file == file]
    inside = [f for f in spans if f.span.line <= line <= f.span.end_line]
    return max(inside, key=lambda f: f.span.line).id if inside else str(line)


def mutate(release: Release, mutants: Sequence[Mutant]) -> None:
    """Give a tree all the mutants."""
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    for file, group in sorted(by_file.items()):
        path = release.root / file
        text = apply(path.read_text("utf-8"), [edit for m in group for edit in m.edits])
        path.write_text(text, "utf-8")


def judge(mutants: Sequence[Mutant], findings: Sequence[Finding], score: Score) -> None:
    """Sort mutants into caught, missed and equivalent; what belongs to none is an alarm."""
    used: set[int] = set()
    for mutant in mutants:
        own = [f for f in findings if _tells(mutant, f)]
        used.update(map(id, own))
        if own:
            score.caught.append(mutant)
        elif mutant.equivalent:
            score.equivalent.append(mutant)
        else:
            score.missed.append(mutant)
    missed = [m for m in mutants if m in score.missed]
    said = "; ".join(f"missed {m.rule} {m.file}:{m.edits[0].line} {m.what}" for m in missed)
    sys.stderr.write(f"a tree with {len(mutants)} mutants: {said or 'all caught'}\n")
    files = {mutant.file for mutant in mutants}
    for finding in findings:
        if id(finding) not in used and finding.match.span.file not in files:
            score.alarms.append(_line(finding))
            sys.stderr.write(f"false alarm {score.alarms[-1]}\n")


def _tells(mutant: Mutant, finding: Finding) -> bool:
    """A phase that lost its graph is told once: by the fault's own rule or as the loss."""
    at_edit = finding.match.span.file == mutant.file
    if finding.rule.id == GRAPH_LOST and mutant.rule in _LOSSES and at_edit:
        return True
    # What is left of a pass without its replay is another rule's finding at the same place.
    told_by_any = mutant.rule in (GRAPH_LOST, "SPM106")
    if told_by_any and finding.rule.topic == _LOST.topic and at_edit:
        return True
    return finding.rule.id == mutant.rule and _is_of(mutant, finding)


def _is_of(mutant: Mutant, finding: Finding) -> bool:
    match = finding.match
    if mutant.holder:
        return match.holder == mutant.holder
    places = [match.span, *(step.span for step in match.related)]
    files = {place.file for place in places} | set(map(file_of, match.workers))
    return mutant.file in files or mutant.rule in _ANYWHERE


def _line(finding: Finding) -> str:
    span = finding.match.span
    return f"{span.file}:{span.line} {finding.rule.id} {finding.match.message}"


def run(names: Sequence[str], seed: int, each: int, rules: Sequence[str] = ()) -> Score:
    """Score the rules, or some of them, on mutants of some releases."""
    score = Score()
    for name in names:
        release = release_of(name)
        if not rules:
            _harmless(release, random.Random(f"{seed}/{name}/harmless"), score)
        rng = random.Random(f"{seed}/{name}")
        for group in batches(release, choose(release, rng, each, rules)):
            with copied(release) as tree:
                mutate(tree, group)
                judge(group, fresh(tree), score)
    return score


def _harmless(release: Release, rng: random.Random, score: Score) -> None:
    """Give a tree all the edits that change no behaviour; any finding is an alarm."""
    with copied(release) as tree:
        done = [edit.__name__ for edit in HARMLESS if _change(tree, edit(tree, rng))]
        alarms = [f"harmless edits: {_line(f)}" for f in fresh(tree)]
    said = f"{release.codemap.release}: {', '.join(done)}"
    score.harmless.append(said)
    score.alarms += alarms
    sys.stderr.write("\n".join([f"a tree with harmless edits, {said}", *alarms]) + "\n")


def _change(tree: Release, change: Change) -> bool:
    """Write the new texts; the next edit reads them."""
    for file, text in change.items():
        (tree.root / file).write_text(text, "utf-8")
    tree.forget()
    return bool(change)


def main() -> int:
    """Print the score; 1 when less than 95 in 100 are caught or anything is a false alarm."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--each", type=int, default=2, help="mutants of a rule in one release")
    parser.add_argument("--releases", nargs="+", default=RELEASES)
    parser.add_argument("--rules", nargs="+", default=(), help="only these, without harmless edits")
    options = parser.parse_args()
    score = run(options.releases, options.seed, options.each, options.rules)
    return show(score)


def show(score: Score) -> int:
    """Print a score and return the exit code."""
    sys.stdout.write("\n".join(_lines(score)) + "\n")
    total = len(score.caught) + len(score.missed)
    return 0 if total and len(score.caught) >= 0.95 * total and not score.alarms else 1


def _lines(score: Score) -> Iterator[str]:
    rules = sorted({m.rule for m in [*score.caught, *score.missed, *score.equivalent]})
    for rule in rules:
        caught = sum(m.rule == rule for m in score.caught)
        missed = [m for m in score.missed if m.rule == rule]
        yield f"{rule}  {caught}/{caught + len(missed)}"
        yield from (f"    missed {m.file}:{m.edits[0].line} {m.what}" for m in missed)
    for mutant in score.equivalent:
        place = f"{mutant.file}:{mutant.edits[0].line}"
        yield f"equivalent {mutant.rule} {place}: {mutant.equivalent}"
    for line in score.harmless:
        yield f"edits that change no behaviour, in one tree: {line}"
    yield from (f"false alarm {alarm}" for alarm in score.alarms)
    total = len(score.caught) + len(score.missed)
    yield f"caught {len(score.caught)} of {total} over {len(rules)} rules"


if __name__ == "__main__":
    raise SystemExit(main())
