"""What every test starts with."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.review_tree import LAST_LINE, SYNC, VERIFY, Run, edit, plant


@pytest.fixture(autouse=True)
def garbage_collection() -> Iterator[None]:
    """The command line switches the collector off for its one run; here it comes back."""
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def no_width_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs are compared as they are in a pipe, whatever the terminal of who tests."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in a folder with two trees; return exit code, output and errors."""
    from specmap import cli

    plant(tmp_path / "clean")
    edit(plant(tmp_path / "bad"), VERIFY, (LAST_LINE, SYNC + LAST_LINE))

    def command(*arguments: str) -> tuple[int | str | None, str, str]:
        monkeypatch.setattr(sys, "argv", ["specmap", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "cache"))
    return command
