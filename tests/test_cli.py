from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from specmap import cli, pipeline
from specmap.codemap.graph import CodeMap, Problem
from specmap.errors import TargetError
from tests.small_map import small_map

SYNTAX_ERROR = Problem("sglang/srt/managers/schedule_batch.py", 7, "invalid syntax")


@dataclass(frozen=True)
class Result:
    """What one command left: exit code, standard output, standard error."""

    code: int | str | None
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in an empty folder; the scan itself gives ``codemap``."""

    def command(*arguments: str, codemap: CodeMap | Exception | None = None) -> Result:
        def scan_tree(*_: object, **__: object) -> CodeMap:
            if isinstance(codemap, Exception):
                raise codemap
            return small_map() if codemap is None else codemap

        monkeypatch.setattr(pipeline, "scan_tree", scan_tree)
        monkeypatch.setattr(sys, "argv", ["specmap", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return Result(stopped.value.code, captured.out, captured.err)

    monkeypatch.chdir(tmp_path)
    return command


def one_line(result: Result) -> str:
    """Return the only line on stderr of a command that failed and printed nothing else."""
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("specmap: ")
    assert result.err.count("\n") == 1
    return result.err


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_text_goes_to_standard_output(run: Run, tmp_path: Path) -> None:
    result = run("scan", "sglang==0.5.9")
    assert result.code == 0
    assert "EAGLEWorker" in result.out
    assert result.err == ""
    assert files_in(tmp_path) == []


def test_json_goes_to_output_under_the_name_of_the_target(run: Run, tmp_path: Path) -> None:
    result = run("scan", "--format", "json", "--worker", "EAGLEWorker", "--phase", "verify")
    assert (result.code, result.err) == (0, "")
    assert result.out == "wrote output/sglang-0.5.9.EAGLEWorker.verify.json\n"
    assert files_in(tmp_path) == ["output/sglang-0.5.9.EAGLEWorker.verify.json"]
    written = json.loads((tmp_path / "output/sglang-0.5.9.EAGLEWorker.verify.json").read_bytes())
    assert [worker["name"] for worker in written["workers"]] == ["EAGLEWorker"]
    assert [phase["name"] for phase in written["workers"][0]["phases"]] == ["verify"]


def test_a_dash_means_standard_output(run: Run, tmp_path: Path) -> None:
    result = run("scan", "--format", "json", "-o", "-")
    assert json.loads(result.out)["target"] == "sglang==0.5.9"
    assert files_in(tmp_path) == []


def test_output_may_be_a_file_or_a_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    assert run("scan", "-f", "json", "-o", "maps", "-q").out == ""
    assert run("scan", "-f", "text", "-o", "maps/one.txt").out == "wrote maps/one.txt\n"
    assert files_in(tmp_path) == ["maps/one.txt", "maps/sglang-0.5.9.json"]


def test_a_folder_is_made_under_output_alone(run: Run, tmp_path: Path) -> None:
    slipped = run("scan", "-f", "json", "-o", "nowhere/one.json")
    assert slipped.code == 2
    assert "cannot write 'nowhere/one.json': No such file" in slipped.err
    assert files_in(tmp_path) == []
    assert run("scan", "-f", "json", "-o", "output/today/one.json").code == 0
    assert files_in(tmp_path) == ["output/today/one.json"]


def test_a_path_target_leaves_no_path_in_the_file_name(run: Run, tmp_path: Path) -> None:
    run("scan", "-f", "json", codemap=small_map())
    assert not any("==" in name for name in files_in(tmp_path))


@pytest.mark.parametrize("name", ["svg", "png"])
def test_without_dot_the_texts_are_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PATH", "")
    result = run("scan", "--format", name)
    assert result.code == 2
    assert result.out == "wrote output/sglang-0.5.9.dot\nwrote output/sglang-0.5.9.mmd\n"
    assert "install the package 'graphviz'" in result.err
    assert result.err.count("\n") == 1
    assert (tmp_path / "output/sglang-0.5.9.dot").read_text("utf-8").startswith("digraph")


def test_a_named_drawing_without_dot_keeps_its_place(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    (tmp_path / "drawn").mkdir()
    run("scan", "--format", "svg", "-o", "drawn/cycle.svg")
    assert files_in(tmp_path) == ["drawn/cycle.dot", "drawn/cycle.mmd"]


def test_an_unknown_worker_names_the_nearest(run: Run) -> None:
    error = one_line(run("scan", "sglang==0.5.9", "--worker", "EagleWorkr"))
    assert error.startswith("specmap: no worker 'EagleWorkr' in sglang==0.5.9; ")
    assert "did you mean EAGLEWorker" in error


def test_a_worker_of_a_file_that_was_not_read_is_not_guessed(run: Run) -> None:
    error = one_line(run("scan", "--worker", "EAGLEWorkerV2", codemap=small_map(SYNTAX_ERROR)))
    assert "the map is partial, not read: sglang/srt/managers/schedule_batch.py:7" in error
    assert "did you mean" not in error


def test_a_worker_like_no_other_lists_them(run: Run) -> None:
    assert "there are: EAGLEWorker, NGRAMWorker" in one_line(run("scan", "--worker", "xyzzy"))


def test_an_unknown_phase_is_refused_before_the_scan(run: Run) -> None:
    never = AssertionError("scanned")
    error = one_line(run("scan", "--phase", "verfy", codemap=never))
    assert error == "specmap: no phase 'verfy'; did you mean verify?\n"


def test_a_phase_that_the_worker_does_not_have(run: Run) -> None:
    error = one_line(run("scan", "--worker", "NGRAMWorker", "--phase", "draft"))
    assert "they have: verify" in error


def test_an_error_of_the_target_is_one_line(run: Run) -> None:
    assert "no such folder" in one_line(
        run("scan", "x", codemap=TargetError("'x': no such folder"))
    )


def test_an_error_that_nobody_foresaw_is_one_line_too(run: Run) -> None:
    error = one_line(run("scan", "x", codemap=RecursionError("too deep\nfor us")))
    assert "RecursionError: too deep for us; SPECMAP_TRACEBACK=1" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scan", "--platform", "tpu"], "'cuda'"),
        (["scan", "--format", "pdf"], "'svg'"),
        (["scan", "a", "b"], "unexpected extra argument"),
        (["scan", "--wat"], "--wat"),
        (["scna"], "scna"),
        (["scan", "-f", "png", "-o", "-"], "png is not text"),
    ],
)
def test_a_wrong_option_is_one_line(run: Run, arguments: list[str], message: str) -> None:
    assert message in one_line(run(*arguments))


def test_an_output_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    error = one_line(run("scan", "-f", "json", "-o", "file/map.json"))
    assert "cannot write 'file/map.json'" in error
    assert files_in(tmp_path) == ["file"]


class FullDisk(BytesIO):
    """A file on a disk that has no room."""

    def writelines(self, parts: Iterable[Any]) -> None:
        raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "map.json").write_text("old", "utf-8")

    whole = Path.open

    def fill(path: Path, mode: str = "r", **more: Any) -> IO[Any]:
        if mode != "wb":
            return whole(path, mode, **more)
        path.touch()
        return FullDisk()

    monkeypatch.setattr(Path, "open", fill)
    assert "No space left on device" in one_line(run("scan", "-f", "json", "-o", "map.json"))
    assert files_in(tmp_path) == ["map.json"]
    assert (tmp_path / "map.json").read_text("utf-8") == "old"


def test_a_partial_map_is_printed_named_and_fails(run: Run) -> None:
    result = run("scan", codemap=small_map(SYNTAX_ERROR))
    assert result.code == 2
    assert "EAGLEWorker" in result.out
    assert result.err.splitlines()[-1] == (
        "specmap: the map is partial, not read: "
        "sglang/srt/managers/schedule_batch.py:7 (invalid syntax)"
    )


def test_many_unread_modules_are_counted(run: Run) -> None:
    problems = [Problem(f"sglang/m{number}.py", None, "invalid syntax") for number in range(8)]
    result = run("scan", codemap=small_map(*problems))
    assert "sglang/m4.py (invalid syntax) and 3 more" in result.err


def test_a_remark_does_not_make_a_map_partial(run: Run) -> None:
    remark = Problem("sglang/srt/a.py", 1, "unusual encoding", partial=False)
    assert run("scan", codemap=small_map(remark)).code == 0


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == "specmap 0.1.0\n"
    assert "specmap scan sglang==0.5.9 --worker EAGLEWorker" in run("scan", "--help").out
    assert run().out == run("--help").out


PIPED = """
import sys
from specmap import cli, pipeline
from tests.small_map import small_map
pipeline.scan_tree = lambda *a, **k: small_map()
sys.argv = ["specmap", "scan", *sys.argv[1:]]
cli.main()
"""


def piped(stdout: int, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a scan in a process of its own that writes to the file descriptor ``stdout``."""
    return subprocess.run(
        [sys.executable, "-c", PIPED],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        check=False,
    )


def test_a_reader_that_stops_early_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = piped(writer)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_full_standard_output_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        result = piped(full.fileno())
    assert result.returncode == 2
    assert result.stderr == b"specmap: cannot write to standard output: No space left on device\n"


def test_a_terminal_without_unicode() -> None:
    result = piped(subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.isascii()


def test_a_pipe_is_as_wide_as_the_caller_says(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS is POSIX's word for it; without it nothing wraps, so that lines can be searched."""
    tree = ("scan", "--platform", "cuda")
    free = max(map(len, run(*tree).out.splitlines()))
    monkeypatch.setenv("COLUMNS", "80")
    narrow = max(map(len, run(*tree).out.splitlines()))
    assert narrow <= 80 < free


@pytest.mark.parametrize(
    ("closed", "arguments", "code"),
    [(">&-", "rules", 0), ("2>&-", "rules", 0), ("<&-", "scan nowhere --args-file -", 2)],
)
def test_a_stream_that_the_caller_closed(closed: str, arguments: str, code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m specmap {arguments} {closed}', sys.executable],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert "internal error" not in done.stderr
    assert bool(done.stdout) == (closed == "2>&-")


def test_long_work_that_nobody_watches_says_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 1.0, 11.0, 12.0])
    monkeypatch.setattr("specmap.cli.time", SimpleNamespace(monotonic=lambda: next(clock)))
    with cli._progress(quiet=False) as progress:
        assert progress is not None
        for step in ("read", "scan", "scan"):
            progress(step, 0, 0)
    said = "specmap: still at work (scan); a first look at a tree takes up to a minute\n"
    assert capsys.readouterr().err == said
