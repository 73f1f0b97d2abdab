from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from specmap.codemap.graph import CodeMap, Problem
from specmap.errors import CacheError, RulesError, TargetError
from specmap.pipeline import default_cache_dir, scan_tree
from specmap.scan import build, mapcache
from specmap.scan.checkout import Checkout, resolve_target
from specmap.scan.index import Tree
from tests.scan.trees import OUTLINE, FakeIndex, plant
from tests.small_map import small_map
from tests.test_architecture import loaded_after


def test_the_cache_folder_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path))
    assert default_cache_dir() == tmp_path


def test_the_cache_folder_is_the_user_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPECMAP_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "specmap"


def test_a_refused_target_leaves_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(TargetError):
        scan_tree("nowhere", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


class Scans:
    """Stands for the scanner: counts the scans of a small tree and gives a small map."""

    def __init__(self, folder: Path) -> None:
        self.tree = plant(folder / "tree")
        self.cache = folder / "cache"
        self.count = 0
        self.problems: tuple[Problem, ...] = ()

    def scan(self, checkout: Checkout, **given: object) -> CodeMap:
        self.count += 1
        return replace(
            small_map(*self.problems),
            target=checkout.label,
            platform=str(given["platform"]),
        )

    def __call__(
        self, platform: str = "cuda", use_cache: bool = True, vocabulary: Path | None = None
    ) -> CodeMap:
        return scan_tree(
            self.tree,
            cache_dir=self.cache,
            platform=platform,
            use_cache=use_cache,
            vocabulary=vocabulary,
        )

    def entries(self) -> list[Path]:
        return sorted((self.cache / "scan").iterdir())


@pytest.fixture
def scans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scans:
    made = Scans(tmp_path)
    monkeypatch.setattr(build, "scan", made.scan)
    return made


def test_the_second_scan_of_the_same_tree_reads_the_cache(scans: Scans) -> None:
    assert scans() == scans()
    assert scans.count == 1
    assert len(scans.entries()) == 1


def test_a_partial_map_is_kept_too(scans: Scans) -> None:
    scans.problems = (Problem("sglang/srt/a.py", 3, "invalid syntax"),)
    assert scans().partial
    assert scans().partial
    assert scans.count == 1


def test_a_changed_file_is_scanned_anew(scans: Scans) -> None:
    scans()
    (scans.tree / "sglang/srt/speculative/eagle_worker.py").write_text("x = 1\n", "utf-8")
    scans()
    assert scans.count == 2


def test_a_file_that_is_no_source_changes_nothing(scans: Scans) -> None:
    scans()
    (scans.tree / "sglang/README.md").write_text("text", "utf-8")
    scans()
    assert scans.count == 1


def test_another_platform_is_another_map(scans: Scans) -> None:
    assert [scans(p).platform for p in ("cuda", "hip", "cuda", "hip")] == ["cuda", "hip"] * 2
    assert scans.count == 2


def test_another_release_of_the_same_files_is_another_map(scans: Scans) -> None:
    assert scans().target == "path:sglang"
    version = scans.tree / "pyproject.toml"
    version.write_text('[project]\nname = "sglang"\nversion = "0.5.9"\n', "utf-8")
    assert scans().target == "path:sglang-0.5.9"


def test_another_vocabulary_is_another_map(scans: Scans, tmp_path: Path) -> None:
    words = tmp_path / "words.toml"
    words.write_text("a = 1\n", "utf-8")
    scans(vocabulary=words)
    scans(vocabulary=words)
    assert scans.count == 1
    words.write_text("a = 2\n", "utf-8")
    scans(vocabulary=words)
    assert scans.count == 2
    scans()
    assert scans.count == 3


def test_a_vocabulary_that_is_not_there(scans: Scans, tmp_path: Path) -> None:
    with pytest.raises(RulesError, match=r"gone\.toml: No such file"):
        scans(vocabulary=tmp_path / "gone.toml")


def test_another_specmap_scans_anew(scans: Scans, monkeypatch: pytest.MonkeyPatch) -> None:
    scans()
    monkeypatch.setattr(mapcache, "_own_sources", lambda: b"another")
    scans()
    assert scans.count == 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:],
        lambda data: b"not a map",
    ],
)
def test_a_spoilt_entry_is_scanned_anew(scans: Scans, spoil: Callable[[bytes], bytes]) -> None:
    first = scans()
    (entry,) = scans.entries()
    whole = entry.read_bytes()
    entry.write_bytes(spoil(whole))
    assert scans() == first
    assert scans.count == 2
    assert scans.entries() == [entry]
    assert entry.read_bytes() == whole


def test_without_a_cache_nothing_is_read_or_left(scans: Scans) -> None:
    scans(use_cache=False)
    assert not scans.cache.exists()
    scans()
    scans(use_cache=False)
    assert scans.count == 3


def test_a_cache_that_cannot_be_written_is_found_out_before_the_scan(scans: Scans) -> None:
    scans.cache.mkdir()
    (scans.cache / "scan").write_text("a file", "utf-8")
    with pytest.raises(CacheError, match=r"cannot be used: .*; name another in SPECMAP_CACHE_DIR"):
        scans()
    assert scans.count == 0


def test_a_full_disk_is_one_line_and_leaves_nothing(
    scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(path: Path, content: bytes) -> int:
        with path.open("wb") as handle:
            handle.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(CacheError, match="No space left on device"):
        scans()
    assert scans.entries() == []


def test_a_disk_that_is_full_when_what_was_read_is_kept(
    scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    def scan(checkout: Checkout, **given: Callable[[Tree], None]) -> CodeMap:
        given["done"](Tree(checkout.root, "sglang"))
        return small_map()

    monkeypatch.setattr(build, "scan", scan)
    monkeypatch.setattr(zipfile, "ZipFile", full)
    with pytest.raises(CacheError, match="No space left on device"):
        scans()
    assert scans.entries() == []


def test_a_scan_that_fails_leaves_nothing(scans: Scans, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> CodeMap:
        raise TargetError("no scheduler")

    monkeypatch.setattr(build, "scan", fail)
    with pytest.raises(TargetError):
        scans()
    assert scans.entries() == []


def test_the_newest_forty_entries_stay(scans: Scans) -> None:
    folder = scans.cache / "scan"
    folder.mkdir(parents=True)
    for age in range(45):
        entry = folder / f"{age:02}.map"
        entry.write_bytes(b"")
        os.utime(entry, (1000 - age, 1000 - age))
    scans()
    assert len(scans.entries()) == mapcache.KEPT == 40
    assert {entry.name for entry in scans.entries()} >= {f"{age:02}.map" for age in range(39)}


def _scan_in_a_process(tree: Path, cache: Path) -> str:
    build.scan = lambda checkout, **_: replace(small_map(), target=checkout.label)
    return scan_tree(tree, cwd=tree, cache_dir=cache).target


def test_two_scans_at_once_both_succeed(tmp_path: Path) -> None:
    tree, cache = plant(tmp_path / "tree"), tmp_path / "cache"
    with get_context("spawn").Pool(2) as pool:
        found = pool.starmap(_scan_in_a_process, [(tree, cache)] * 4, chunksize=1)
    assert found == ["path:sglang"] * 4
    assert len(list((cache / "scan").iterdir())) == 1


def test_a_release_is_known_without_reading_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = FakeIndex({"0.5.9": OUTLINE, "0.5.12": {**OUTLINE, "sglang/srt/new.py": ""}})

    def key(version: str) -> mapcache.MapKey:
        checkout = resolve_target(
            f"sglang=={version}", cwd=tmp_path, cache_dir=tmp_path, index=index
        )
        return mapcache.map_key(replace(checkout, label="", release=""), "cuda", None)

    first = key("0.5.9")
    monkeypatch.setattr(mapcache, "Tree", None)
    assert key("0.5.9") == first
    assert key("0.5.12") != first


def test_a_warm_scan_does_not_load_the_parsers(scans: Scans) -> None:
    scans()
    loaded = loaded_after(
        "from pathlib import Path; from specmap.pipeline import scan_tree; "
        f"scan_tree({str(scans.tree)!r}, cache_dir=Path({str(scans.cache)!r}))"
    )
    assert "specmap" in loaded
    assert loaded.isdisjoint({"libcst", "networkx", "graphviz", "rich"})
