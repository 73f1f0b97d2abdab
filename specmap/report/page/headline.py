"""The sentence on top: what is wrong and what to do, or that nothing is. Never a guess."""

from __future__ import annotations

from collections import Counter

from specmap.codemap.condition import Atom, AtomKind, atoms_of
from specmap.codemap.finding import LintReport
from specmap.codemap.graph import CodeMap
from specmap.codemap.outcome import CYCLE
from specmap.codemap.rule import Severity
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.report.page.headline_launch import changes, of_launch
from specmap.report.page.headline_run import of_run
from specmap.report.page.sentence import SHOWN, Headline, count, explained, listed, told
from specmap.report.page.subject import Subject
from specmap.report.page.ways import eager_ways


def headline(subject: Subject) -> Headline:
    """Return what the run says, else the launch, else the source alone."""
    if subject.run is not None:
        made = of_run(subject.run, subject)
        if made.level != "ok":
            changes(made, subject, subject.limits if made.todo else ())
        made.because[:0] = [(note, None) for note in subject.notes]
    elif subject.outcome is not None:
        made = of_launch(subject, subject.outcome)
    else:
        made = _of_map(subject)
    unread = [subject.codemap.unread] if subject.codemap.partial else []
    unread += subject.run.damage if subject.run is not None else ()
    if unread:
        made.because += [(text, None) for text in unread]
        made.level = "unknown" if made.level == "ok" else made.level
    _errors(made, subject.lint)
    return made


def _errors(made: Headline, report: LintReport | None) -> None:
    """Count the errors of lint, which concern every launch of the tree, but for those told."""
    errors = [
        f
        for f in (report.new if report else ())
        if f.severity is Severity.ERROR and told(f) not in made.because
    ]
    if errors:
        names = Counter(f"{f.rule.id} {f.rule.name}" for f in errors)
        shown = ", ".join(f"{name} ({times})" for name, times in names.most_common(SHOWN))
        text = f"besides, lint finds {count(len(errors), 'error')} in the tree: {shown}"
        made.because.append((text, None))


def _of_map(subject: Subject) -> Headline:
    codemap = subject.codemap
    if not codemap.workers:
        return Headline("unknown", "The tree has no speculative worker that the scan can tell.")
    phases = [(w.name, p) for w in codemap.workers for p in w.phases if p.name in CYCLE and p.arms]
    never = [(name, p) for name, p in phases if p.verdict is Verdict.EAGER]
    verify = [name for name, p in never if p.name is PhaseName.VERIFY]
    depends = sum(p.verdict is None for _, p in phases)
    if verify:
        made = Headline("bad", f"verify of {listed(verify)} never replays, whatever the launch.")
    else:
        made = Headline(
            "unknown",
            f"Open until a launch is given: whether a graph replays depends on it in {depends} of "
            f"the {len(phases)} decode phases of {count(len(codemap.workers), 'worker')}.",
        )
    made.because += [
        (f"{p.name} of {name} never replays, whatever the launch: {text}", place)
        for name, p in never
        for text, place in eager_ways(p)[:1]
    ]
    for name in verify:
        explained(made, subject, name, [PhaseName.VERIFY])
    made.todo.append(
        "give the launch command with --args or --args-file, or a recorded run with --run"
    )
    _settling(made, codemap)
    return made


def _settling(made: Headline, codemap: CodeMap) -> None:
    """Name the tests of the launch that most phases ask for."""
    asked: Counter[Atom] = Counter()
    for phase in (p for worker in codemap.workers for p in worker.phases if p.name in CYCLE):
        atoms = set(atoms_of(phase.graph_when))
        asked.update(atom for atom in atoms if atom.kind is AtomKind.LAUNCH)
    first = sorted(asked.items(), key=lambda item: (-item[1], item[0].text))[:SHOWN]
    made.because += [
        (f"{count(times, 'phase')} ask for {' '.join(atom.text.split())}", atom.span)
        for atom, times in first
    ]
