"""Which class or function of an old map is which of a new one, under another name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from specmap.codemap.graph import ClassRecord, CodeMap
from specmap.codemap.source import qualname_of
from specmap.compare.attributes import renamed_words, said

# How much of what two things do must be the same to call them one; things that also keep
# most of their name may have gained and lost more.
_SAME = 0.7
_KEPT = 0.5
_NAMED_ALIKE = 0.75
# What says little, because many have it, weighs little: this much must be said in all.
_TELLING = 0.75


@dataclass(frozen=True, slots=True)
class Renames:
    """New dotted names by old: ``classes`` and ``functions``; ``words`` are their last parts.

    ``attributes`` are single names of anything else: attributes, parameters, locals.
    """

    classes: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def everything(self) -> Mapping[str, str]:
        """Every single name that changed."""
        return {**self.attributes, **self.words}

    def qualname(self, old: str) -> str:
        """Return what a dotted name of the old map is called in the new one."""
        known = self.functions.get(old) or self.classes.get(old)
        if known is not None:
            return known
        owner, _, name = old.rpartition(".")
        return f"{self.classes[owner]}.{name}" if owner in self.classes else old


def find_renames(old: CodeMap, new: CodeMap) -> Renames:
    """Compare two maps: classes by their methods, functions by what they call and who calls."""
    if _say_the_same(old, new):
        return Renames()
    classes = _classes(old, new)
    functions = _functions(old, new, classes)
    words: dict[str, str] = {}
    for before, after in sorted([*classes.items(), *functions.items()]):
        first, second = before.rpartition(".")[2], after.rpartition(".")[2]
        if first != second:
            words.setdefault(first, second)
    found = Renames(classes, functions, words)
    attributes = renamed_words(old, new, found.qualname, alike)
    return replace(found, attributes={a: b for a, b in attributes.items() if a not in words})


def _say_the_same(old: CodeMap, new: CodeMap) -> bool:
    """Whether all names and texts of the two maps are the same: then nothing was renamed."""
    classes = [{qualname_of(record.id) for record in m.classes} for m in (old, new)]
    functions = [{qualname_of(record.id) for record in m.functions} for m in (old, new)]
    same = classes[0] == classes[1] and functions[0] == functions[1]
    return same and said(old) == said(new)


def _classes(old: CodeMap, new: CodeMap) -> dict[str, str]:
    before, after = _members(old.classes), _members(new.classes)
    return _best(before, after, {name: sorted(after.keys() - before.keys()) for name in before})


def _members(classes: Iterable[ClassRecord]) -> dict[str, Counter[str]]:
    return {
        qualname_of(record.id): Counter(
            [name for name, _ in record.methods if not name.startswith("__")]
            + [f"is a {base}" for base in record.bases]
        )
        for record in classes
    }


def _functions(old: CodeMap, new: CodeMap, classes: Mapping[str, str]) -> dict[str, str]:
    before, after = _profiles(old), _profiles(new)
    names = {name: _moved(name, classes) for name in before}
    come: dict[str, list[str]] = defaultdict(list)
    for name in sorted(after.keys() - set(names.values())):
        come[name.rpartition(".")[0]].append(name)
    # Who calls a function that was taken out of it is still the same.
    known = {name.rpartition(".")[2] for name in names.values()}
    taken_out = {f"calls {n}" for n in (a.rpartition(".")[2] for a in after) if n not in known}
    for profile in after.values():
        for call in taken_out & profile.keys():
            del profile[call]
    candidates = {
        name: [] if now in after else come[now.rpartition(".")[0]] for name, now in names.items()
    }
    return _best(before, after, candidates)


def _moved(name: str, classes: Mapping[str, str]) -> str:
    owner, _, method = name.rpartition(".")
    return f"{classes[owner]}.{method}" if owner in classes else name


def _profiles(codemap: CodeMap) -> dict[str, Counter[str]]:
    """Return, for each function, the names it calls and the functions that call it."""
    profiles: dict[str, Counter[str]] = {
        qualname_of(function.id): Counter() for function in codemap.functions
    }
    for edge in codemap.edges:
        caller = qualname_of(edge.caller)
        if caller in profiles:
            profiles[caller][f"calls {edge.text.rpartition('.')[2]}"] += 1
        for callee in edge.callees:
            name = qualname_of(callee)
            if name in profiles:
                profiles[name][f"in {caller.rpartition('.')[2]}"] += 1
    return profiles


def _best(
    before: Mapping[str, Counter[str]],
    after: Mapping[str, Counter[str]],
    candidates: Mapping[str, list[str]],
) -> dict[str, str]:
    """Take pairs from the best score down, each name once."""
    common = Counter(key for side in (before, after) for said in side.values() for key in said)
    scores = [
        (score, a, b)
        for a, others in candidates.items()
        if a not in after
        for b in others
        if (score := _score(a, before[a], b, after[b], common)) > 0
    ]
    found: dict[str, str] = {}
    taken: set[str] = set()
    for _, a, b in sorted(scores, key=lambda score: (-score[0], score[1], score[2])):
        if a not in found and b not in taken:
            found[a] = b
            taken.add(b)
    return dict(sorted(found.items()))


def _score(a: str, one: Counter[str], b: str, other: Counter[str], common: Counter[str]) -> float:
    """Return how sure it is that ``a`` became ``b``; 0 where it is not sure enough."""
    both = _weight(one & other, common)
    if both < _TELLING:
        return 0.0
    same = both / _weight(one | other, common)
    if same >= _SAME:
        return same
    kept = both / min(_weight(one, common), _weight(other, common))
    return kept * _SAME if kept >= _KEPT and alike(a, b) >= _NAMED_ALIKE else 0.0


def _weight(said: Counter[str], common: Counter[str]) -> float:
    return sum(2 * count / common[key] for key, count in said.items())


def alike(one: str, other: str) -> float:
    """Return how much of their last names two dotted names share, from 0 to 1."""
    first, second = one.rpartition(".")[2].lower(), other.rpartition(".")[2].lower()
    return SequenceMatcher(None, first, second).ratio()
