"""The options of a launch on the command line: what contradicts or cannot be read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from specmap import cli
from specmap.cli_options import ANEW
from specmap.errors import SpecmapError
from specmap.launched import Launch, judge_launch, read_expectations
from specmap.verdicts.words import load_words


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
        (("--args", "--tp 2", "--env", "A=1", "--env", "A=2"), "A is also given as '1'"),
        (("--args", "--tp 2", "--batch", "bs=1", "--batch", "bs=2"), "bs=1,bs=2: one size"),
        (("--args", "--tp 2", "--batch", "lora=yes,lora=no"), "lora is given twice"),
        (("--args", "--tp 2", "--expect", "draft=GRAPH,draft=EAGER"), "also expected GRAPH"),
        (("--args", ""), "it is empty: expected a launch command"),
        (("--args", "--tp 2", "--worker", "EAGLEWorker"), "a launch selects its own worker"),
        (("--args", "--tp 2", "--format", "svg"), "a launch is shown as text or json"),
        (("--args", "--tp 2", "--sm", "x9"), "'x9' is not a valid integer. (see specmap scan -"),
        (("--args", "--tp 2", "--gpu-memory", "80TB"), "'80TB' is not a valid float"),
        (("--args-file", "a.sh", "--args-file", "s.log"), "give the log: it is what the server"),
        (("--args-file", "empty.log"), "--args-file 'empty.log': it is empty"),
        (("--args-file", "cut.log"), "--args-file 'cut.log': ServerArgs( in line 1 is not closed"),
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
    (tmp_path / "empty.log").write_text("")
    (tmp_path / "cut.log").write_text("[x] server_args=ServerArgs(model_path='m', tp_si\n[x] b\n")
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
    out = capsys.readouterr().out
    assert "--model-config" in out
    assert all(f"  {key} " in out for key in load_words().reasons)


@pytest.mark.parametrize(
    ("words", "sm", "memory"),
    [
        (("--sm", "9.0", "--gpu-memory", "141GB"), 90, 141.0),
        (("--sm", "90", "--gpu-memory", "141"), 90, 141.0),
        (("--sm", "12.0", "--gpu-memory", "79.5 gb"), 120, 79.5),
    ],
)
def test_numbers_of_a_gpu_as_people_write_them(
    words: tuple[str, ...], sm: int, memory: float
) -> None:
    found = _of(("scan",)).make_context("scan", list(words)).params
    assert (found["sm"], found["gpu_memory"]) == (sm, memory)


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b"--tp 2 --name caf\xe9", "--tp 2 --name caf\ufffd"),
        ("--tp 2".encode("utf-16"), "--tp 2"),
    ],
)
def test_a_file_is_read_in_whatever_way_it_was_written(
    content: bytes, read: str, tmp_path: Path
) -> None:
    from specmap.cli_launch import _read

    (tmp_path / "launch").write_bytes(content)
    assert _read(str(tmp_path / "launch")) == read


def test_expectations_may_be_given_apart() -> None:
    context = click.Context(cli.command)
    given = ["scan", "--expect", "draft=GRAPH", "--expect", "verify=EAGER"]
    command = cli.command.get_command(context, given[0])
    assert command is not None
    values = command.make_context("scan", given[1:]).params
    assert values["expect"] == ("draft=GRAPH", "verify=EAGER")


def _verbs(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in sorted(group.commands.items()):
        yield (*before, name)
        if isinstance(command, click.Group):
            yield from _verbs(command, (*before, name))


def _of(words: tuple[str, ...]) -> click.Command:
    found: click.Command = cli.command
    for word in words:
        assert isinstance(found, click.Group)
        found = found.commands[word]
    return found


@pytest.mark.parametrize("words", list(_verbs(cli.command)), ids=" ".join)
def test_an_option_with_one_value_is_taken_once(words: tuple[str, ...]) -> None:
    """Whatever the verb: of two values the first would else be lost in silence."""
    command = _of(words)
    single = [
        option
        for option in command.params
        if isinstance(option, click.Option) and not option.multiple and not option.is_flag
        if not ANEW & set(option.opts)
    ]
    for option in single:
        name = option.opts[0]
        with pytest.raises(click.UsageError, match=f"{name} is given more than once"):
            command.make_context(words[-1], [name, "1", name, "2"])


def test_what_a_hook_sets_its_user_sets_anew() -> None:
    words = ["--base", "HEAD", "--output-format", "concise", "--output-format", "json"]
    context = _of(("lint",)).make_context("lint", words)
    assert context.params["name"] == "json"


def test_expectations() -> None:
    assert read_expectations("verify=GRAPH, draft=EAGER") == {"verify": "GRAPH", "draft": "EAGER"}
    with pytest.raises(SpecmapError, match="no phase 'verfy'; target_prefill"):
        read_expectations("verfy=GRAPH")
    with pytest.raises(SpecmapError, match="no verdict 'graph'; GRAPH"):
        read_expectations("verify=graph")


def test_a_target_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecmapError):
        judge_launch(str(tmp_path / "nowhere"), Launch("--tp 2"), use_cache=False)
