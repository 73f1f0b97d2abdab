"""What can be told without stopping a process: getting in itself needs ptrace and its package."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from specmap.errors import OutputError, SpecmapError
from specmap.trace import inject


class InjectorError(Exception):
    """As pyinjector's."""


@pytest.fixture
def hypno(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int, str], None]], None]:
    """Install a hypno whose ``inject_py`` is the function given."""

    def install(inject_py: Callable[[int, str], None]) -> None:
        modules = {
            "hypno": SimpleNamespace(inject_py=inject_py),
            "pyinjector": SimpleNamespace(InjectorError=InjectorError),
        }
        monkeypatch.setattr(importlib, "import_module", modules.__getitem__)

    return install


def test_the_version_of_a_running_python() -> None:
    assert inject.python_of(os.getpid()) == sys.version_info[:2]


def test_another_program_is_no_python() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(SpecmapError, match=r"runs .*, which is no Python$"):
            inject.way_into(process.pid)
    finally:
        process.kill()
        process.wait()
    with pytest.raises(SpecmapError, match=r"^no process 999999999$"):
        inject.way_into(999999999)


def test_without_hypno_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(SpecmapError, match=r"^--inject needs the package 'hypno': pip install"):
        inject.way_into(os.getpid())


def test_python_3_14_only_lets_its_own_version_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """PEP 768: "the same version of the Python interpreter"."""
    monkeypatch.setattr(inject, "python_of", lambda pid: (3, 99))
    with pytest.raises(SpecmapError, match=r"runs Python 3\.99, .* run specmap under Python 3\.99"):
        inject.way_into(os.getpid())


def test_the_code_leaves_no_name_behind(
    tmp_path: Path, hypno: Callable[[Callable[[int, str], None]], None]
) -> None:
    """hypno runs the code in the process's __main__: it must be an expression."""
    ran: list[tuple[int, object]] = []
    hypno(lambda pid, code: ran.append((pid, eval(code, {})["__name__"])))
    script = inject.script_of(_wake(tmp_path, "woken = 1"), {"SPECMAP_TRACE": "dormant"}, tmp_path)
    inject.way_into(os.getpid())(script)
    assert ran == [(os.getpid(), "<run_path>")]
    assert os.environ.pop("SPECMAP_TRACE") == "dormant"


def test_a_refusal_of_the_system_is_one_line(
    tmp_path: Path, hypno: Callable[[Callable[[int, str], None]], None]
) -> None:
    def refuse(pid: int, code: str) -> None:
        raise InjectorError("Operation not permitted")

    hypno(refuse)
    with pytest.raises(SpecmapError, match=r"lets nobody in: Operation not permitted; it takes "):
        inject.way_into(os.getpid())(tmp_path / "inject.py")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        inject.script_of(tmp_path / "wake.py", {}, tmp_path / "nowhere")


def test_an_agent_that_never_wakes() -> None:
    with pytest.raises(SpecmapError, match=r"no agent woke in process .* within 0 s"):
        inject.wait_for_agent(os.getpid(), seconds=0)


def _wake(folder: Path, text: str) -> Path:
    (folder / "wake.py").write_text(text, "utf-8")
    return folder / "wake.py"
