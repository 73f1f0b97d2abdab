"""Environments are made whole or not at all; pip is not run here."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.live import environment
from tests.live.environment import BrokenEnvironmentError

pytestmark = pytest.mark.live

RELEASE = "0.5.9"


class Steps:
    """Takes the place of running commands; may fail at the last of them."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []
        self.failing = False

    def __call__(self, command: Sequence[str]) -> None:
        self.commands.append(command)
        if command[1:3] == ["-m", "venv"]:
            (Path(command[3]) / "bin").mkdir(parents=True)
        if self.failing and "--no-deps" in command:
            raise BrokenEnvironmentError("no such package")


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    steps = Steps()
    monkeypatch.setattr(environment, "run", steps)
    monkeypatch.setattr(environment, "root", lambda: tmp_path)
    return steps


def test_torch_comes_first_and_nothing_brings_its_own(steps: Steps) -> None:
    python = environment.python_of(RELEASE)
    _, torch, rest = (" ".join(command) for command in steps.commands)
    assert "install --quiet torch==" in torch
    assert "--no-deps" in rest
    assert python.parent.is_dir()


def test_it_is_made_once(steps: Steps) -> None:
    assert environment.python_of(RELEASE) == environment.python_of(RELEASE)
    assert len(steps.commands) == 3


def test_a_half_made_one_is_thrown_away(steps: Steps) -> None:
    steps.failing = True
    with pytest.raises(BrokenEnvironmentError, match="no such package"):
        environment.python_of(RELEASE)
    steps.failing = False
    folder = environment.python_of(RELEASE).parent.parent
    assert (folder / environment.MARKER).exists()
    assert len(steps.commands) == 6


def test_two_at_once_make_it_once(steps: Steps) -> None:
    threads = [threading.Thread(target=environment.python_of, args=(RELEASE,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(steps.commands) == 3


def test_a_full_disk_is_told_before_anything_is_made(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "NEEDED_BYTES", 2**70)
    with pytest.raises(BrokenEnvironmentError, match="GiB free, an environment needs"):
        environment.python_of(RELEASE)
    assert steps.commands == []


def test_other_requirements_or_another_python_are_another_folder() -> None:
    keys = {
        environment.key_of("torch==2.13.0\n", (3, 11, 7)),
        environment.key_of("torch==2.12.0\n", (3, 11, 7)),
        environment.key_of("torch==2.13.0\n", (3, 12, 1)),
    }
    assert len(keys) == 3


def test_a_failed_step_says_what_it_printed() -> None:
    with pytest.raises(BrokenEnvironmentError, match="no room"):
        environment.run([sys.executable, "-c", "raise SystemExit('no room')"])


@pytest.mark.parametrize("release", environment.RELEASES)
def test_the_environment_has_the_release(release: str) -> None:
    asked = "from importlib.metadata import version; print(version('sglang'))"
    python = str(environment.python_of(release))
    said = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == release
