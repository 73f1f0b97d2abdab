"""The engine's laws: overlaps, taking back, patches that git takes, trees that are not written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specmap import pipeline
from specmap.codemap.graph import CodeMap
from specmap.codemap.remedy import Change, FixReport, Outcome, Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.errors import OutputError, SpecmapError, TargetError
from specmap.fix import syntax
from specmap.fix.apply import Hands, applied, fix, select
from specmap.fix.catalogue import CATALOGUE
from specmap.fix.names import load_names
from specmap.fix.patches import patches
from specmap.fix.tree import Tree
from specmap.fix.write import write_files, write_patches
from specmap.fixed import Request, check_writable, fix_resolved, fix_tree
from specmap.scan.checkout import Checkout
from tests.fix.forks import FAULTS, whole
from tests.review_tree import RUNNER, commit, git, scan


def fork_in_git(folder: Path, *faults: str) -> Path:
    whole(folder / "python")
    git(folder, "init", "--quiet")
    for name in faults:
        FAULTS[name][1](folder / "python")
    commit(folder, "fork")
    return folder


def rewrite(name: str, old: str, new: str) -> Rewrite:
    """A rewrite of one text in the runner's file."""

    def find(tree: Tree) -> Iterator[Proposal]:
        start = tree.text(RUNNER).find(old)
        if start >= 0:
            change = Change(RUNNER, start, start + len(old), new)
            yield Proposal(name, Span(RUNNER, 1, 1), f"{RUNNER}::x", old, (change,))

    return Rewrite(name, name.lower(), "A test", Safety.SAFE, find)


def run(folder: Path, *rewrites: Rewrite) -> FixReport:
    codemap = scan(whole(folder))
    hands = Hands(lambda texts: codemap, lambda codemap: (), lambda rewrite, proposal: ())
    return fix(folder, codemap, rewrites, load_names(), hands)


def test_of_two_that_overlap_one_is_applied_and_the_other_matched_again(tmp_path: Path) -> None:
    first = rewrite("A1", "raw_bs = forward_batch.batch_size", "raw_bs = forward_batch.size")
    second = rewrite("B2", "forward_batch.size", "forward_batch.n")
    report = run(tmp_path / "t", first, rewrite("C3", "= forward_batch.batch_size", "= 1"), second)
    outcomes = {a.rewrite.id: a.outcome for a in report.attempts}
    assert outcomes == {"A1": Outcome.APPLIED, "B2": Outcome.APPLIED, "C3": Outcome.CONFLICTING}
    assert "raw_bs = forward_batch.n\n" in report.after[RUNNER]


def test_what_no_longer_fits_after_another_is_in_conflict(tmp_path: Path) -> None:
    old = "raw_bs = forward_batch.batch_size"
    report = run(tmp_path / "t", rewrite("A1", old, "raw_bs = 1"), rewrite("B2", old, "raw_bs = 2"))
    assert [(a.rewrite.id, a.outcome, a.reason) for a in report.attempts] == [
        ("A1", Outcome.APPLIED, ""),
        ("B2", Outcome.CONFLICTING, "A1 changes the same lines"),
    ]


def test_places_that_read_the_same_are_told_apart(tmp_path: Path) -> None:
    """One is applied, one refused, one fails: none hides another."""
    becomes = {"input_ids": "raw_num_token * 1]", "out_cache_loc": "gone]"}

    def find(tree: Tree) -> Iterator[Proposal]:
        pattern = r"self\.(\w+)\[:(raw_num_token\])"
        for match in re.finditer(pattern, tree.text(RUNNER)):
            text = becomes.get(match[1], "")
            change = Change(RUNNER, match.start(2), match.end(2), text)
            line = tree.text(RUNNER).count("\n", 0, match.start())
            span, refused = Span(RUNNER, line, line), "" if text else "it has its reason"
            changes = (change,) if text else ()
            yield Proposal("A1", span, f"{RUNNER}::x", "same", changes, refused=refused)

    report = run(tmp_path / "t", Rewrite("A1", "a", "A test", Safety.SAFE, find))
    assert [(a.outcome, a.proposal.nth) for a in report.attempts] == [
        (Outcome.APPLIED, 0), (Outcome.REFUSED, 1), (Outcome.FAILED, 2),
    ]  # fmt: skip


def test_what_is_refused_below_a_change_keeps_its_line(tmp_path: Path) -> None:
    def find(tree: Tree) -> Iterator[Proposal]:
        line = tree.text(RUNNER).partition("self.graphs[bs].replay()")[0].count("\n") + 1
        yield Proposal("B2", Span(RUNNER, line, line), f"{RUNNER}::x", "seen", refused="no")

    longer = rewrite(
        "A1", "raw_bs = forward_batch.batch_size", "raw_bs = (\n            1\n        )"
    )
    report = run(tmp_path / "t", longer, Rewrite("B2", "b", "A test", Safety.SAFE, find))
    before = report.before[RUNNER].partition("self.graphs[bs].replay()")[0]
    assert report.after[RUNNER].count("\n") == report.before[RUNNER].count("\n") + 2
    assert [a.proposal.span.line for a in report.attempts if a.rewrite.id == "B2"] == [
        before.count("\n") + 1
    ]


def test_a_rewrite_that_leaves_a_name_unbound_fails_and_changes_nothing(tmp_path: Path) -> None:
    report = run(tmp_path / "t", rewrite("A1", "raw_bs = forward_batch.batch_size", "pass"))
    assert [a.outcome for a in report.attempts] == [Outcome.FAILED]
    assert "raw_bs" in report.attempts[0].reason
    assert report.after.get(RUNNER, "raw_bs = ").count("raw_bs = ") == 1


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("def f():\n    a = 1\n    return a\n", "def f(:\n", "does not parse"),
        ("def f():\n    a = 1\n    return a\n", "def f():\n    return a\n", "nothing binds"),
        (
            "def f(x):\n    a = x\n    b = a\n    return b\n",
            "def f(x):\n    b = a\n    a = x\n    return b\n",
            "before it is bound",
        ),
        ("def f():\n    return g\n", "def f():\n    return g\n\n\nx = 1\n", ""),
        (
            "def f(g):\n    for x in g:\n        x()\n    return (\n        c.on()\n"
            "        if (c := g.c) is not None\n        else None\n    )\n",
            "def f(g):\n    call(g)\n    return (\n        c.on()\n"
            "        if (c := g.c) is not None\n        else None\n    )\n\n\ndef call(g): ...\n",
            "",
        ),
    ],
)
def test_the_first_layer_of_proof(before: str, after: str, said: str) -> None:
    found = syntax.broken(before, after)
    assert said in found
    assert bool(said) is bool(found)


def test_changes_keep_what_lies_between_them() -> None:
    changes = [Change("f", 4, 5, "B"), Change("f", 0, 1, "A"), Change("g", 0, 1, "!")]
    assert applied("a - b # end\n", changes, "f") == "A - B # end\n"


def test_patches_are_taken_by_git_in_their_order(tmp_path: Path) -> None:
    folder = fork_in_git(tmp_path / "fork", "constant-term", "disabled")
    fixed = fix_tree(Request(str(folder), use_cache=False))
    made = patches(fixed.report.applied, fixed.prefix, "0.0.0")
    assert [name for name, _ in made] == [
        "0001-SPF106-graphs-disabled.patch",
        "0002-SPF101-verify-excluded.patch",
    ]
    for name, content in made:
        (tmp_path / name).write_bytes(content)
        git(folder, "am", "--quiet", str(tmp_path / name))
    for file, text in fixed.report.after.items():
        assert (folder / "python" / file).read_text("utf-8") == text
    subjects = git(folder, "log", "--format=%s", "-2").splitlines()
    assert [s.partition(":")[0] for s in subjects] == ["SPF101", "SPF106"]
    assert "Proof: map held" in git(folder, "log", "--format=%b", "-1")


@pytest.mark.parametrize(
    ("head", "encoding"), [("# -*- coding: latin-1 -*-\n", "latin-1"), ("", "utf-8-sig")]
)
def test_git_takes_the_patch_of_a_file_that_is_not_plain_utf_8(
    head: str, encoding: str, tmp_path: Path
) -> None:
    folder = fork_in_git(tmp_path / "fork", "constant-term")
    path = folder / "python" / RUNNER
    text = path.read_text("utf-8").replace("    def can_run(", "    # größer\n    def can_run(")
    path.write_bytes(f"{head}{text}".encode(encoding))
    commit(folder)
    fixed = fix_tree(Request(str(folder), use_cache=False))
    made = patches(fixed.report.applied, fixed.prefix, "0.0.0", fixed.encodings)
    (tmp_path / "one.patch").write_bytes(made[0][1])
    git(folder, "am", "--quiet", str(tmp_path / "one.patch"))
    assert path.read_bytes() == fixed.report.after[RUNNER].encode(encoding)
    assert "größer" in made[0][1].decode(encoding)


def test_a_tree_with_changes_of_its_own_is_not_written(tmp_path: Path) -> None:
    folder = fork_in_git(tmp_path / "fork")
    FAULTS["constant-term"][1](folder / "python")
    with pytest.raises(TargetError, match="--allow-dirty"):
        fix_tree(Request(str(folder), write=True, use_cache=False))
    fixed = fix_tree(Request(str(folder), write=True, allow_dirty=True, use_cache=False))
    assert fixed.written == (RUNNER,)


@pytest.mark.parametrize("label", ["sglang==0.5.9", "installed:sglang-0.5.9", "git:0123abcd"])
def test_what_is_no_folder_of_the_user_is_not_written(label: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="use --diff or --patch-dir DIR"):
        check_writable(Checkout(tmp_path, label, "0.5.9", None), local=False, allow_dirty=True)


def test_files_keep_their_mode_and_their_line_ends(tmp_path: Path) -> None:
    fork = whole(tmp_path / "fork")
    FAULTS["constant-term"][1](fork)
    path = fork / RUNNER
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    path.chmod(0o755)
    fix_tree(Request(str(fork), write=True, use_cache=False))
    assert path.stat().st_mode & 0o777 == 0o755
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n")
    assert b"is_tree_supported" not in path.read_bytes()


def test_when_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("old\n", "utf-8")
    with pytest.raises(OutputError, match="--patch-dir"):
        write_files(tmp_path, {"a.py": "new\n", "gone/b.py": "new\n"})
    assert (tmp_path / "a.py").read_text("utf-8") == "old\n"
    assert os.listdir(tmp_path) == ["a.py"]  # noqa: PTH208


def test_a_file_that_is_protected_or_belongs_elsewhere_is_not_written(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for place in (root / "a.py", root / "locked.py", tmp_path / "shared.py"):
        place.write_text("old\n", "utf-8")
    (root / "locked.py").chmod(0o444)
    (root / "link.py").symlink_to(tmp_path / "shared.py")
    (root / "inside.py").symlink_to("a.py")
    for name, why in (("locked.py", "it is read-only"), ("link.py", "a link out of the tree")):
        with pytest.raises(OutputError, match=why):
            write_files(root, {"a.py": "new\n", name: "new\n"})
    assert (root / "a.py").read_text("utf-8") == "old\n"
    assert (tmp_path / "shared.py").read_text("utf-8") == "old\n"
    write_files(root, {"inside.py": "new\n"})
    assert (root / "a.py").read_text("utf-8") == "new\n"
    assert (root / "inside.py").is_symlink()


def test_patches_of_another_run_are_not_mixed_with_those_of_this_one(tmp_path: Path) -> None:
    write_patches(tmp_path, {"0001-SPF101-a.patch": b"old", "0002-SPF105-b.patch": b"old"})
    with pytest.raises(OutputError, match=r"0002-SPF105-b\.patch.*name an empty folder"):
        write_patches(tmp_path, {"0001-SPF101-a.patch": b"new"})
    assert {p.read_bytes() for p in tmp_path.iterdir()} == {b"old"}
    both = {"0001-SPF101-a.patch": b"new", "0002-SPF105-b.patch": b"new"}
    write_patches(tmp_path, both)
    assert {p.read_bytes() for p in tmp_path.iterdir()} == {b"new"}


def test_a_selector_about_nothing_is_an_error() -> None:
    assert [r.id for r in select(CATALOGUE, ["constant-decision"])] == ["SPF102"]
    assert {r.id for r in select(CATALOGUE, ["SPM105"])} >= {"SPF105"}
    with pytest.raises(SpecmapError, match="no rewrite 'SPF999'"):
        select(CATALOGUE, ["SPF999"])


def test_ids_names_and_pages_of_the_catalogue() -> None:
    assert len({r.id for r in CATALOGUE}) == len({r.name for r in CATALOGUE}) == len(CATALOGUE)
    for entry in CATALOGUE:
        assert "**Before**" in entry.page
        assert "Preconditions:" in entry.page
        assert "Proof:" in entry.page


def test_a_map_that_the_caller_has_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = whole(tmp_path / "fork")
    FAULTS["constant-term"][1](fork)
    scans: list[Path] = []
    scan_resolved = pipeline.scan_resolved

    def counted(tree: pipeline.Resolved, **options: Any) -> CodeMap:
        scans.append(tree.checkout.root)
        return scan_resolved(tree, **options)

    monkeypatch.setattr(pipeline, "scan_resolved", counted)
    with pipeline.resolved(str(fork), use_cache=False) as tree:
        codemap = scan_resolved(tree, platform="cuda")
        fixed = fix_resolved(tree, Request(use_cache=False), codemap=codemap)
        assert [a.rewrite.id for a in fixed.report.applied] == ["SPF101"]
        assert scans  # the result is scanned, the fork is not
        assert fork not in scans
