"""The value of each test under one launch and one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specmap.codemap.condition import Atom
from specmap.codemap.launch import Answer
from specmap.codemap.outcome import CYCLE, TermSource, TermValue
from specmap.codemap.source import Span, canonical
from specmap.errors import SpecmapError
from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.library import Kept
from specmap.verdicts import sizetests
from specmap.verdicts.sizes import SizeTest
from specmap.verdicts.words import VerdictWords, stores

_STATED = {"yes": True, "no": False, "unknown": None}


@dataclass(frozen=True, slots=True)
class Batch:
    """What the caller says about the batch: its size, and which assumptions do not hold.

    ``stated`` maps an assumption's key to whether the property is there (None: not known).
    """

    size: int | None = None
    stated: Mapping[str, bool | None] = field(default_factory=dict)


def read_batch(text: str, words: VerdictWords) -> Batch:
    """Read ``bs=4,logprob=yes``.

    Raises:
        SpecmapError: an unknown key, or a value that is none.
    """
    size: int | None = None
    stated: dict[str, bool | None] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, _, value = part.partition("=")
        if key == "bs":
            if not value.isdecimal() or int(value) < 1:
                raise SpecmapError(f"--batch bs={value}: expected a number of requests, 1 or more")
            if size not in (None, int(value)):
                raise SpecmapError(f"--batch bs={size},bs={value}: one size; sweep takes several")
            size = int(value)
        elif key in words.reasons and value in _STATED:
            if stated.setdefault(key, _STATED[value]) is not _STATED[value]:
                raise SpecmapError(f"--batch {part}: {key} is given twice, as something else")
        elif key in words.reasons:
            raise SpecmapError(f"--batch {part}: expected {key}=yes, {key}=no or {key}=unknown")
        else:
            known = ", ".join(["bs", *words.reasons])
            raise SpecmapError(f"--batch {part}: no such property; there are {known}")
    return Batch(size, stated)


class Truths:
    """Answers tests of the phase ``phase``. Tests of the batch size stay open."""

    def __init__(self, evaluator: Evaluator, words: VerdictWords, batch: Batch) -> None:
        self.evaluator = evaluator
        self.words = words
        self.batch = batch
        self.used: set[str] = set()
        self.phase = ""
        self._sizes: dict[tuple[str, str, Span | None], SizeTest | None] = {}
        self._known: dict[tuple[str, str, Span | None], TermValue] = {}

    def size_test(self, atom: Atom) -> SizeTest | None:
        """Return how a test compares the batch size with the captured ones or with numbers."""
        key = (self.phase, atom.text, atom.span)
        if key not in self._sizes:
            other = self._settling(atom)
            self._sizes[key] = self._size_test(atom, atom.text) or (
                self._size_test(atom, other) if other is not None else None
            )
        return self._sizes[key]

    def _size_test(self, atom: Atom, text: str) -> SizeTest | None:
        names = _Names(self, atom)
        how = self.words.captured(text, names)
        if how is not None and self._is_captured(atom, how, text):
            return how
        return sizetests.read(text, names, lambda part: self._number(atom, part))

    def _is_captured(self, atom: Atom, how: str, text: str) -> bool:
        """Whether what a test compares the size with is what the launch says is captured."""
        largest = text.rpartition("self.")[2].strip()
        return self._stores_only(atom, self.words.listed) and (
            how == "one of" or self._stores_only(atom, {largest: self.words.largest})
        )

    def _stores_only(self, atom: Atom, expected: Mapping[str, frozenset[str]]) -> bool:
        """Whether the class around a test stores to attributes what is expected, if anything."""
        span = atom.span
        if span is None:
            return True
        return all(
            stores(kept.text, name, texts) or self._is_left_out(atom, kept)
            for name, texts in expected.items()
            for kept in self.evaluator.stored(name, span.file, span.line)
        )

    def _is_left_out(self, atom: Atom, kept: Kept) -> bool:
        """Whether a store stands under a test that goes the other way."""
        for text, holds in kept.under:
            file = atom.span.file if atom.span is not None else ""
            span = Span(file, kept.line, kept.line)
            assumed = self.words.assumption(self.phase, canonical(text))
            told = self._ask(replace(atom, span=span), text).truth
            if (assumed.value if assumed is not None and told is None else told) is (not holds):
                return True
        return False

    def _settling(self, atom: Atom) -> str | None:
        file = atom.span.file if atom.span is not None else ""
        return self.words.settling(self.phase, canonical(atom.text), file)

    def is_size(self, name: str, atom: Atom) -> bool:
        """Whether a name stands for the batch size where a test stands."""
        if name in self.words.batch_size or not name.isidentifier() or atom.span is None:
            return name in self.words.batch_size
        given = self.evaluator.bound(name, atom.span.file, atom.span.line)
        return given is not None and canonical(given) in self.words.batch_size

    def _number(self, atom: Atom, text: str) -> int | None:
        operands = self._ask(atom, text).operands
        value = operands[0].value if len(operands) == 1 and operands[0].known else None
        if type(value) is int:
            return value
        name = text.removeprefix("self.")
        return self.evaluator.constructed(name) if f"self.{name}" == text else None

    def key(self, atom: Atom) -> str:
        """Return the key of the assumption that settles a test, "" if none does."""
        assumed = self.words.assumption(self.phase, canonical(atom.text))
        taken = assumed is not None and self.value(atom).source is TermSource.ASSUMED
        return assumed.key if assumed is not None and taken else ""

    def value(self, atom: Atom) -> TermValue:
        """Return the value of a test, whatever the batch size is."""
        key = (self.phase, atom.text, atom.span)
        if key not in self._known:
            self._known[key] = self._value(atom)
        return self._known[key]

    def _value(self, atom: Atom) -> TermValue:
        text = canonical(atom.text)
        assumed = self.words.assumption(self.phase, text)
        if assumed is not None and assumed.key in self.batch.stated:
            there = self.batch.stated[assumed.key]
            # What is assumed is that the property is not there.
            value = None if there is None else assumed.value != there
            note = f"stated: {assumed.key}"
            return TermValue(atom.text, atom.span, value, TermSource.STATED, note)
        how = self.size_test(atom)
        # A prefill's batch is not the one that decodes.
        if isinstance(how, str) or (how is not None and self.phase in CYCLE):
            return TermValue(atom.text, atom.span, None, TermSource.SIZE)
        found = self._asked(atom, atom.text)
        other = self._settling(atom)
        if found.value is None and other is not None:
            found = replace(self._asked(atom, other), text=atom.text, note=f"as {other}")
        if found.value is None and assumed is not None:
            note = self.words.reasons[assumed.key]
            return TermValue(atom.text, atom.span, assumed.value, TermSource.ASSUMED, note)
        return found

    def _ask(self, atom: Atom, text: str) -> Answer:
        span = atom.span
        file, line = (span.file, span.line) if span is not None else ("", 0)
        answer = self.evaluator.truth(text, file, line)
        if answer.truth is None and line:
            # Its local names lead nowhere; as names of the running server they may.
            answer = self.evaluator.truth(text, file)
        return answer

    def _asked(self, atom: Atom, text: str) -> TermValue:
        span, answer = atom.span, self._ask(atom, text)
        source = TermSource.UNKNOWN if answer.truth is None else TermSource.LAUNCH
        return TermValue(
            atom.text, span, answer.truth, source, "", answer.reasons, answer.operands,
            answer.settings,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Names:
    """What stands for the batch size where a test stands."""

    truths: Truths
    atom: Atom

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.truths.is_size(name, self.atom)
