from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specmap.errors import TargetError
from specmap.scan.checkout import Checkout, resolve_target
from tests.scan.trees import OUTLINE, FakeIndex, plant


def resolve(target: str | None, cwd: Path, index: FakeIndex | None = None) -> Checkout:
    return resolve_target(target, cwd=cwd, cache_dir=cwd / "cache", index=index or FakeIndex({}))


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    result = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return result.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository like SGLang's own: the package under python/, a tag, a later commit."""
    folder = tmp_path / "repository"
    plant(folder / "python")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    git(folder, "tag", "v0.5.9")
    worker = folder / "python/sglang/srt/speculative/eagle_worker.py"
    worker.write_text("class EAGLEWorker: later = 1\n", "utf-8")
    git(folder, "commit", "--quiet", "--all", "--message", "second")
    return folder


@pytest.mark.parametrize(
    "target",
    [
        "repo",
        "repo/python",
        "repo/python/sglang",
        "repo/python/sglang/srt",
        "repo/python/sglang/srt/speculative",
        "repo/python/sglang/srt/managers",
    ],
)
def test_a_path_anywhere_in_the_tree_finds_the_package(tmp_path: Path, target: str) -> None:
    plant(tmp_path / "repo/python")
    found = resolve(target, tmp_path)
    assert found == Checkout(tmp_path / "repo/python", "path:sglang", None, None)


def test_the_speculative_folder_is_found_from_the_python_folder(tmp_path: Path) -> None:
    plant(tmp_path / "fork/python")
    found = resolve("sglang/srt/speculative", tmp_path / "fork/python")
    assert found.root == tmp_path / "fork/python"


def test_a_repository_named_like_the_package_is_not_taken_for_it(tmp_path: Path) -> None:
    plant(tmp_path / "sglang/python")
    assert resolve("sglang", tmp_path).root == tmp_path / "sglang/python"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "not a SGLang tree"),
        ({"readme.py": ""}, "not a SGLang tree"),
        ({"sglang/__init__.py": ""}, "'sglang/srt' is missing"),
        ({"sglang/srt/server_args.py": ""}, "'sglang/srt/speculative' is missing"),
        ({"sglang/srt/speculative/notes.txt": ""}, "holds no Python file"),
    ],
)
def test_a_tree_that_is_not_sglang_or_half_of_it(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    (tmp_path / "tree").mkdir()
    plant(tmp_path / "tree", files)
    with pytest.raises(TargetError, match=message):
        resolve("tree", tmp_path)


def test_a_missing_folder_says_what_a_target_is(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"no such folder; a target is .*'git:REV'"):
        resolve("sglang>=0.5", tmp_path)


@pytest.mark.parametrize("text", ["0.5.12", "sglang=0.5.12", "sglang-0.5.12", "v0.5.12"])
def test_a_release_that_is_written_otherwise_is_hinted_at(text: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"no such folder; did you mean sglang==0\.5\.12\?"):
        resolve(text, tmp_path)


def test_a_file_is_no_target(tmp_path: Path) -> None:
    plant(tmp_path)
    with pytest.raises(TargetError, match="is a file"):
        resolve("sglang/__init__.py", tmp_path)


def test_a_path_with_a_null_byte(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be read"):
        resolve("a\0b", tmp_path)


def test_a_symlink_loop_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(TargetError, match="symbolic links"):
        resolve("a", tmp_path)


def test_a_symlink_to_a_tree_is_followed(tmp_path: Path) -> None:
    plant(tmp_path / "tree")
    (tmp_path / "link").symlink_to("tree")
    assert resolve("link/sglang/srt/speculative", tmp_path).root == tmp_path / "tree"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sglang/version.py", '__version__ = "0.4.6"\n'),
        ("sglang/_version.py", "__version__ = version = '0.4.6'\n"),
        (
            "sglang-0.4.6.dist-info/METADATA",
            "Metadata-Version: 2.4\nName: sglang\nVersion: 0.4.6\n",
        ),
        ("pyproject.toml", '[project]\nname = "sglang"\nversion = "0.4.6"\n'),
    ],
)
def test_the_release_is_read_from_where_each_layout_keeps_it(
    tmp_path: Path, name: str, text: str
) -> None:
    plant(tmp_path, {**OUTLINE, name: text})
    found = resolve(".", tmp_path)
    assert (found.release, found.label) == ("0.4.6", "path:sglang-0.4.6")


def test_a_computed_version_is_not_guessed(tmp_path: Path) -> None:
    # The fallback that releases since 0.5.8 carry in version.py.
    text = "try:\n    from sglang._version import __version__\nexcept ImportError:\n"
    text += '    __version__ = "0.0.0.dev0"\n'
    plant(tmp_path, {**OUTLINE, "sglang/version.py": text})
    assert resolve(".", tmp_path).release is None


def test_another_project_s_version_is_not_sglang_s(tmp_path: Path) -> None:
    text = '[project]\nname = "another"\nversion = "1.0"\n'
    plant(tmp_path, {**OUTLINE, "pyproject.toml": text})
    assert resolve(".", tmp_path).release is None


def test_the_built_in_commit_is_read(tmp_path: Path) -> None:
    text = "__version__ = version = '0.5.9'\n__commit_id__ = commit_id = 'g0123abc'\n"
    plant(tmp_path, {**OUTLINE, "sglang/_version.py": text})
    assert resolve(".", tmp_path).commit == "g0123abc"


def test_installed_is_found_without_importing_it(tmp_path: Path) -> None:
    poison = {"sglang/__init__.py": "raise SystemExit('imported')\n"}
    plant(tmp_path / "site", {**OUTLINE, **poison, "sglang/version.py": "__version__ = '0.4.6'\n"})
    code = (
        "from pathlib import Path\n"
        "from specmap.scan.checkout import resolve_target\n"
        "found = resolve_target(None, cwd=Path.cwd(), cache_dir=Path('cache'))\n"
        "print(found.root, found.label)"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(Path.cwd())]),
    }
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == [str(tmp_path / "site"), "installed:sglang-0.4.6"]


def test_installed_but_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TargetError, match="not installed in the Python that runs specmap"):
        resolve("installed", tmp_path)


def test_no_target_takes_the_newest_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    index = FakeIndex({"0.5.23": OUTLINE}, newest="0.5.23")
    assert resolve(None, tmp_path, index).label == "sglang==0.5.23"


def test_a_release_is_normalised_and_kept(tmp_path: Path) -> None:
    index = FakeIndex({"0.5.3.post1": OUTLINE})
    first = resolve("sglang==0.5.3-post1", tmp_path, index)
    second = resolve("SGLang == 0.5.3.post1", tmp_path, index)
    assert first == second
    assert first.release == "0.5.3.post1"
    assert index.downloads == 1


def test_a_release_that_is_no_version(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="is not a release"):
        resolve("sglang==latest", tmp_path)


def test_a_wheel_without_sources(tmp_path: Path) -> None:
    index = FakeIndex({"0.5.9": {"sglang/srt/speculative/core.so": ""}})
    with pytest.raises(TargetError, match="'sglang/srt/speculative' is missing"):
        resolve("sglang==0.5.9", tmp_path, index)


def test_git_reads_the_commit_and_not_the_working_tree(repository: Path) -> None:
    found = resolve("git:v0.5.9", repository / "python")
    commit = git(repository, "rev-parse", "v0.5.9")
    assert (found.label, found.release, found.commit) == (f"git:{commit[:12]}", "0.5.9", commit)
    worker = found.root / "sglang/srt/speculative/eagle_worker.py"
    assert worker.read_text("utf-8") == OUTLINE["sglang/srt/speculative/eagle_worker.py"]


def test_a_path_in_a_repository_knows_commit_and_nearest_release(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    found = resolve("python/sglang", repository)
    assert (found.release, found.commit) == ("0.5.9", head)
    (repository / "python/sglang/srt/new.py").write_text("", "utf-8")
    assert resolve("python/sglang", repository).commit == f"{head}-dirty"


def test_a_tree_inside_another_repository_does_not_take_its_tags(repository: Path) -> None:
    plant(repository / "vendored")
    found = resolve("vendored", repository)
    assert (found.release, found.commit) == (None, None)


@pytest.mark.parametrize("revision", ["no-such-branch", "", "--help"])
def test_an_unknown_revision(repository: Path, revision: str) -> None:
    with pytest.raises(TargetError, match="no such revision"):
        resolve(f"git:{revision}", repository)


def test_git_attributes_hide_and_change_nothing(repository: Path) -> None:
    (repository / ".gitattributes").write_text("python export-ignore\n*.py eol=crlf\n", "utf-8")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "attributes")
    found = resolve("git:HEAD", repository)
    before = resolve("git:HEAD~1", repository)
    names = {path.relative_to(found.root) for path in found.root.rglob("*.py")}
    assert names == {path.relative_to(before.root) for path in before.root.rglob("*.py")} != set()
    assert not any(b"\r" in (found.root / name).read_bytes() for name in names)


def test_git_outside_a_repository(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no git repository"):
        resolve("git:HEAD", tmp_path)


def test_a_commit_without_sglang(repository: Path) -> None:
    git(repository, "rm", "--quiet", "-r", "python")
    git(repository, "commit", "--quiet", "--message", "gone")
    with pytest.raises(TargetError, match="is this a SGLang repository"):
        resolve("git:HEAD", repository)
