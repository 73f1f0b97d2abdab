from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specmap.errors import OutputError, SpecmapError
from specmap.trace.launch import Options, Server, check_untraced, environment_of, inject_folder
from specmap.tracing import _kept

BASE = {"PATH": os.environ["PATH"], "HOME": "/home/user"}
SLEEP = "import time; print('up', flush=True); time.sleep(60)"


def wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + 60
    while text not in path.read_text("utf-8"):
        assert time.monotonic() < deadline, f"{text!r} never came"
        time.sleep(0.02)


def code_of(server: Server) -> int:
    deadline = time.monotonic() + 60
    while server.ended() is None:
        assert time.monotonic() < deadline, "the command goes on"
        time.sleep(0.02)
    code = server.ended()
    assert code is not None
    return code


def test_the_agent_comes_first_on_the_path(tmp_path: Path) -> None:
    got = environment_of({**BASE, "PYTHONPATH": "/a:/b"}, directory=tmp_path, options=Options())
    assert got["PYTHONPATH"] == f"{inject_folder()}:/a:/b"
    assert got["HOME"] == "/home/user"
    assert {name: value for name, value in got.items() if name.startswith("SPECMAP_")} == {
        "SPECMAP_TRACE": "1",
        "SPECMAP_DIR": str(tmp_path),
        "SPECMAP_PLAN": str(tmp_path / "plan.json"),
        "SPECMAP_COLLECTOR": str(os.getpid()),
    }


def test_what_was_asked_for_is_passed_on(tmp_path: Path) -> None:
    options = Options(spans=8, syncs=True, launches=True, windows=50)
    got = environment_of(BASE, directory=tmp_path, options=options)
    names = ("SPANS", "SYNCS", "LAUNCHES", "WINDOWS")
    assert [got[f"SPECMAP_{name}"] for name in names] == ["8", "1", "1", "50"]
    assert got["PYTHONPATH"] == str(inject_folder())


def test_what_another_trace_asked_for_is_not_asked_for_again(tmp_path: Path) -> None:
    left = dict.fromkeys(("SPANS", "SYNCS", "LAUNCHES", "WINDOWS"), "1")
    base = {**BASE, **{f"SPECMAP_{name}": value for name, value in left.items()}}
    plain = environment_of(BASE, directory=tmp_path, options=Options())
    assert environment_of(base, directory=tmp_path, options=Options()) == plain


def test_a_dormant_agent_is_told_no_folder() -> None:
    got = environment_of(BASE, directory=None, options=Options(), dormant=True)
    assert got["SPECMAP_TRACE"] == "dormant"
    assert "SPECMAP_DIR" not in got


def test_a_second_tracer_in_the_same_environment_is_refused(tmp_path: Path) -> None:
    first = environment_of(BASE, directory=tmp_path, options=Options())
    with pytest.raises(SpecmapError, match="SPECMAP_TRACE is set, so another tracer"):
        check_untraced(first)
    check_untraced(BASE)


@pytest.mark.parametrize(("code", "expected"), [("raise SystemExit(7)", 7), ("pass", 0)])
def test_the_exit_code_is_the_commands(code: str, expected: int) -> None:
    assert code_of(Server([sys.executable, "-c", code], os.environ)) == expected


def test_a_signal_is_128_and_its_number(tmp_path: Path) -> None:
    server = Server([sys.executable, "-c", SLEEP], os.environ, tmp_path / "log")
    wait_for(tmp_path / "log", "up")
    os.kill(server.pid, signal.SIGKILL)
    assert code_of(server) == 137


def test_both_outputs_go_to_the_log(tmp_path: Path) -> None:
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr)"
    assert code_of(Server([sys.executable, "-c", code], os.environ, tmp_path / "log")) == 0
    assert (tmp_path / "log").read_text("utf-8") == "out\nerr\n"


def test_an_interrupt_reaches_the_grandchildren_too(tmp_path: Path) -> None:
    """As Ctrl-C on a terminal: SGLang's ranks are children of what was started."""
    child = (
        "import time\nprint('child', flush=True)\ntry:\n time.sleep(60)\n"
        "except KeyboardInterrupt:\n print('child stops', flush=True)"
    )
    code = (
        f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "try:\n child.wait()\nexcept KeyboardInterrupt:\n child.wait()\n print('stopped')"
    )
    server = Server([sys.executable, "-c", code], os.environ, tmp_path / "log")
    wait_for(tmp_path / "log", "child\n")
    server.pass_on(signal.SIGINT)
    assert code_of(server) == 0
    assert (tmp_path / "log").read_text("utf-8").split("\n")[1:3] == ["child stops", "stopped"]
    server.pass_on(signal.SIGINT)  # nobody is left: no error


def test_a_command_that_does_not_heed_sigterm_is_killed(tmp_path: Path) -> None:
    code = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{SLEEP}"
    server = Server([sys.executable, "-c", code], os.environ, tmp_path / "log")
    wait_for(tmp_path / "log", "up")
    assert not server.terminate(seconds=0.2)
    assert server.ended() == 137
    assert server.terminate()


def test_sigterm_is_enough_for_others(tmp_path: Path) -> None:
    server = Server([sys.executable, "-c", SLEEP], os.environ, tmp_path / "log")
    wait_for(tmp_path / "log", "up")
    assert server.terminate()
    assert server.ended() == 143


def test_what_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpecmapError, match=r"^cannot start '/no/such': No such file or directory$"):
        Server(["/no/such"], os.environ)
    with pytest.raises(OutputError, match=r"cannot write '.*/no/log': .*; name another --log$"):
        Server([sys.executable], os.environ, tmp_path / "no" / "log")


def test_a_dormant_server_takes_the_place_of_specmap() -> None:
    code = (
        "import os, sys\nfrom specmap.trace.launch import become\n"
        "print(os.getpid(), flush=True)\n"
        "become([sys.executable, '-c', 'import os; print(os.getpid())'], os.environ)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = done.stdout.split()
    assert before == after


def test_the_plan_of_a_sleeping_agent_is_kept_in_a_fresh_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "not/yet"))
    place = _kept(b"{}")
    assert place.read_bytes() == b"{}"
    assert place.is_relative_to(tmp_path / "not/yet/trace")
