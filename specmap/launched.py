"""Composes the steps for one launch: tree and command -> map and settings -> outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from specmap.codemap.graph import CodeMap
from specmap.codemap.outcome import CYCLE, Assumption, LoggedBatch, Outcome
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.errors import SpecmapError
from specmap.launchtext import command_of, given_of, inputs_of, model_config
from specmap.pipeline import Progress, resolved, scan_resolved
from specmap.witness import largest_logged, with_log

if TYPE_CHECKING:
    from specmap.scan.launch.arguments import Argument
    from specmap.scan.launch.evaluator import Evaluator
    from specmap.scan.launch.library import Library
    from specmap.scan.launch.tables import Inputs
    from specmap.scan.vocabulary import Vocabulary
    from specmap.verdicts.outcome import Question
    from specmap.verdicts.phases import Judge
    from specmap.verdicts.words import VerdictWords
    from specmap.why.changes import Setup

# Memory of the smallest and the largest GPU, in MiB: what both capture, every one captures.
_SMALLEST_MIB, _LARGEST_MIB = 8 * 1024, 288 * 1024


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch as the caller states it; all of it is optional but ``text``.

    ``text`` is a command, arguments alone, or a config; ``server`` counts from 1 where it
    starts several. ``env`` adds to the variables that the text sets. ``model_config`` and
    ``draft_config`` name a config.json or its folder. ``gpu_memory`` is in GB as printed on
    the card, ``sm`` the compute capability times ten. ``batch`` and ``expect`` are as on the
    command line (``bs=4``, ``verify=GRAPH``); ``folder`` is where named files are looked for.
    ``logged``: the text shows settings that SGLang has derived in part, as a run's header does.
    ``source`` is what errors call the text.

    Raises:
        SpecmapError: a value is of another type, or a number is not above 0 and finite.
    """

    text: str
    server: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    model_config: str | Path | None = None
    draft_config: str | Path | None = None
    gpu_memory: float | None = None
    sm: int | None = None
    tp: int | None = None
    batch: str = ""
    concurrency: int | None = None
    expect: str = ""
    folder: str | Path = Path()
    logged: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        """Check what the options of the command line and a script state alike."""
        for name, (kinds, said) in _STATED.items():
            value = getattr(self, name)
            optional = value is None and type(self).__dataclass_fields__[name].default is None
            if not optional and (isinstance(value, bool) or not isinstance(value, kinds)):
                raise SpecmapError(f"{name} of a launch is {value!r}: expected {said}")
        for name in ("gpu_memory", "sm", "tp", "concurrency"):
            number = getattr(self, name)
            if number is not None and not 0 < number < inf:
                raise SpecmapError(f"--{name.replace('_', '-')} must be above 0 and finite")
        for name, text in self.env.items():
            if not isinstance(name, str) or not isinstance(text, str):
                raise SpecmapError(f"env of a launch has {name!r}: {text!r}: expected two texts")


_TEXT, _WHOLE = (str, "a text"), (int, "a whole number")
_PLACE = ((str, Path), "a path")
_STATED: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "text": _TEXT,
    "source": _TEXT,
    "server": _WHOLE,
    "env": (Mapping, "a mapping of names to texts"),
    "model_config": _PLACE,
    "draft_config": _PLACE,
    "gpu_memory": ((int, float), "a number"),
    "sm": _WHOLE,
    "tp": _WHOLE,
    "batch": (str, "a text such as 'bs=4'"),
    "concurrency": _WHOLE,
    "expect": (str, "a text such as 'verify=GRAPH'"),
    "folder": _PLACE,
}
"""The kinds of value that a launch takes, and what they are called."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A map and the settings of one launch, ready to be judged.

    Where a model is not given, ``models`` says what is assumed of it: ``evaluator`` and
    ``inputs`` then hold that too, and ``sure`` does not. ``stated`` is what the launch itself
    gives; of a ``logged`` one the others lack what SGLang derives again. ``batches`` are the decode
    batches of a log, and ``named`` the batch size that the caller asks about.
    """

    codemap: CodeMap
    evaluator: Evaluator
    words: VerdictWords
    question: Question
    inputs: Inputs
    fresh: Callable[[Inputs], Evaluator]
    sure: Evaluator
    stated: Inputs
    models: tuple[Assumption, ...] = ()
    logged: bool = False
    batches: tuple[LoggedBatch, ...] = ()
    named: int | None = None
    arguments: tuple[Argument, ...] = ()

    def judged(self) -> Outcome:
        """Return the outcome, with what rests on assumed models marked, beside the log."""
        return with_log(self._judged(), self.codemap, self.batches, self.named)

    def _judged(self) -> Outcome:
        from specmap.verdicts.assuming import doubted, marked
        from specmap.verdicts.outcome import judge

        if not self.models:
            return judge(self.codemap, self.evaluator, self.words, self.question)
        found = judge(self.codemap, self.evaluator, self.words, self.question, lambda: self.sure)
        if found.refusal is not None and not doubted(found, self.evaluator):
            return replace(found, assumptions=(*self.models, *found.assumptions))
        question = replace(self.question, least=())
        return marked(judge(self.codemap, self.sure, self.words, question), found, self.models)

    def settings(self) -> Evaluator:
        """Return what the outcome rests on: assumed models may not fit the launch."""
        refused = self.evaluator.facts().refused is not None
        return self.sure if refused and self.sure.facts().refused is None else self.evaluator

    def setup(self) -> Setup:
        """Return the launch as one whose settings can be changed."""
        from specmap.why.changes import Setup

        settings = self.settings()
        ways = {"value": dict[str, str](), "flag": dict[str, str](), "list": dict[str, str]()}
        for argument in self.arguments:
            if argument.refused is None and argument.deprecated is None:
                ways[argument.kind].setdefault(argument.field, argument.flags[0])
        return Setup(
            self.codemap,
            self.words,
            self.question.batch,
            settings.inputs,
            frozenset(settings.facts().facts),
            self.fresh,
            settings.pool_range()[0],
            {**ways["list"], **ways["value"]},
            ways["flag"],
        )

    def court(self) -> Judge:
        """Return the judge of the phases, over the same settings as the outcome."""
        from specmap.verdicts.outcome import court_of

        settings = self.settings()
        least = self.question.least if settings is self.evaluator else ()
        return court_of(settings, self.words, self.question.batch, least)


def judge_launch(
    target: str | None,
    launch: Launch,
    *,
    platform: str = "cuda",
    use_cache: bool = True,
    progress: Progress | None = None,
) -> Outcome:
    """Return what a launch command makes of a SGLang tree.

    Raises:
        TargetError: there is no such tree.
        ArgumentError: the release does not know an argument, or refuses its value.
        SpecmapError: the command, the batch or a file cannot be read.
    """
    with prepared(
        target, launch, platform=platform, use_cache=use_cache, progress=progress
    ) as asked:
        return asked.judged()


def narrowed(outcome: Outcome, phases: Sequence[str]) -> Outcome:
    """Return an outcome with these phases alone; with all where none are named."""
    if not phases:
        return outcome
    workers = tuple(
        replace(worker, phases=tuple(p for p in worker.phases if p.name in phases))
        for worker in outcome.workers
    )
    return replace(outcome, workers=workers)


def undecided(outcome: Outcome) -> str:
    """Say that no phase of the decode cycle can be told, "" where one can.

    A check before a deployment must not take this for success.
    """
    cycle = [p.verdict for w in outcome.workers for p in w.phases if p.name in CYCLE]
    if set(cycle) - {Verdict.NOT_RUN} != {Verdict.UNKNOWN}:
        return ""
    return "no phase of the decode cycle can be told: state what is listed as not known"


@contextlib.contextmanager
def prepared(
    target: str | None,
    launch: Launch,
    *,
    platform: str = "cuda",
    use_cache: bool = True,
    progress: Progress | None = None,
) -> Iterator[Prepared]:
    """Read the tree and the command, and evaluate the settings.

    Raises:
        SpecmapError: see :func:`judge_launch`.
    """
    from specmap.scan.launch.library import Library
    from specmap.scan.vocabulary import load_vocabulary

    vocabulary = load_vocabulary()
    check(vocabulary, launch)
    with resolved(target, use_cache=use_cache, progress=progress) as tree:
        codemap = scan_resolved(tree, platform=platform, progress=progress)
        library = Library(tree.checkout.root, vocabulary.package)
        yield ready(codemap, library, vocabulary, launch)


def check(vocabulary: Vocabulary, launch: Launch) -> None:
    """Read all that needs no tree, so that a slip is told before a scan.

    Raises:
        SpecmapError: see :func:`judge_launch`.
    """
    from specmap.verdicts.truths import read_batch
    from specmap.verdicts.words import load_words

    command_of(vocabulary, launch)
    read_batch(launch.batch, load_words())
    read_expectations(launch.expect)
    model_config(launch.model_config)
    model_config(launch.draft_config)


def ready(codemap: CodeMap, library: Library, vocabulary: Vocabulary, launch: Launch) -> Prepared:
    """Read the command against the tree and evaluate its settings.

    Raises:
        SpecmapError: see :func:`judge_launch`.
    """
    from specmap.scan.launch.declared import read as read_declared
    from specmap.scan.launch.evaluator import Evaluator
    from specmap.scan.launch.pycall import LOGGED
    from specmap.scan.launch.variables import unread
    from specmap.verdicts.assuming import assumed_models, with_plain_models
    from specmap.verdicts.logged import rederived
    from specmap.verdicts.outcome import Question, at_load
    from specmap.verdicts.truths import read_batch
    from specmap.verdicts.words import load_words

    words = load_words()
    batch = read_batch(launch.batch, words)
    expected = read_expectations(launch.expect)
    declarations = read_declared(library.root, vocabulary)
    command, given = given_of(declarations, codemap.release, vocabulary, launch)
    stated = inputs_of(declarations, command, given, launch, words, codemap.platform)

    def fresh(changed: Inputs) -> Evaluator:
        return Evaluator(library.root, vocabulary, changed, library)

    logged = launch.logged or LOGGED in given.notes
    lists = [n for n in words.limits if logged and isinstance(stated.values.get(n), tuple)]
    own, _ = rederived(stated, lists, fresh)
    draft = own.values.get(vocabulary.launch_words.draft_path) is not None
    inputs = with_plain_models(own, words, draft=draft)
    models = assumed_models(own, inputs, words)
    evaluator = fresh(inputs)
    sure = fresh(own) if models else evaluator
    asked, told = largest_logged(batch, launch.concurrency, command.batches)
    asked = at_load(asked, launch.concurrency, evaluator)
    question = Question(
        command=command.argv,
        batch=asked,
        concurrency=launch.concurrency,
        expected=expected,
        least=least_captured(evaluator, inputs, fresh),
        notes=(
            *told,
            *given.notes,
            *unread(library.root, vocabulary.package, command.env).values(),
        ),
    )
    return Prepared(
        codemap, evaluator, words, question, inputs, fresh, sure, stated, models, logged,
        batches=command.batches, named=asked.size if batch.size or launch.concurrency else None,
        arguments=declarations.arguments,
    )  # fmt: skip


def least_captured(
    evaluator: Evaluator, inputs: Inputs, fresh: Callable[[Inputs], Evaluator]
) -> tuple[int, ...]:
    """Return batch sizes that are captured on every GPU, where the GPU is not known."""
    if inputs.gpu_memory_mib is not None or evaluator.capture_sizes().known:
        return ()
    found: set[int] | None = None
    for mib in (_SMALLEST_MIB, _LARGEST_MIB):
        sizes = fresh(replace(inputs, gpu_memory_mib=mib)).capture_sizes().value
        if not isinstance(sizes, tuple):
            return ()
        held = {size for size in sizes if isinstance(size, int)}
        found = held if found is None else found & held
    return tuple(sorted(found or ()))


def read_expectations(text: str) -> dict[PhaseName, Verdict]:
    """Read ``verify=GRAPH,draft=GRAPH``.

    Raises:
        SpecmapError: no such phase or verdict.
    """
    found: dict[PhaseName, Verdict] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, verdict = part.partition("=")
        if name not in set(PhaseName):
            raise SpecmapError(f"--expect {part}: no phase {name!r}; {', '.join(PhaseName)}")
        if verdict not in set(Verdict):
            raise SpecmapError(f"--expect {part}: no verdict {verdict!r}; {', '.join(Verdict)}")
        if found.setdefault(PhaseName(name), Verdict(verdict)) != verdict:
            raise SpecmapError(f"--expect {part}: {name} is also expected {found[PhaseName(name)]}")
    return found
