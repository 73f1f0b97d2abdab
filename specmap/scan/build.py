"""From a checkout to a code map: finds the workers, walks them, and records what was met."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from specmap.codemap.graph import CodeMap
from specmap.errors import TargetError
from specmap.scan.checkout import Checkout
from specmap.scan.excerpts import annotate
from specmap.scan.index import Tree
from specmap.scan.mapping import MapBuilder
from specmap.scan.resolver import Resolver
from specmap.scan.vocabulary import Vocabulary, load_vocabulary
from specmap.scan.workers import WorkerFinder

Progress = Callable[[str, int, int], None]
_STACK_BYTES = 512 << 20


def scan(
    checkout: Checkout,
    *,
    platform: str = "cuda",
    progress: Progress | None = None,
    vocabulary: Path | None = None,
    done: Callable[[Tree], None] | None = None,
) -> CodeMap:
    """Map the speculative workers of a checkout.

    ``platform`` settles the tests that ask for it, so that dead arms are cut.
    ``vocabulary`` names another file of SGLang's names. ``progress`` is told the step, how
    many workers are done and how many there are. ``done`` is given the tree as it was read.

    Raises:
        TargetError: the tree has no scheduler or forward modes that the vocabulary knows.
        RulesError: the vocabulary cannot be read.
    """
    with _without_collector(), _deep_stack() as pool:
        words = load_vocabulary(vocabulary)
        tree = Tree(checkout.root, words.package)
        codemap = pool.submit(_scan, checkout, platform, progress, words, tree).result()
    if done is not None:
        done(tree)
    return codemap


def _scan(
    checkout: Checkout,
    platform: str,
    progress: Progress | None,
    words: Vocabulary,
    tree: Tree,
) -> CodeMap:
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
    return annotate(builder.finish(checkout), tree)


@contextlib.contextmanager
def _deep_stack() -> Iterator[ThreadPoolExecutor]:
    """A thread with a stack for source that nests thousands of levels deep."""
    before = threading.stack_size(_STACK_BYTES)
    try:
        with ThreadPoolExecutor(1) as pool:
            yield pool
    finally:
        threading.stack_size(before)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Syntax trees are many objects without cycles: the collector only walks them in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _nothing(checkout: Checkout, what: str, tree: Tree) -> str:
    """One line: what is missing, where, and what to do."""
    if tree.problems:
        first = tree.problems[0]
        where = first.file if first.line is None else f"{first.file}:{first.line}"
        return f"{checkout.label}: {what}; {where} {first.message}: repair it and scan again"
    return f"{checkout.label}: {what}; if the fork renamed it, add the name to vocabulary.toml"
