"""Launch commands as people paste them, taken apart.

A shell command or script, a docker or Kubernetes wrapper, Python code, a YAML config, with
all that copying does to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from specmap.errors import SpecmapError
from specmap.scan.launch import manifest, pycall
from specmap.scan.launch.repair import repaired
from specmap.scan.launch.servers import Command, in_shell, model_in
from specmap.scan.launch.shell import run
from specmap.scan.vocabulary import ArgumentNames

__all__ = ["Command", "CommandError", "choose", "read"]

_REPLACED = "\ufffd"


class CommandError(SpecmapError):
    """The text starts no server, or not the one that was asked for."""


def read(
    text: str, names: ArgumentNames, env: Mapping[str, str] | None = None
) -> tuple[Command, ...]:
    """Return the servers that a pasted text starts, in order.

    ``env`` is what the caller knows of the environment; it fills in variables. A text of
    arguments alone (``--tp 8 ...``) is one command.

    Raises:
        CommandError: it starts none.
    """
    known = dict(env or {})
    text, notes = repaired(text)
    found = (
        pycall.servers(text, names, known)
        or manifest.servers(text, names, known)
        or in_shell(text, names, known)
        or _in_documents(text, names, known)
        or _bare(text, names, known)
        or _config(text, names, known)
    )
    cut = "" if any(command.logged for command in found) else pycall.broken(text, names)
    if not found:
        ways = [f"python -m {name}" for name in sorted(names.launchers)]
        ways += [*sorted(names.programs), *(f"{name}(...)" for name in sorted(names.calls))]
        if not text.strip():
            raise CommandError("it is empty: expected a launch command or a server's log")
        if cut:
            raise CommandError(cut)
        wrong, shown = manifest.broken(text), min(names.settings)
        raise CommandError(
            (f"this is no valid YAML ({wrong}), and " if wrong else "")
            + f"no server is started in this text: expected {', '.join(ways)}, arguments alone "
            f"(--name value), a YAML config, or a log with its line {shown}(...)"
        )
    notes = (*notes, *([cut] if cut else []), *_unreadable(text))
    return tuple(replace(c, notes=(*notes, *c.notes, *_open_notes(c))) for c in found)


def _unreadable(text: str) -> Iterator[str]:
    """Say where a byte that is no text was replaced."""
    at = text.find(_REPLACED)
    if at >= 0:
        yield f"line {text.count(chr(10), 0, at) + 1}: a byte that is no UTF-8 text is not read"


def _open_notes(command: Command) -> Iterator[str]:
    """Say what may set further variables, and which option states one."""
    if command.sources:
        yield (
            f"{', '.join(command.sources)} may set any variable but those that the text sets after "
            "it; --env NAME=VALUE states one"
        )


def choose(commands: Sequence[Command], number: int | None = None) -> Command:
    """Return one of several servers, counted from 1, with a note on which it is.

    Without a number it is the first, or the last that a log shows: that one started last.

    Raises:
        CommandError: there is no such number.
    """
    count = len(commands)
    if number is not None and not 1 <= number <= count:
        raise CommandError(f"there is no server {number} in this text: it starts {count}")
    logged = [at for at, command in enumerate(commands, 1) if command.logged]
    taken = number or (logged[-1] if logged else 1)
    chosen = commands[taken - 1]
    if count == 1:
        return chosen
    lines = ", ".join(str(command.line) for command in commands)
    note = f"the text starts {count} servers (lines {lines}); this is number {taken}"
    if logged and number is None:
        note += ", the last start that the log shows; --server N takes another"
    return replace(chosen, notes=(note, *chosen.notes))


def _in_documents(text: str, names: ArgumentNames, env: Mapping[str, str]) -> list[Command]:
    """Return the servers in manifests that a shell script passes on (``kubectl apply <<EOF``)."""
    found: list[Command] = []
    for command in run(text, env):
        for document in command.documents:
            found += manifest.servers(document, names, command.env)
    return found


def _bare(text: str, names: ArgumentNames, env: Mapping[str, str]) -> list[Command]:
    """Read a text of nothing but arguments."""
    runs = run(text, env)
    if len(runs) != 1 or not runs[0].words or not runs[0].words[0].startswith("-"):
        return []
    argv = runs[0].words
    return [Command(argv, runs[0].env, model_in(argv, names), runs[0].notes)]


def _config(text: str, names: ArgumentNames, env: Mapping[str, str]) -> list[Command]:
    """Read a text as the YAML file that the server's config option takes."""
    found = manifest.config(text)
    if not found:
        return []
    named = [flag.lstrip("-") for flag in names.model]
    keys = {str(key).replace("_", "-"): value for key, value in found.items()}
    model = next((str(keys[name]) for name in named if name in keys), None)
    return [Command(env=dict(env), model=model, config=found)]
