from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from specmap.errors import CacheError, TargetError
from specmap.scan.store import release_tree
from tests.scan.trees import OUTLINE, FakeIndex, pack

WORKER = "sglang/srt/speculative/eagle_worker.py"


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_only_sources_and_metadata_are_unpacked(tmp_path: Path) -> None:
    wheel = {
        **OUTLINE,
        "sglang/srt/layers/config.json": "{}",
        "tools/helper.py": "",
        "sglang-0.5.9.dist-info/METADATA": "Version: 0.5.9\n",
        "sglang-0.5.9.dist-info/RECORD": "",
    }
    root = release_tree("0.5.9", tmp_path, FakeIndex({"0.5.9": wheel}))
    assert names_in(root) == sorted([*OUTLINE, "sglang-0.5.9.dist-info/METADATA"])


@pytest.mark.parametrize(
    "name", ["../evil.py", "/evil.py", "sglang/../../evil.py", "..\\evil.py", "C:/evil.py", "."]
)
def test_a_path_out_of_the_archive_is_refused(tmp_path: Path, name: str) -> None:
    cache = tmp_path / "deep" / "cache"
    with pytest.raises(TargetError, match="unsafe path"):
        release_tree("0.5.9", cache, FakeIndex({"0.5.9": {**OUTLINE, name: "bad"}}))
    assert not [found for found in names_in(tmp_path) if "evil" in found]
    assert not (cache / "releases/0.5.9").exists()


@pytest.mark.parametrize("damage", ["cut", "changed", "removed", "added", "no manifest", "a file"])
def test_a_corrupt_entry_is_built_anew_without_the_network(tmp_path: Path, damage: str) -> None:
    index = FakeIndex({"0.5.9": OUTLINE})
    root = release_tree("0.5.9", tmp_path, index)
    worker = root / WORKER
    if damage == "cut":
        worker.write_text("", "utf-8")
    elif damage == "changed":
        worker.write_text("c" * len(OUTLINE[WORKER]), "utf-8")
    elif damage == "removed":
        worker.unlink()
    elif damage == "added":
        (root / "sglang/extra.py").write_text("", "utf-8")
    elif damage == "no manifest":
        (root.parent / "manifest.json").write_text("{", "utf-8")
    else:
        root.parent.rename(tmp_path / "elsewhere")
        root.parent.write_text("", "utf-8")
    again = release_tree("0.5.9", tmp_path, index)
    assert names_in(again) == sorted(OUTLINE)
    assert (again / WORKER).read_text("utf-8") == OUTLINE[WORKER]
    assert index.downloads == 1


def test_a_corrupt_wheel_is_fetched_again(tmp_path: Path) -> None:
    index = FakeIndex({"0.5.9": OUTLINE})
    root = release_tree("0.5.9", tmp_path, index)
    (root.parent / "manifest.json").unlink()
    wheel = tmp_path / "wheels/sglang-0.5.9.whl"
    wheel.write_bytes(wheel.read_bytes()[:-9])
    assert names_in(release_tree("0.5.9", tmp_path, index)) == sorted(OUTLINE)
    assert index.downloads == 2


class BrokenIndex(FakeIndex):
    """Serves a wheel whose bytes were damaged before they were hashed."""

    def __init__(self, damage: bytes) -> None:
        super().__init__({"0.5.9": OUTLINE})
        self.damage = damage

    def download(self, version: str, folder: Path) -> Path:
        wheel = pack(folder / "sglang-0.5.9-py3-none-any.whl")
        content = wheel.read_bytes()
        wheel.write_bytes(
            self.damage or content.replace(b"class EAGLEWorker", b"class eagleworker")
        )
        return wheel


@pytest.mark.parametrize("damage", [b"not a zip file", b""], ids=["no zip", "bad checksum"])
def test_a_wheel_that_is_no_zip_leaves_nothing(tmp_path: Path, damage: bytes) -> None:
    with pytest.raises(TargetError, match="not a readable zip file"):
        release_tree("0.5.9", tmp_path, BrokenIndex(damage))
    assert [name for name in names_in(tmp_path) if name.endswith((".whl", ".py"))] == []


def test_a_failed_download_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no such wheel"):
        release_tree("0.5.9", tmp_path, FakeIndex({}))
    assert [name for name in names_in(tmp_path) if not name.endswith(".lock")] == []


def test_the_rest_of_a_killed_scan_is_cleared(tmp_path: Path) -> None:
    unpacking = tmp_path / "releases/.0.5.9.new-abc/tree/sglang"
    downloading = tmp_path / "wheels/.download-0.5.9-abc"
    for left in (unpacking, downloading):
        left.mkdir(parents=True)
    release_tree("0.5.9", tmp_path, FakeIndex({"0.5.9": OUTLINE}))
    assert not unpacking.exists()
    assert not downloading.exists()


def test_an_unusable_cache_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(CacheError, match=r"cannot be used: .*SPECMAP_CACHE_DIR") as caught:
        release_tree("0.5.9", tmp_path / "file" / "cache", FakeIndex({"0.5.9": OUTLINE}))
    assert "\n" not in str(caught.value)


class SlowIndex(FakeIndex):
    """Holds the first download until a second scan had time to start."""

    def __init__(self) -> None:
        super().__init__({"0.5.9": OUTLINE})
        self.started = threading.Event()
        self.go_on = threading.Event()

    def download(self, version: str, folder: Path) -> Path:
        self.started.set()
        assert self.go_on.wait(10)
        return super().download(version, folder)


def test_two_scans_at_once_download_once_and_see_the_same_tree(tmp_path: Path) -> None:
    index = SlowIndex()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(release_tree, "0.5.9", tmp_path, index)
        assert index.started.wait(10)
        second = pool.submit(release_tree, "0.5.9", tmp_path, index)
        threading.Timer(0.2, index.go_on.set).start()
        roots = {first.result(20), second.result(20)}
    assert [names_in(root) for root in roots] == [sorted(OUTLINE)]
    assert index.downloads == 1
