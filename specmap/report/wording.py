"""What the renderers say alike: verdict words, short paths, guards."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from posixpath import basename, commonpath, dirname

from specmap.codemap.condition import All, AnyOf, Condition, all_of, negate
from specmap.codemap.graph import Arm, CodeMap, Guard, Phase
from specmap.codemap.source import Span

DEPENDS = "depends"
_NAME = re.compile(r"[\w.]+(\(\))?")


@dataclass(frozen=True, slots=True)
class Places:
    """Prints spans without ``root``, the folder that holds every file of the map.

    ``unique`` holds the file names that only one file of the map has.
    """

    root: str
    unique: frozenset[str]

    @classmethod
    def of(cls, codemap: CodeMap) -> Places:
        """Take the folder from the files of the map, and of its workers where it lists none."""
        files = {source.file for source in codemap.files}
        files = files or {worker.span.file for worker in codemap.workers}
        folders = [dirname(file) for file in files]
        names = Counter(map(basename, files))
        unique = frozenset(name for name, count in names.items() if count == 1)
        return cls(commonpath(folders) if folders else "", unique)

    def file(self, path: str) -> str:
        """Return a file's path below the root."""
        return path.removeprefix(f"{self.root}/")

    def show(self, span: Span | None) -> str:
        """Return ``path:line`` below the root; nothing for no span."""
        return "" if span is None else f"{self.file(span.file)}:{span.line}"

    def brief(self, span: Span | None) -> str:
        """Return ``file:line`` without the folder, where the name alone says which file."""
        if span is None or basename(span.file) not in self.unique:
            return self.show(span)
        return f"{basename(span.file)}:{span.line}"


def base_hint(target: str) -> str:
    """Name the verb that says what a tree on disk changed, "" for the tree of a release."""
    kind, _, version = target.partition("-")
    if not kind.startswith("path:") or not version:
        return ""
    return f"what this tree changed: specmap lint TREE --base {kind[5:]}=={version}"


def verdict_word(phase: Phase) -> str:
    """Return the verdict, or ``depends``."""
    return DEPENDS if phase.verdict is None else phase.verdict.value


def endings(phase: Phase, between: str = " or ") -> str:
    """Return the ways in which a phase can end, such as ``graph or eager``."""
    return between.join(dict.fromkeys(arm.kind.value for arm in phase.arms))


def guard_text(guard: Guard) -> str:
    """Return a guard as the test that holds on its arm."""
    if guard.branch:
        return guard.text
    opposite = guard.text.removeprefix("not ")
    if opposite != guard.text and _NAME.fullmatch(opposite):
        return opposite
    simple = guard.text.replace("_", "").replace(".", "").isalnum()
    return f"not {guard.text}" if simple else f"not ({guard.text})"


def after_refusal(arm: Arm, phase: Phase) -> Condition | None:
    """Return what an arm asks besides that the graph is refused, or None if it does not ask that.

    A phase's eager arms repeat its whole graph condition negated; said in words it is short.
    """
    refused = negate(phase.graph_when)
    if phase.graph_when in (All(()), AnyOf(())):
        return None
    if arm.condition == refused:
        return All(())
    parts = refused.terms if isinstance(refused, All) else (refused,)
    if not isinstance(arm.condition, All) or not set(parts) <= set(arm.condition.terms):
        return None
    return all_of(*(term for term in arm.condition.terms if term not in parts))
