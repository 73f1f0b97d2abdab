"""Composes a fix: match, apply in memory, scan the result, prove, write."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from specmap import pipeline
from specmap.codemap.finding import FindingStatus
from specmap.codemap.graph import CodeMap
from specmap.codemap.remedy import FixReport
from specmap.codemap.source import encoding_of, qualname_of
from specmap.compare.renames import find_renames
from specmap.errors import TargetError
from specmap.fix.apply import Hands, fix, select
from specmap.fix.catalogue import CATALOGUE
from specmap.fix.names import load_names
from specmap.fix.prove import LEVELS, prover
from specmap.fix.write import encoded, write_files
from specmap.lint.engine import lint_map
from specmap.lint.known import Before, accept, known_of
from specmap.lint.rulebook import load
from specmap.scan.checkout import PACKAGE
from specmap.scan.index import Tree

if TYPE_CHECKING:
    from specmap.scan.checkout import Checkout


@dataclass(frozen=True, slots=True)
class Request:
    """What one run is asked to do.

    ``level`` is the last layer of proof that runs. ``unsafe`` also applies what was not
    proven. ``write`` changes the tree itself, which git must know as unchanged unless
    ``allow_dirty``.
    """

    target: str | None = None
    select: tuple[str, ...] = ()
    write: bool = False
    unsafe: bool = False
    allow_dirty: bool = False
    level: str = LEVELS[-1]
    platform: str = "cuda"
    use_cache: bool = True
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Fixed:
    """What a run leaves. ``prefix`` is the way from the repository's top to the tree.

    ``encodings`` are those of the files that change.
    """

    report: FixReport
    request: Request
    prefix: str = ""
    written: tuple[str, ...] = ()
    encodings: Mapping[str, str] = field(default_factory=dict)


def fix_tree(request: Request, progress: pipeline.Progress | None = None) -> Fixed:
    """Rewrite a tree; only ``write`` changes a file.

    Without a target: the tree around or below the current folder.

    Raises:
        SpecmapError: the target, a selector or the tree cannot be used.
    """
    select(CATALOGUE, request.select)  # a slip is told before a scan
    cwd = request.cwd or Path.cwd()
    target = request.target or pipeline.local_target(cwd)
    with pipeline.resolved(target, cwd=cwd, use_cache=request.use_cache, progress=progress) as tree:
        return fix_resolved(tree, request, progress)


def fix_resolved(
    tree: pipeline.Resolved,
    request: Request,
    progress: pipeline.Progress | None = None,
    codemap: CodeMap | None = None,
) -> Fixed:
    """Rewrite a tree that was found; ``codemap`` is its map where the caller has it.

    Raises:
        SpecmapError: a selector or the tree cannot be used.
    """
    rewrites = select(CATALOGUE, request.select)
    checkout, cwd = tree.checkout, request.cwd or Path.cwd()
    local = checkout.label.startswith("path:")
    if request.write:
        check_writable(checkout, local, request.allow_dirty)
    if codemap is None:
        codemap = pipeline.scan_resolved(tree, platform=request.platform, progress=progress)
    missing = codemap.unread
    if missing:
        raise TargetError(f"{missing}; a rewrite needs the whole map")
    scans = _Scans(tree, codemap, request.platform, progress)
    hands = Hands(scans.scan, scans.fresh, prover(request.level), request.unsafe)
    report = fix(checkout.root, codemap, rewrites, load_names(), hands)
    encodings = {f: encoding_of((checkout.root / f).read_bytes()) for f in report.after}
    if request.write and report.after:
        write_files(checkout.root, report.after)
    written = tuple(report.after) if request.write else ()
    return Fixed(report, request, _prefix(checkout, local, cwd), written, encodings)


@dataclass
class _Scans:
    """Scans changed texts in a copy of the tree, and lints the maps."""

    tree: pipeline.Resolved
    first: CodeMap
    platform: str
    progress: pipeline.Progress | None

    def scan(self, texts: Mapping[str, str]) -> CodeMap:
        """Return the map of the tree with ``texts`` over it."""
        checkout = self.tree.checkout
        with tempfile.TemporaryDirectory(prefix="specmap-fix-") as name:
            _copy(checkout.root, texts, Path(name))
            copy = replace(checkout, root=Path(name).resolve(), content=None)
            changed = pipeline.Resolved(copy, self.tree.cache)
            return pipeline.scan_resolved(changed, platform=self.platform, progress=self.progress)

    def fresh(self, codemap: CodeMap) -> Sequence[tuple[str, str]]:
        """Return the findings that a map has and the first one lacks."""
        rules = load()
        old, new = (
            lint_map(m, rules, source=lambda file: None, known=rules) for m in (self.first, codemap)
        )
        before = Before(known_of(old), find_renames(self.first, codemap), _held(self.first))
        report = accept(new, before, "was there before", _held(codemap))
        return [
            (f.match.holder, f"{f.rule.id} {f.match.span}: {f.match.message}")
            for f in report.findings
            if f.status is FindingStatus.NEW
        ]


def _held(codemap: CodeMap) -> frozenset[str]:
    return frozenset(qualname_of(function.id) for function in codemap.functions)


def _copy(root: Path, texts: Mapping[str, str], folder: Path) -> None:
    """Put the sources of a tree into a folder, with ``texts`` over them; modes stay behind."""
    tree = Tree(root, PACKAGE)
    for file in tree.files:
        place = folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        data = tree.source(file)
        place.write_bytes(encoded(texts[file], data) if file in texts else data)


def check_writable(checkout: Checkout, local: bool, allow_dirty: bool) -> None:
    """Refuse to write where the tree is no working copy, or one with changes of its own.

    Raises:
        TargetError: saying what to use instead.
    """
    from specmap.scan import gitrepo

    if not local:
        raise TargetError(
            f"{checkout.label}: not a folder of yours; use --diff or --patch-dir DIR instead"
        )
    repository = gitrepo.find(checkout.root)
    head = gitrepo.head_of(repository, checkout.root / PACKAGE) if repository else None
    if head is not None and head.endswith("-dirty") and not allow_dirty:
        raise TargetError(
            f"{checkout.label}: git knows changes that are not committed; "
            "commit or stash them, or give --allow-dirty"
        )


def _prefix(checkout: Checkout, local: bool, cwd: Path) -> str:
    """The way from the top of the repository to the folder with the package."""
    from specmap.scan import gitrepo

    top = gitrepo.find(checkout.root if local else cwd)
    if top is None or not (local or checkout.label.startswith("git:")):
        return ""
    if not local:
        return gitrepo.place_of(top, checkout.commit or "").rpartition("/")[0]
    way = checkout.root.resolve().relative_to(top.resolve()).as_posix()
    return "" if way == "." else way
