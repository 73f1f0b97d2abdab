"""Composes a review: lint a tree against its base and its baseline; compare two trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from specmap import pipeline
from specmap.codemap.finding import LintReport
from specmap.codemap.graph import CodeMap
from specmap.codemap.rule import Rule
from specmap.codemap.source import qualname_of, text_of
from specmap.compare.diff import compare_maps
from specmap.compare.model import MapDiff
from specmap.compare.renames import Renames, find_renames
from specmap.config import Config, find_config
from specmap.errors import TargetError
from specmap.lint import baseline, rulebook
from specmap.lint.changed import with_changes
from specmap.lint.engine import Choice, choose, lint_map, order
from specmap.lint.known import Before, accept, known_of
from specmap.lint.suppress import apply as suppress
from specmap.report.findings import FINDING_FORMATS

if TYPE_CHECKING:
    from specmap.scan.checkout import Checkout


@dataclass(frozen=True, slots=True)
class Request:
    """What one lint run is asked to do; what is ``None`` or empty, the configuration says.

    ``base`` is a git revision, or any other target. ``update_baseline`` writes the
    baseline file instead of reading it.
    """

    target: str | None = None
    base: str | None = None
    platform: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: Path | None = None
    update_baseline: bool = False
    use_cache: bool = True
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A lint run with what its reports need: source text by file, and the path's beginning.

    ``unread`` says which modules, of the base too, could not be read; ``written`` is the baseline
    file. ``doubt`` says why findings may be new that the change did not add.
    """

    report: LintReport
    config: Config
    source: Callable[[str], str | None]
    prefix: str = ""
    unread: str = ""
    written: Path | None = None
    doubt: str = ""


def all_rules() -> tuple[Rule, ...]:
    """Return every rule there is: our own, and those of installed packs.

    Raises:
        RulesError: a declaration is wrong.
    """
    return rulebook.load()


def lint_tree(request: Request, progress: pipeline.Progress | None = None) -> Review:
    """Lint a tree. Without a target: the tree around or below the current folder.

    Raises:
        SpecmapError: the target, the base, the rules or the configuration cannot be used.
    """
    cwd = request.cwd or Path.cwd()
    target = request.target or pipeline.local_target(cwd)
    with pipeline.resolved(target, cwd=cwd, use_cache=request.use_cache, progress=progress) as tree:
        return lint_resolved(tree, request, progress)


def lint_resolved(
    tree: pipeline.Resolved,
    request: Request,
    progress: pipeline.Progress | None = None,
    codemap: CodeMap | None = None,
) -> Review:
    """Lint a tree that was found; ``codemap`` is its map where the caller has it.

    Raises:
        SpecmapError: the base, the rules or the configuration cannot be used.
    """
    rules = all_rules()
    cwd = request.cwd or Path.cwd()
    local = tree.checkout.label.startswith("path:")
    config = find_config(
        tree.checkout.root if local else cwd,
        rules,
        platforms=pipeline.PLATFORMS,
        formats=FINDING_FORMATS,
    )
    platform = request.platform or config.platform or "cuda"
    chosen = choose(rules, _choice(request, config))
    if codemap is None:
        codemap = pipeline.scan_resolved(tree, platform=platform, progress=progress)
    source = _source(tree.checkout.root, codemap)
    report = lint_map(codemap, chosen, source=source, known=rules)
    unread, doubt = codemap.unread, ""
    if request.base is not None:
        now = _Side(codemap, tree.checkout.root, source, chosen, rules)
        base = _base(request.base, tree.checkout, cwd)
        report, missing = _since(report, now, base, request, platform, progress)
        unread, doubt = unread or missing, base.doubt
    prefix = _prefix(tree.checkout.root, cwd) if local else ""
    report, written = _against_baseline(report, request, config)
    return Review(report, config, source, prefix, unread, written, doubt)


def diff_trees(
    old: str,
    new: str,
    *,
    platform: str = "cuda",
    use_cache: bool = True,
    progress: pipeline.Progress | None = None,
) -> tuple[MapDiff, str]:
    """Compare two targets; also return which modules could not be read.

    Raises:
        SpecmapError: a target cannot be scanned.
    """
    maps, roots = [], []
    for target in (old, new):
        with pipeline.resolved(target, use_cache=use_cache, progress=progress) as tree:
            maps.append(pipeline.scan_resolved(tree, platform=platform, progress=progress))
            roots.append(tree.checkout.root)
    missing = next((found.unread for found in maps if found.partial), "")
    was, now = pipeline.told_apart((maps[0].target, maps[1].target), (roots[0], roots[1]))
    return replace(compare_maps(*maps), old=was, new=now), missing


def _choice(request: Request, config: Config) -> Choice:
    return Choice(
        select=request.select or config.select,
        ignore=(*request.ignore, *config.ignore),
        severity=config.severity,
        parameters=config.parameters,
    )


def _source(root: Path, codemap: CodeMap) -> Callable[[str], str | None]:
    """Return a reader of the map's files that outlives a tree without a cache."""
    kept: dict[str, str | None] = {}

    def read(file: str) -> str | None:
        if file not in kept:
            try:
                kept[file] = text_of((root / file).read_bytes())
            except OSError:
                kept[file] = None
        return kept[file]

    for file in codemap.files:
        read(file.file)
    return read


@dataclass(frozen=True, slots=True)
class _Base:
    """The target that ``--base`` stands for, and the folder that it is relative to."""

    target: str
    folder: Path
    doubt: str = ""


def _base(base: str, checkout: Checkout, cwd: Path) -> _Base:
    """Return what ``base`` stands for.

    A revision stands for the commit where the reviewed tree went away from it.
    """
    from specmap.scan import gitrepo

    if not base.strip():
        raise TargetError("--base is empty; give a revision, a path, or 'sglang==VERSION'")
    if "==" in base or base.startswith("git:") or base == "installed":
        return _Base(base, cwd)
    folder = checkout.root if checkout.label.startswith("path:") else cwd
    repository = gitrepo.find(folder)
    head = checkout.label.removeprefix("git:") if checkout.label.startswith("git:") else "HEAD"
    ancestor = gitrepo.common_ancestor(repository, base, head) if repository else None
    if (cwd / base).is_dir():
        if ancestor:
            raise TargetError(
                f"--base {base!r} is a folder and a revision; write './{base}' for the folder, "
                f"'{base}~0' for the revision"
            )
        return _Base(base, cwd)
    if repository is None:
        return _Base(f"git:{base}", folder)
    doubt = (
        ""
        if ancestor
        else f"no common commit of {base!r} and {head} is known here, so {base!r} itself is the "
        "base: what it went on with counts too; in a shallow clone: git fetch --unshallow"
    )
    return _Base(f"git:{ancestor or base}", folder, doubt)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a comparison: map, folder and source, and the rules chosen and known."""

    codemap: CodeMap
    root: Path
    source: Callable[[str], str | None]
    chosen: Sequence[Rule]
    rules: Sequence[Rule]


def _since(
    report: LintReport,
    now: _Side,
    base: _Base,
    request: Request,
    platform: str,
    progress: pipeline.Progress | None,
) -> tuple[LintReport, str]:
    """Mark what the base has too, add what only two maps tell; rules that fail there count.

    Also return which modules of the base could not be read.
    """
    with pipeline.resolved(
        base.target, cwd=base.folder, use_cache=request.use_cache, progress=progress
    ) as tree:
        old = pipeline.scan_resolved(tree, platform=platform, progress=progress)
        source = _source(tree.checkout.root, old)
        was = lint_map(old, now.chosen, source=source, known=now.rules)
        renames = find_renames(old, now.codemap)
        names = pipeline.told_apart((was.target, report.target), (tree.checkout.root, now.root))
        before = Before(known_of(replace(was, findings=was.new)), renames, _held(old))
        report = accept(report, before, f"in {names[0]}", _held(now.codemap))
        # What stands in a file that could not be read is not gone.
        if now.codemap.partial:
            report = replace(report, gone=())
        report = _with_changes(report, now, replace(now, codemap=old, source=source), renames)
    crashes = tuple(dict.fromkeys((*report.crashes, *was.crashes)))
    unread = f"{names[0]}: {old.unread}" if old.partial else ""
    return replace(report, target=names[1], base=names[0], crashes=crashes), unread


def _with_changes(report: LintReport, now: _Side, was: _Side, renames: Renames) -> LintReport:
    """Add what only two maps tell, where those rules are chosen; comments may accept it."""
    maps, sources = (was.codemap, now.codemap), (was.source, now.source)
    report = with_changes(report, maps, sources, renames)
    made = [finding for finding in report.findings if finding.rule.id in rulebook.OF_CHANGES]
    marked, _ = suppress(made, {f.match.span.file for f in made}, now.source, now.rules)
    others = [finding for finding in report.findings if finding not in made]
    return replace(report, findings=tuple(sorted([*others, *marked], key=order)))


def _held(codemap: CodeMap) -> frozenset[str]:
    return frozenset(qualname_of(function.id) for function in codemap.functions)


def _against_baseline(
    report: LintReport, request: Request, config: Config
) -> tuple[LintReport, Path | None]:
    path = request.baseline or config.baseline
    if request.update_baseline:
        path = path or Path("specmap-baseline.json")
        pipeline.write_file(path, baseline.dumps(report).encode())
        return accept(report, Before(known_of(report)), f"in {path.name}"), path
    if path is None:
        return report, None
    return accept(report, Before(baseline.load(path)), f"in {path.name}"), None


def _prefix(root: Path, cwd: Path) -> str:
    """Return the way from the top of the repository, or the current folder, to the tree."""
    from specmap.scan import gitrepo

    for top in (gitrepo.find(root), cwd):
        if top is not None and root.is_relative_to(top.resolve()):
            way = root.relative_to(top.resolve()).as_posix()
            return "" if way == "." else way
    return ""
