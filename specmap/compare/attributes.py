"""Attributes and locals that have another name: gone from one map, new in the other.

A word that no text of the new map holds became a word that no text of the old one holds when
both stand at the same place of texts that are otherwise the same, in the same function. It may
have become a word that other functions had before, if the function had it not and the two are
much alike. What is called, and what is capitalised, is no attribute: another operation is not
another name.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable

from specmap.codemap.graph import CodeMap
from specmap.codemap.source import canonical, qualname_of
from specmap.compare.matching import skeleton

_WORD = re.compile(r"[A-Za-z_]\w*")
_NAMED = re.compile(r"\b[a-z_]\w*\b(?!\()")

# Words that share this much are one name, spelled otherwise.
_ALIKE = 0.75

_Texts = dict[str, set[str]]


def renamed_words(
    old: CodeMap,
    new: CodeMap,
    holder: Callable[[str], str],
    alike: Callable[[str, str], float],
) -> dict[str, str]:
    """Return new words by old; ``holder`` gives a function's dotted name in the new map."""
    before, after = _texts(old), _texts(new)
    known, named = _words(before), _named(after)
    gone, come = _named(before) - _words(after), named - known
    votes: Counter[tuple[str, str]] = Counter()
    for name, texts in before.items():
        places = _by_skeleton(after.get(holder(name), set()))
        fresh = named - _words({name: texts})
        for text in texts:
            words = _WORD.findall(text)
            if not gone.isdisjoint(words):
                for other in places.get(skeleton(text), ()):
                    changed = _changed(words, _WORD.findall(other))
                    if all(
                        a in gone and (b in come or (b in fresh and alike(a, b) >= _ALIKE))
                        for a, b in changed
                    ):
                        votes.update(changed)
    found: dict[str, str] = {}
    order = sorted(votes, key=lambda pair: (-votes[pair], -alike(*pair), pair))
    for was, now in order:
        if was not in found and now not in found.values():
            found[was] = now
    return dict(sorted(found.items()))


def _changed(words: list[str], others: list[str]) -> set[tuple[str, str]]:
    return {(a, b) for a, b in zip(words, others, strict=True) if a != b}


def said(codemap: CodeMap) -> _Texts:
    """Return the source texts that a map holds, by the dotted name of their function."""
    texts: _Texts = defaultdict(set)
    for edge in codemap.edges:
        texts[qualname_of(edge.caller)].add(f"{edge.text}()")
        texts[qualname_of(edge.caller)].update(guard.text for guard in edge.guards)
    for sync in codemap.syncs:
        texts[qualname_of(sync.holder)].add(sync.operation)
    for flag in codemap.flags:
        texts[qualname_of(flag.holder)].add(flag.text)
    for decision in codemap.decisions:
        texts[qualname_of(decision.holder)].update(term.text for term in decision.terms)
    return dict(texts)


def _texts(codemap: CodeMap) -> _Texts:
    return {name: {canonical(text) for text in texts} for name, texts in said(codemap).items()}


def _words(texts: _Texts) -> set[str]:
    return {word for said in texts.values() for text in said for word in _WORD.findall(text)}


def _named(texts: _Texts) -> set[str]:
    """Return the words that name something; what a text consists of alone has no place in it."""
    return {
        word
        for said in texts.values()
        for text in said
        if not text.isidentifier()
        for word in _NAMED.findall(text)
    }


def _by_skeleton(texts: set[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for text in sorted(texts):
        found[skeleton(text)].append(text)
    return found
