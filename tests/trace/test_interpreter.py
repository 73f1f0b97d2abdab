from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from specmap.errors import SpecmapError
from specmap.trace.interpreter import Program, check_flags, installed_in, program_of
from tests.review_tree import plant

ENVIRONMENT = dict(os.environ)


def folder_with(tmp_path: Path, name: str, text: str) -> Path:
    """Write an executable file and return its folder."""
    path = tmp_path / name
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return tmp_path


def program(*command: str) -> Program:
    found = program_of(command, ENVIRONMENT)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("arguments", "flags", "first"),
    [
        (["-m", "sglang.launch_server", "-I"], (), ""),
        (["-c", "pass", "-E"], (), ""),
        (["-OO", "-u", "-m", "x"], ("O", "O", "u"), ""),
        (["-X", "dev", "-W", "error", "-Im", "x"], ("I",), ""),
        (["-Xdev", "-Werror", "-sE", "-c", "pass"], ("s", "E"), ""),
        (["--check-hash-based-pycs", "always", "-S", "-"], ("S",), ""),
    ],
)
def test_flags_end_where_the_program_begins(
    arguments: list[str], flags: tuple[str, ...], first: str
) -> None:
    """As ``python --help`` says: after -c, -m, - or a file come the program's arguments."""
    assert program(sys.executable, *arguments) == Program(sys.executable, flags, first)


def test_the_folder_of_a_script_comes_first(tmp_path: Path) -> None:
    script = tmp_path / "serve.py"
    assert program(sys.executable, "-B", str(script), "-I").first == str(tmp_path.resolve())


def test_commands_in_front_are_skipped() -> None:
    found = program("env", "A=1", "numactl", "--interleave=all", sys.executable, "-m", "x")
    assert found == Program(sys.executable, (), "")


def test_a_command_that_may_choose_another_python_is_not_guessed() -> None:
    for front in (["uv", "run"], ["conda", "run", "-n", "x"], ["sudo"], ["docker", "run", "i"]):
        assert program_of([*front, sys.executable, "-m", "x"], ENVIRONMENT) is None


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("#!{python}", ()),
        ("#!{python} -sI", ("s", "I")),
        ("#!/usr/bin/env -S {python} -E", ("E",)),
        ("#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''", ()),
    ],
)
def test_the_first_line_of_a_script_names_its_python(
    tmp_path: Path, line: str, flags: tuple[str, ...]
) -> None:
    """The last one is what pip writes where the path of the Python is too long for a kernel."""
    folder_with(tmp_path, "sglang", line.format(python=sys.executable) + "\n")
    found = program(str(tmp_path / "sglang"), "serve", "-S")
    assert found == Program(sys.executable, flags, str(tmp_path.resolve()))


@pytest.mark.parametrize("text", ["#!/bin/sh\npython x.py\n", "\x7fELF", ""])
def test_another_program_is_not_taken_for_python(tmp_path: Path, text: str) -> None:
    folder_with(tmp_path, "run", text)
    assert program_of([str(tmp_path / "run")], ENVIRONMENT) is None
    assert program_of([str(tmp_path / "nothing-there")], ENVIRONMENT) is None


@pytest.mark.parametrize("flag", ["I", "E", "S"])
def test_flags_that_keep_the_agent_out_are_refused(flag: str) -> None:
    with pytest.raises(SpecmapError, match=f"-{flag} .* cannot get in; drop -{flag}$"):
        check_flags(program(sys.executable, f"-B{flag}", "-m", "x"))


def test_harmless_flags_are_not() -> None:
    check_flags(program(sys.executable, "-sBuP", "-m", "x"))


def test_the_package_beside_a_script_is_found_and_not_run(tmp_path: Path) -> None:
    tree = plant(tmp_path / "tree")
    (tree / "sglang" / "__init__.py").write_text("raise SystemExit('imported')\n", "utf-8")
    found = installed_in(
        program(sys.executable, str(tree / "serve.py")), "sglang", ENVIRONMENT, tmp_path
    )
    assert found.package == tree / "sglang"
    assert (found.python, found.version) == (sys.executable, sys.version_info[:2])
    assert found.suffix == sysconfig.get_config_var("EXT_SUFFIX")


def test_modules_start_from_the_current_folder_and_the_path(tmp_path: Path) -> None:
    tree = plant(tmp_path / "tree")
    module = program(sys.executable, "-m", "sglang.launch_server")
    assert installed_in(module, "sglang", ENVIRONMENT, tree).package == tree / "sglang"
    elsewhere = {**ENVIRONMENT, "PYTHONPATH": str(tree)}
    assert installed_in(module, "sglang", elsewhere, tmp_path).package == tree / "sglang"


def test_no_package_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    module = program(sys.executable, "-m", "sglang.launch_server")
    with pytest.raises(SpecmapError, match=r"finds no sglang: .* or name the tree with --target$"):
        installed_in(module, "sglang", ENVIRONMENT, tmp_path)


def test_a_python_that_fails_is_quoted(tmp_path: Path) -> None:
    folder_with(tmp_path, "python3", "#!/bin/sh\necho 'Fatal Python error: no codec' >&2\nexit 1\n")
    broken = Program(str(tmp_path / "python3"), (), "")
    with pytest.raises(SpecmapError, match="could not be asked for sglang: Fatal Python error"):
        installed_in(broken, "sglang", ENVIRONMENT, tmp_path)


def test_a_python_that_is_too_old_is_refused(tmp_path: Path) -> None:
    folder_with(tmp_path, "python3", "#!/bin/sh\necho '[[3, 9], [], \".so\"]'\n")
    old = Program(str(tmp_path / "python3"), (), "")
    with pytest.raises(SpecmapError, match=r"is Python 3\.9; the agent needs 3\.10$"):
        installed_in(old, "sglang", ENVIRONMENT, tmp_path)
