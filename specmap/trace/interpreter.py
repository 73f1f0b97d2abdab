"""Which Python a command starts, and which SGLang that Python would import; nothing is imported."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specmap.errors import SpecmapError

OLDEST = (3, 10)
_PYTHON = re.compile(r"python(\d+(\.\d+)?t?)?")
_LONG_SHEBANG = re.compile(r"""^'''exec' "?(?P<python>[^"\n]+?)"? "\$0" "\$@"$""", re.MULTILINE)
_WITH_VALUE = frozenset("WX")
_LAST = frozenset("cm")
_BLIND = {
    "I": "isolates Python from PYTHONPATH",
    "E": "makes Python ignore PYTHONPATH",
    "S": "keeps Python from loading site modules",
}
_IN_FRONT = frozenset(
    ("env", "nice", "ionice", "nohup", "setsid", "stdbuf", "time", "timeout", "taskset", "chrt",
     "numactl", "prlimit", "nsys", "ncu", "strace")
)  # fmt: skip
_SHEBANG_BYTES = 1024
_ASK_SECONDS = 60
_ASK = """
import importlib.machinery, importlib.util, json, sys
name, first = sys.argv[1:3]
if sys.path and sys.path[0] == "":
    sys.path[0] = first
try:
    spec = importlib.util.find_spec(name)
except (ImportError, ValueError):
    spec = None
places = list(spec.submodule_search_locations or ()) if spec is not None else []
print(json.dumps([list(sys.version_info[:2]), places, importlib.machinery.EXTENSION_SUFFIXES[0]]))
"""


@dataclass(frozen=True, slots=True)
class Program:
    """The Python of a command: its file, its own flags, and what stands first on its path.

    ``first`` is the folder of a script, the empty text for ``-m`` and ``-c``.
    """

    python: str
    flags: tuple[str, ...]
    first: str


@dataclass(frozen=True, slots=True)
class Installed:
    """What a Python would import: the folder of the package.

    ``suffix`` is what its own extension modules end with, such as
    ``.cpython-312-x86_64-linux-gnu.so``.
    """

    python: str
    version: tuple[int, int]
    package: Path
    suffix: str


def program_of(command: Sequence[str], environment: Mapping[str, str]) -> Program | None:
    """Return the Python that ``command`` starts, None where it cannot be told.

    Commands in front that keep the environment are skipped (``env``, ``numactl``); others,
    such as ``uv run``, may start another Python than the one that is found here. Of a script
    its ``#!`` line counts.
    """
    front = Path(command[0]).name in _IN_FRONT
    for index, word in enumerate(command if front else command[:1]):
        if _PYTHON.fullmatch(Path(word).name):
            found = shutil.which(word, path=environment.get("PATH"))
            if found is not None:
                flags, first = _flags(command[index + 1 :])
                return Program(found, flags, first)
    script = shutil.which(command[0], path=environment.get("PATH"))
    return _shebang(Path(script), environment) if script is not None else None


def _flags(arguments: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Split Python's own flags from what it runs."""
    flags: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word.startswith("--"):
            if word == "--check-hash-based-pycs" and rest:
                rest.pop(0)
            continue
        letters = word[1:]
        for position, letter in enumerate(letters):
            if letter in _LAST:
                return tuple(flags), ""
            if letter in _WITH_VALUE:
                if position == len(letters) - 1 and rest:
                    rest.pop(0)
                break
            flags.append(letter)
    script = rest[0] if rest else ""
    is_file = script not in ("", "-")
    return tuple(flags), os.path.realpath(Path(script).parent) if is_file else ""


def _shebang(script: Path, environment: Mapping[str, str]) -> Program | None:
    try:
        with script.open("rb") as file:
            text = file.read(_SHEBANG_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    if not text.startswith("#!"):
        return None
    words = shlex.split(text.splitlines()[0][2:], comments=False)
    long = _LONG_SHEBANG.search(text)
    if long is not None:  # pip's form for paths that the kernel would cut
        words = [long["python"]]
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
    if not words or not _PYTHON.fullmatch(Path(words[0]).name):
        return None
    found = shutil.which(words[0], path=environment.get("PATH"))
    if found is None:
        return None
    return Program(found, _flags(words[1:])[0], os.path.realpath(script.parent))


def check_flags(program: Program) -> None:
    """Refuse flags that keep the agent out.

    Raises:
        SpecmapError: naming the flag and what it does.
    """
    for flag, effect in _BLIND.items():
        if flag in program.flags:
            raise SpecmapError(
                f"{program.python} -{flag} {effect}, so the agent cannot get in; drop -{flag}"
            )


def installed_in(
    program: Program, package: str, environment: Mapping[str, str], cwd: Path
) -> Installed:
    """Ask the Python of a command where ``package`` is, without importing it.

    Raises:
        SpecmapError: it cannot be asked, is too old, or has no such package.
    """
    command = [program.python, "-c", _ASK, package, program.first]
    try:
        done = subprocess.run(
            command, env=dict(environment), cwd=cwd, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=True, timeout=_ASK_SECONDS,
        )  # fmt: skip
        version, places, suffix = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        said = (getattr(error, "stderr", None) or "").strip().splitlines()
        reason = said[-1] if said else str(error)
        raise SpecmapError(f"{program.python} could not be asked for {package}: {reason}") from None
    if tuple(version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise SpecmapError(
            f"{program.python} is Python {version[0]}.{version[1]}; the agent needs {oldest}"
        )
    for place in places:
        if (Path(place) / "srt").is_dir():
            return Installed(program.python, (version[0], version[1]), Path(place), suffix)
    raise SpecmapError(
        f"{program.python} finds no {package}: put the Python that has it after --, "
        "or name the tree with --target"
    )
