from __future__ import annotations

from pathlib import Path

import pytest

from specmap.errors import TargetError
from specmap.pipeline import default_cache_dir, scan_tree


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
