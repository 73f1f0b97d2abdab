"""From a checkout to a code map: finds the workers, walks them, and records what was met."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specmap.codemap.graph import CodeMap
from specmap.errors import TargetError
from specmap.scan.checkout import Checkout
from specmap.scan.index import Tree
from specmap.scan.mapping import MapBuilder
from specmap.scan.resolver import Resolver
from specmap.scan.vocabulary import load_vocabulary
from specmap.scan.workers import WorkerFinder

Progress = Callable[[str, int, int], None]


def scan(
    checkout: Checkout,
    *,
    platform: str = "cuda",
    progress: Progress | None = None,
    vocabulary: Path | None = None,
) -> CodeMap:
    """Map the speculative workers of a checkout.

    ``platform`` settles the tests that ask for it, so that dead arms are cut.
    ``vocabulary`` names another file of SGLang's names. ``progress`` is told the step, how
    many workers are done and how many there are.

    Raises:
        TargetError: the tree has no scheduler or forward modes that the vocabulary knows.
        RulesError: the vocabulary cannot be read.
    """
    words = load_vocabulary(vocabulary)
    tree = Tree(checkout.root, words.package)
    resolver = Resolver(tree, words, platform)
    finder = WorkerFinder(resolver)
    if not finder.schedulers:
        names = ", ".join(sorted(words.scheduler))
        raise TargetError(_nothing(checkout, f"no scheduler class ({names})", tree))
    if not finder.driven:
        entry = ", ".join(sorted(words.entry))
        raise TargetError(_nothing(checkout, f"no worker that the scheduler calls ({entry})", tree))
    builder = MapBuilder(resolver, finder)
    total = len(finder.driven)
    for index, driven in enumerate(finder.driven):
        if progress is not None:
            progress(f"walk {driven.instance.cls.name}", index, total)
        builder.add(driven)
    if progress is not None:
        progress("write the map", total, total)
    return builder.finish(checkout)


def _nothing(checkout: Checkout, what: str, tree: Tree) -> str:
    """One line: what is missing, where, and what to do."""
    if tree.problems:
        first = tree.problems[0]
        where = first.file if first.line is None else f"{first.file}:{first.line}"
        return f"{checkout.label}: {what}; {where} {first.message}: repair it and scan again"
    return (
        f"{checkout.label}: {what}; if the fork renamed it, add the name to vocabulary.toml"
    )
