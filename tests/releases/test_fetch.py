"""Wheels of real releases: each kind that the package index has."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.errors import TargetError
from specmap.pipeline import default_cache_dir
from specmap.scan.checkout import resolve_target
from specmap.scan.fetch import PipIndex

# A pure wheel of the first layout, a pure one, post-releases, and wheels with a CPython tag.
RELEASES = ("0.4.6", "0.5.3.post1", "0.5.9", "0.5.12", "0.5.23")


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_is_fetched_and_knows_itself(release: str) -> None:
    named = f"sglang=={release}"
    found = resolve_target(named, cwd=Path.cwd(), cache_dir=default_cache_dir())
    assert (found.label, found.release) == (named, release)
    assert (found.root / "sglang/srt/managers/scheduler.py").is_file()


def test_the_index_lists_releases_newest_first() -> None:
    listed = PipIndex().releases()
    assert listed.index("0.5.23") < listed.index("0.5.12.post1") < listed.index("0.4.6")


def test_a_release_that_never_was(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"sglang==0\.5\.999: no such wheel .*0\.5\."):
        resolve_target("sglang==0.5.999", cwd=tmp_path, cache_dir=tmp_path)


def test_an_index_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(TargetError, match="cannot be reached or has no SGLang wheel") as caught:
        resolve_target("sglang==0.5.9", cwd=tmp_path, cache_dir=tmp_path)
    assert "\n" not in str(caught.value)
