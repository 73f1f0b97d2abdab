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
    if not found:
        ways = [f"python -m {name}" for name in sorted(names.launchers)]
        ways += [*sorted(names.programs), *(f"{name}(...)" for name in sorted(names.calls))]
        wrong = manifest.broken(text)
        raise CommandError(
            (f"this is no valid YAML ({wrong}), and " if wrong else "")
            + f"no server is started in this text: expected {', '.join(ways)}, arguments alone "
            "(--name value), or a YAML config"
        )
    return tuple(replace(c, notes=(*notes, *c.notes, *_open_notes(c))) for c in found)


def _open_notes(command: Command) -> Iterator[str]:
    """Say what may set further variables, and which option states one."""
    if command.sources:
        yield (
            f"{', '.join(command.sources)} may set any variable but those that the text sets after "
            "it; --env NAME=VALUE states one"
        )


def choose(commands: Sequence[Command], number: int | None = None) -> Command:
    """Return one of several servers, counted from 1, with a note on which it is.

    Raises:
        CommandError: there is no such number.
    """
    count = len(commands)
    if number is not None and not 1 <= number <= count:
        raise CommandError(f"there is no server {number} in this text: it starts {count}")
    chosen = commands[(number or 1) - 1]
    if count == 1:
        return chosen
    lines = ", ".join(str(command.line) for command in commands)
    note = f"the text starts {count} servers (lines {lines}); this is number {number or 1}"
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
