from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specmap import cli
from tests.review_tree import plant

Refused = Callable[..., str]


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refused:
    """Run a command line that fails before anything is started; return its one line."""

    def command(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["specmap", "trace", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        shown = capsys.readouterr()
        assert (stopped.value.code, shown.out) == (2, "")
        assert shown.err.count("\n") == 1
        assert not (tmp_path / "output").exists()
        return shown.err

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "cache"))
    return command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give one of --live, --attach PID, --inject PID, or 'read', 'export', 'path'"),
        (["--live", "--attach", "1", "--", "x"], "give one of --live"),
        (["--live", "python", "x.py"], "write the command after --"),
        (["--live", "--"], "no command after --"),
        (["--live", "--cycles", "0", "--", "x"], "0 is not in the range"),
        (["--live", "--seconds", "0", "--", "x"], "0 is not in the range"),
        (["--live", "--seconds", "nan", "--", "x"], "nan is no finite number"),
        (["--live", "--baseline-tps", "inf", "--", "x"], "inf is no finite number"),
        (["--live", "--stop-after", "--", "x"], "--stop-after needs --live and one of"),
        (["--attach", "1", "--cycles", "3", "--stop-after"], "--stop-after needs --live"),
        (["--attach", "1", "--log", "l"], "--log takes the output of a server that --live"),
        (["--live", "--dormant", "--cycles", "3", "--", "x"], "--dormant only starts a server"),
        (["--attach", "1", "--dormant"], "--dormant only starts a server"),
        (["--inject", "1"], "it may hang for good, and the server with it; say --yes"),
        (["--inject", "1", "--yes"], "--inject needs --target"),
        (["read", "nowhere"], "is no run: it has no plan.json"),
        (["export", "nowhere", "--chrome", "x"], "is no run: it has no plan.json"),
    ],
)
def test_options_that_do_not_fit(refused: Refused, arguments: list[str], said: str) -> None:
    assert said in refused(*arguments)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([sys.executable, "-I", "-m", "x"], "-I isolates Python from PYTHONPATH, so the agent"),
        ([sys.executable, "-BE", "x.py"], "-E makes Python ignore PYTHONPATH"),
        ([sys.executable, "-S", "x.py"], "-S keeps Python from loading site modules"),
        (["sh", "serve.sh"], "cannot tell which Python 'sh' starts; put the Python command"),
        (["/no/such/python"], "cannot tell which Python '/no/such/python' starts"),
        ([sys.executable, "-m", "x"], "finds no sglang: put the Python that has it after --"),
    ],
)
def test_commands_that_cannot_be_traced(refused: Refused, command: list[str], said: str) -> None:
    assert said in refused("--live", "--", *command)


def test_a_second_tracer_in_the_environment(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECMAP_TRACE", "1")
    assert "another tracer is in this environment" in refused("--live", "--", sys.executable)


def test_the_folder_is_checked_before_anything_starts(refused: Refused, tmp_path: Path) -> None:
    plant(tmp_path / "tree")
    started = tmp_path / "started"
    command = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
    options = ("--live", "--target", "tree", "--dir")
    assert "cannot write a run to '/proc/run'" in refused(*options, "/proc/run", "--", *command)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").touch()
    assert "'run' already holds a run" in refused(*options, "run", "--", *command)
    assert not started.exists()


def test_attaching_to_nothing(refused: Refused) -> None:
    assert "no process 999999999" in refused("--attach", "999999999")
    assert f"no agent listens in process {os.getpid()}" in refused("--attach", str(os.getpid()))


def test_the_folder_for_pythonpath(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["specmap", "trace", "path"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    folder = Path(capsys.readouterr().out.removesuffix("\n"))
    assert stopped.value.code == 0
    assert (folder / "sitecustomize.py").is_file()
