"""The options of a launch on the command line: what contradicts or cannot be read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specmap import cli
from specmap.errors import SpecmapError
from specmap.launched import Launch, judge_launch, read_expectations


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gpu-memory", "80"), "need a launch command: --args or --args-file"),
        (("--args", "--tp 2", "--args-file", "x"), "give one"),
        (("--args-file", "missing.sh"), "--args-file 'missing.sh': No such file"),
        (("--args", "--tp 2", "--env", "A"), "--env A: expected NAME=VALUE"),
        (("--args", "--tp 2", "--tp", "0"), "--tp must be above 0"),
        (("--sm", "0"), "need a launch command: --args or --args-file"),
        (("--args", "--tp 2", "--gpu-memory", "nan"), "--gpu-memory must be above 0 and finite"),
        (("--args", "--tp 2", "--gpu-memory", "inf"), "--gpu-memory must be above 0 and finite"),
        (("--args", ""), "no server is started in this text"),
        (("--args", "--tp 2", "--worker", "EAGLEWorker"), "a launch selects its own worker"),
        (("--args", "--tp 2", "--format", "svg"), "a launch is shown as text or json"),
        (("--args", "--tp 2", "--phase", "verfy"), "no phase 'verfy'; did you mean verify?"),
    ],
)
def test_bad_options_are_exit_code_2(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["specmap", "scan", "nowhere", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    error = capsys.readouterr().err
    assert stopped.value.code == 2
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("verb", ["scan", "why"])
def test_the_help_names_the_options(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["specmap", verb, "--help"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 0
    assert "--model-config" in capsys.readouterr().out


def test_expectations() -> None:
    assert read_expectations("verify=GRAPH, draft=EAGER") == {"verify": "GRAPH", "draft": "EAGER"}
    with pytest.raises(SpecmapError, match="no phase 'verfy'; target_prefill"):
        read_expectations("verfy=GRAPH")
    with pytest.raises(SpecmapError, match="no verdict 'graph'; GRAPH"):
        read_expectations("verify=graph")


def test_a_target_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecmapError):
        judge_launch(str(tmp_path / "nowhere"), Launch("--tp 2"), use_cache=False)
