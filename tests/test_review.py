"""A pull request against a small repository: only what it adds is reported."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specmap.codemap.finding import FindingStatus
from specmap.errors import SpecmapError, TargetError
from specmap.report.findings import FindingOptions
from specmap.review import Request, Review, diff_trees, lint_tree
from specmap.scan import gitrepo
from tests.review_tree import (
    DRAFT,
    LAST_LINE,
    SYNC,
    VERIFY,
    commit,
    edit,
    edit_everywhere,
    git,
    plant,
    repository,
)

ALLOWED = SYNC.rstrip("\n") + "  # specmap: allow host-sync-on-cycle -- measured\n"


@pytest.fixture
def fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with one synchronisation in its history; the current folder is its top."""
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "cache"))
    folder = repository(tmp_path / "fork")
    edit(folder / "python", VERIFY, (LAST_LINE, SYNC + LAST_LINE))
    commit(folder, "a synchronisation")
    monkeypatch.chdir(folder)
    yield folder


def review(**asked: object) -> Review:
    return lint_tree(Request(**asked))  # type: ignore[arg-type]


def new(found: Review) -> list[tuple[str, str, int]]:
    return [(f.rule.id, f.match.span.file, f.match.span.line) for f in found.report.new]


def test_without_a_base_everything_is_reported(fork: Path) -> None:
    assert new(review()) == [("SPM201", VERIFY, 11)]


WRITTEN: dict[str, Callable[[str], bytes]] = {
    "latin-1": lambda text: f"# -*- coding: latin-1 -*-\n{text}".encode("latin-1"),
    "a BOM": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR": lambda text: text.replace("\n", "\r").encode(),
    "form feeds": lambda text: f"\x0c\n{text}".replace("\nclass", "\n\x0c\nclass").encode(),
    "other line separators": lambda text: f"# \x1c\x85\u2028\n{text}".encode(),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_file_is_read_as_python_reads_it(fork: Path, kind: str) -> None:
    path = fork / "python" / VERIFY
    allowed = ALLOWED.replace("sum", "max").replace("measured", "größer")
    text = path.read_text("utf-8").replace(SYNC, allowed + SYNC)
    path.write_bytes(WRITTEN[kind](text))
    found = review()
    first, second = found.report.findings
    assert (first.status, first.reason) == (FindingStatus.SUPPRESSED, "größer")
    assert second.status is FindingStatus.NEW
    options = FindingOptions(source=found.source)
    for finding in (first, second):
        assert finding.match.anchor in options.line(finding.match.span)
    assert new(review(base="HEAD")) == []


def test_every_rule_runs_once(fork: Path) -> None:
    ids = [rule.id for rule in review().report.rules]
    assert ids == sorted(set(ids))
    assert {"SPM001", "SPM002", "SPM201"} <= set(ids)


@pytest.mark.parametrize("text", ["0.5.12", "v0.5.12", "sglang-0.5.12"])
def test_a_base_that_reads_like_a_release_is_said_to_be_one(fork: Path, text: str) -> None:
    with pytest.raises(TargetError, match=r"no such revision .*; did you mean sglang==0\.5\.12\?"):
        review(base=text)


def test_a_hook_of_another_worktree_hides_nothing(
    fork: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What git sets for a hook that runs in a linked worktree is not about other folders."""
    linked = fork.parent / "linked"
    git(fork, "worktree", "add", "--quiet", str(linked))
    edit(linked / "python", VERIFY, (SYNC, ""))
    commit(linked, "without")
    folder = git(linked, "rev-parse", "--absolute-git-dir")
    monkeypatch.setenv("GIT_DIR", folder)
    monkeypatch.setenv("GIT_INDEX_FILE", f"{folder}/index")
    assert gitrepo.find(linked / "python") == linked
    edit(fork / "python", DRAFT, ("        tokens = []\n", f"        tokens = []\n{added()}"))
    assert new(review(base="HEAD")) == [("SPM201", DRAFT, 20)]


def test_what_the_base_has_is_not_reported(fork: Path) -> None:
    found = review(base="HEAD")
    assert new(found) == []
    (finding,) = found.report.findings
    assert finding.status is FindingStatus.BASELINED
    assert finding.reason == f"in git:{git(fork, 'rev-parse', 'HEAD')[:12]}"


def test_only_what_a_change_adds_is_reported(fork: Path) -> None:
    edit(fork / "python", DRAFT, ("        tokens = []\n", f"        tokens = []\n{added()}"))
    assert new(review(base="HEAD")) == [("SPM201", DRAFT, 20)]


def added() -> str:
    return "        longest = forward_batch.seq_lens.max().item()\n"


def test_moved_and_renamed_code_is_not_new(fork: Path) -> None:
    edit(fork / "python", VERIFY, ("class EagleVerify:", "# More.\n\n\nclass EagleVerify:"))
    edit_everywhere(
        fork / "python",
        {"EagleVerify": "TreeVerify", "self.verify(": "self.check(", "def verify(": "def check(",
         "count = batch": "total = batch"},
    )  # fmt: skip
    assert new(review(base="HEAD")) == []


def test_a_comment_suppresses_and_losing_it_is_new(fork: Path) -> None:
    edit(fork / "python", VERIFY, (SYNC, ALLOWED))
    commit(fork, "allowed")
    (finding,) = review(base="HEAD").report.findings
    assert (finding.status, finding.reason) == (FindingStatus.SUPPRESSED, "measured")
    edit(fork / "python", VERIFY, (ALLOWED, SYNC))
    assert new(review(base="HEAD")) == [("SPM201", VERIFY, 11)]


def went_apart(fork: Path) -> None:
    """A branch ``feature``; main repairs what the branch still has."""
    git(fork, "checkout", "--quiet", "-b", "feature")
    edit(fork / "python", DRAFT, ("        tokens = []\n", "        tokens = list()\n"))
    commit(fork, "feature")
    git(fork, "checkout", "--quiet", "main")
    edit(fork / "python", VERIFY, (SYNC, ""))
    commit(fork, "repaired")


def test_the_base_is_where_the_branches_went_apart(fork: Path) -> None:
    """What main repairs is not the branch's doing."""
    went_apart(fork)
    git(fork, "checkout", "--quiet", "feature")
    assert new(review(base="main")) == []


def test_a_shallow_clone_cannot_say_where_the_branches_went_apart(
    fork: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What main repaired seems to be the branch's doing: that is said, and not hidden."""
    went_apart(fork)
    clones = {}
    for depth, options in {"whole": (), "shallow": ("--depth", "1", "--no-single-branch")}.items():
        clones[depth] = tmp_path / depth
        url, branch = f"file://{fork}", ("--branch", "feature")
        git(tmp_path, "clone", "--quiet", *options, *branch, url, depth)
    monkeypatch.chdir(clones["whole"])
    found = review(base="origin/main")
    assert (new(found), found.doubt) == ([], "")
    monkeypatch.chdir(clones["shallow"])
    found = review(base="origin/main")
    assert new(found) == [("SPM201", VERIFY, 11)]
    assert found.doubt.startswith("no common commit of 'origin/main' and HEAD is known here")
    command = [sys.executable, "-m", "specmap", "lint", "--base", "origin/main"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.doubt in shown.stderr


def test_a_base_can_be_another_tree(fork: Path, tmp_path: Path) -> None:
    upstream = plant(tmp_path / "upstream")
    found = review(base=str(upstream))
    assert new(found) == [("SPM201", VERIFY, 11)]
    assert (found.report.base, found.report.target) == (
        "path:sglang (upstream)",
        "path:sglang (fork)",
    )


def test_a_base_that_is_a_folder_and_a_revision(fork: Path) -> None:
    plant(fork / "main")
    with pytest.raises(TargetError, match="'main' is a folder and a revision; "):
        review(target="python", base="main")
    assert new(review(target="python", base="./main")) == [("SPM201", VERIFY, 11)]
    assert new(review(target="python", base="main~0")) == []


def test_a_base_that_is_not_there(fork: Path) -> None:
    with pytest.raises(TargetError, match="git:nonsense: no such revision in 'fork'; try git f"):
        review(base="nonsense")
    shutil.rmtree(fork / ".git")
    git(fork, "init", "--quiet")
    with pytest.raises(TargetError, match="git:HEAD: no such revision in 'fork'; commit first"):
        review(base="HEAD")


def test_a_tree_can_lie_deeper_in_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "product"
    vendored = plant(folder / "third_party/engine/python")
    git(folder, "init", "--quiet")
    commit(folder)
    edit(vendored, DRAFT, ("        tokens = []\n", f"        tokens = []\n{added()}"))
    monkeypatch.chdir(folder)
    found = review(target="third_party/engine", base="HEAD")
    assert new(found) == [("SPM201", DRAFT, 20)]
    assert found.prefix == "third_party/engine/python"
    plant(folder / "other/python")
    commit(folder)
    with pytest.raises(TargetError, match=r"several SGLang packages .other/python/sglang, third_"):
        review(target="third_party/engine", base="HEAD")


def test_paths_begin_at_the_top_of_the_repository(fork: Path) -> None:
    assert review().prefix == "python"
    assert review(target="python/sglang").prefix == "python"


def test_what_stands_in_a_file_that_cannot_be_read_is_not_gone(fork: Path) -> None:
    path = fork / "python" / VERIFY
    path.write_text(f"<<<<<<< HEAD\n{path.read_text('utf-8')}", "utf-8")
    found = review(base="HEAD")
    assert VERIFY in found.unread
    assert (new(found), found.report.gone) == ([], ())


def test_a_base_that_cannot_be_read_whole_is_told(fork: Path) -> None:
    """What stands in its unread file would be new, and no graph could be called lost."""
    path = fork / "python" / DRAFT
    text = path.read_text("utf-8")
    path.write_text(f"<<<<<<< HEAD\n{text}", "utf-8")
    commit(fork, "broken")
    path.write_text(text, "utf-8")
    found = review(base="HEAD")
    assert found.unread.startswith(f"{found.report.base}: the map is partial, not read: {DRAFT}:1 ")
    command = [sys.executable, "-m", "specmap", "lint", "--base", "HEAD"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def test_a_baseline_accepts_what_it_lists(fork: Path) -> None:
    written = review(update_baseline=True, baseline=fork / "known.json")
    assert (new(written), written.written) == ([], fork / "known.json")
    (row,) = json.loads((fork / "known.json").read_text("utf-8"))["findings"]
    assert (row["rule"], row["holder"]) == ("SPM201", "EagleVerify.verify")
    assert new(review(baseline=fork / "known.json")) == []
    edit(fork / "python", VERIFY, (SYNC, ""))
    gone = review(baseline=fork / "known.json").report.gone
    assert [(k.rule, k.holder) for k in gone] == [("SPM201", "EagleVerify.verify")]
    # A rule that does not run has lost nothing.
    assert review(baseline=fork / "known.json", select=("SPM1",)).report.gone == ()


def test_the_project_decides_what_runs(fork: Path) -> None:
    settings = '[tool.specmap]\nignore = ["host-sync"]\noutput-format = "json"\n'
    (fork / "pyproject.toml").write_text(settings, "utf-8")
    found = review()
    assert new(found) == []
    assert found.config.output_format == "json"
    (fork / "pyproject.toml").write_text('[tool.specmap]\nselect = ["SPM7"]\n', "utf-8")
    with pytest.raises(SpecmapError, match="select: no rule 'SPM7'"):
        review()


def test_a_project_that_sets_a_severity(fork: Path) -> None:
    settings = '[tool.specmap.rules.host-sync-on-cycle]\nseverity = "error"\n'
    (fork / "pyproject.toml").write_text(settings, "utf-8")
    (finding,) = review().report.findings
    assert finding.rule.severity == "error"


def test_diff_takes_revisions_and_folders(fork: Path) -> None:
    found, missing = diff_trees("git:HEAD~1", ".")
    assert missing == ""
    assert [sync.operation for sync in found.syncs] == ["batch.seq_lens.sum().item()"]


def action_script() -> str:
    """Return what the action's last step runs."""
    text = (Path(__file__).parent.parent / "action.yml").read_text("utf-8")
    return text.rpartition("run: |\n")[2]


def hook_entry() -> str:
    text = (Path(__file__).parent.parent / ".pre-commit-hooks.yaml").read_text("utf-8")
    (line,) = [line for line in text.splitlines() if line.strip().startswith("entry: ")]
    return line.partition("entry: ")[2]


def shell(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub does, with this environment's specmap."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    cache = str(folder.parent / "cache")
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True,
        check=False, env={"PATH": path, "SPECMAP_CACHE_DIR": cache, **environment},
    )  # fmt: skip


def test_the_action_reports_what_the_pull_request_adds(fork: Path) -> None:
    git(fork, "checkout", "--quiet", "-b", "feature")
    edit(fork / "python", DRAFT, ("        tokens = []\n", f"        tokens = []\n{added()}"))
    commit(fork, "feature")
    summary = fork.parent / "summary.md"
    given = {
        "INPUT_PATH": ".", "INPUT_BASE": "main", "INPUT_FORMAT": "github", "INPUT_OUTPUT": "-",
        "INPUT_ARGUMENTS": "--select host-sync", "INPUT_SUMMARY": "true",
        "GITHUB_STEP_SUMMARY": str(summary),
    }  # fmt: skip
    result = shell(action_script(), fork, **given)
    assert result.returncode == 1, result.stderr
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"::warning file=python/{DRAFT},line=20,endLine=20,title=SPM201 ")
    assert "+ forward_batch.seq_lens.max().item()" in summary.read_text("utf-8")


def test_the_action_leaves_out_what_the_base_went_on_with(fork: Path) -> None:
    git(fork, "checkout", "--quiet", "-b", "feature")
    edit(fork / "python", DRAFT, ("        tokens = []\n", f"        tokens = []\n{added()}"))
    commit(fork, "feature")
    git(fork, "checkout", "--quiet", "main")
    edit(fork / "python", VERIFY, (SYNC, ""))
    commit(fork, "main goes on")
    git(fork, "checkout", "--quiet", "feature")
    summary = fork.parent / "summary.md"
    given = {
        "INPUT_PATH": ".", "INPUT_BASE": "main", "INPUT_FORMAT": "concise", "INPUT_OUTPUT": "-",
        "INPUT_ARGUMENTS": "", "INPUT_SUMMARY": "true", "GITHUB_STEP_SUMMARY": str(summary),
    }  # fmt: skip
    result = shell(action_script(), fork, **given)
    assert result.stdout.count("SPM201") == 1, result.stderr
    text = summary.read_text("utf-8")
    assert "+ forward_batch.seq_lens.max().item()" in text
    assert "batch.seq_lens.sum().item()" not in text


def test_the_action_says_that_an_event_has_no_base(fork: Path) -> None:
    given = {"INPUT_PATH": ".", "INPUT_BASE": "", "INPUT_SUMMARY": "false", "GITHUB_BASE_REF": ""}
    result = shell(action_script(), fork, **given)
    assert (result.returncode, result.stdout) == (2, "")
    said = "::error::specmap: this event has no base branch; give the input 'base'\n"
    assert result.stderr == said


def test_the_action_is_silent_when_nothing_was_added(fork: Path) -> None:
    given = {
        "INPUT_PATH": "python", "INPUT_BASE": "HEAD", "INPUT_FORMAT": "github",
        "INPUT_OUTPUT": "-", "INPUT_ARGUMENTS": "", "INPUT_SUMMARY": "false",
    }  # fmt: skip
    result = shell(action_script(), fork, **given)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_hook_reports_what_the_commit_adds(fork: Path) -> None:
    assert shell(hook_entry(), fork).returncode == 0
    edit(fork / "python", DRAFT, ("        tokens = []\n", f"        tokens = []\n{added()}"))
    result = shell(hook_entry(), fork)
    assert result.returncode == 1
    assert result.stdout.startswith(f"python/{DRAFT}:20: SPM201 host-sync-on-cycle: ")
