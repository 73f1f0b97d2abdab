"""What one side of a page is made of: everything that the verbs found about one tree or run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from specmap.codemap.condition import Atom
from specmap.codemap.event import Run
from specmap.codemap.explanation import Alternative
from specmap.codemap.finding import LintReport
from specmap.codemap.graph import CodeMap
from specmap.codemap.launch import Fact, OriginKind
from specmap.codemap.outcome import Outcome, TermValue
from specmap.codemap.remedy import Attempt, FixReport, Rewrite
from specmap.codemap.verdict import PhaseName
from specmap.report.page.timeline import Recording
from specmap.verdicts.sizes import SizeTest

Values = Mapping[tuple[str, PhaseName], tuple[tuple[Atom, TermValue], ...]]
"""By worker id and phase: each test of the phase's ends, with its value before any toggle."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One side. ``None`` stands for what was not asked for or is not known.

    ``values`` and ``size_test`` come from the launch, or from what is assumed of a steady
    batch. ``source`` returns the text of a file of the tree. ``facts`` are all settings of the
    launch. ``changes`` are what would give a phase that lost its graph the graph back.
    ``rewrites`` are the whole catalogue, ``diff`` shows what an attempt changes.
    ``recordings`` go with the ranks of ``run`` by name. ``notes`` say what could not be done.
    ``limits`` are the settings that bound the captured batch sizes. ``tree`` is the tree as a
    command of specmap names it, "" where nobody did.
    """

    label: str
    codemap: CodeMap
    source: Callable[[str], str | None]
    values: Values
    size_test: Callable[[Atom], SizeTest | None]
    outcome: Outcome | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    changes: Mapping[PhaseName, tuple[Alternative, ...]] = field(default_factory=dict)
    lint: LintReport | None = None
    limits: tuple[str, ...] = ()
    tree: str = ""
    rewrites: tuple[Rewrite, ...] = ()
    fix: FixReport | None = None
    diff: Callable[[Attempt], str] = lambda attempt: ""
    run: Run | None = None
    run_name: str = ""
    notes: tuple[str, ...] = ()
    recordings: Mapping[str, Recording] = field(default_factory=dict)

    @property
    def telling(self) -> frozenset[str]:
        """The arguments that a command gives and those that decide how its phases end.

        A run's header gives all that there are, which says nothing.
        """
        given = {
            name
            for name, fact in self.facts.items()
            if self.run is None and any(o.kind is OriginKind.GIVEN for o in fact.origins)
        }
        terms = (value for values in self.values.values() for _, value in values)
        return frozenset(given | {fact.name for term in terms for fact in term.settings})
