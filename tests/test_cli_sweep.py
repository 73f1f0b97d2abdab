"""The verb ``sweep`` on the command line: options, formats, exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from specmap import cli
from tests.sweep.tree import LAUNCH, sweepable


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = sweepable(tmp_path_factory.mktemp("sweep"))
    (root / "sglang/environ.py").write_text('SPEC = os.environ.get("SGLANG_SPEC")\n', "utf-8")
    return root


def specmap(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["specmap", "sweep", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def swept(monkeypatch: pytest.MonkeyPatch, root: Path, *more: str) -> int:
    return specmap(monkeypatch, str(root), "--no-cache", "--args", LAUNCH, *more)


def test_lost_graphs_are_exit_code_1(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert swept(monkeypatch, root, "--vary", "disable-cuda-graph=yes,no") == 1
    out = capsys.readouterr().out
    assert "2 cells: 1 lost a graph, 1 kept every graph." in out


def test_a_launch_that_does_not_speculate_is_exit_code_0(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert swept(monkeypatch, root, "--vary", "speculative-algorithm=unset") == 0


def test_batches_may_be_given_apart(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    swept(monkeypatch, root, "--batch", "bs=1", "--batch", "bs=2", "-f", "json")
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [cell["batch_size"] for cell in cells] == [1, 2]


def test_variables_that_the_tree_or_a_library_may_read_are_varied(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SGLANG_SPEC", "NCCL_DEBUG"):
        assert (
            swept(monkeypatch, root, "--vary", f"{name}=0,1", "--vary", "disable-cuda-graph=yes")
            == 1
        )


def test_nothing_settled_is_exit_code_2(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert swept(monkeypatch, root, "--batch", "bs=2,3") == 2
    found = capsys.readouterr()
    assert "2 cells: 2 not settled." in found.out
    assert "no cell can be told" in found.err


def test_a_worker_that_could_not_be_read_is_not_plain_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = sweepable(tmp_path)
    worker = tree / "sglang/srt/speculative/eagle_worker.py"
    worker.write_text(worker.read_text("utf-8") + "\ndef broken(:\n", "utf-8")
    assert swept(monkeypatch, tree, "--batch", "bs=1") == 2
    out = capsys.readouterr().out
    assert "without speculation" not in out
    assert "1 cell: 1 not settled" in out


@pytest.mark.parametrize("name", ["json", "csv", "markdown"])
def test_formats_go_to_a_file(
    name: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "sweep"
    code = swept(
        monkeypatch, root, "--vary", "disable-cuda-graph=yes,no", "-f", name, "-o", str(file)
    )
    assert code == 1
    text = file.read_text("utf-8")
    if name == "json":
        assert [cell["state"] for cell in json.loads(text)["cells"]] == ["lost", "kept"]
    else:
        assert "server_args.disable_cuda_graph is true" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "a sweep needs a launch command: --args or --args-file"),
        (("--args", LAUNCH, "--vary", "steps"), "expected NAME=VALUE"),
        (("--args", LAUNCH, "--batch", "bs=x"), "expected numbers of requests"),
        (("--args", LAUNCH, "--accept-length", "3=2"), "name one with --run"),
        (("--args", LAUNCH, "--run", "nowhere"), "nowhere"),
        (("--args", LAUNCH, "--target", "elsewhere"), "the tree is named twice"),
        (("--args", LAUNCH, "--vary", "speculative-num-step=1"), "did you mean"),
        (("--args", LAUNCH, "--tp", "2", "--vary", "tp-size=1,2"), "--tp and --vary tp-size state"),
        (("--args", LAUNCH, "--env", "A=1", "--vary", "A=0,1"), "--env A and --vary A state"),
        (("--args", LAUNCH, "--vary", "SGLANG_SPEK=0"), "reads SGLANG_SPEK; did you mean SGLANG_"),
        (("--args", LAUNCH, "--args", LAUNCH), "--args is given more than once"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(
    arguments: tuple[str, ...],
    message: str,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert specmap(monkeypatch, str(root), "--no-cache", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
