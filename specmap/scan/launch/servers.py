"""The servers that a shell script or a list of words starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specmap.codemap.outcome import LoggedBatch
from specmap.scan.launch.shell import Run, run
from specmap.scan.vocabulary import ArgumentNames

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
# Programs that give what they start an environment of its own.
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_ISOLATED = _CONTAINERS | {"ssh"}
# Programs that only name a command.
_MENTIONING = frozenset({"echo", "printf", "grep", "pgrep", "pkill"})
# How deep scripts inside scripts are read: ssh, docker exec, bash -c.
_DEPTH = 4
_ENV_OPTIONS = ("-e", "--env")
_ENV_OPTION = re.compile(r"(?:--env=|-e)([A-Za-z_]\w*)(?:=(.*))?", re.S)


@dataclass(frozen=True, slots=True)
class Command:
    """One server that a text starts.

    ``argv`` is what the server gets, with unresolved variables as they were written
    (``unknown.unknown_parts`` finds them); ``env`` is the environment that the text sets.
    ``model`` is the model as named, None if it is not. ``fields`` holds the keywords of a
    Python call and ``config`` the contents of a YAML config, each by name. ``files`` are
    the files that the text itself writes. ``line`` counts from 1. ``sources`` names what may
    set further variables (``source env.sh``, ``--env-file``): while it is not empty, one that
    ``env`` lacks is not known. ``logged``: a server's log shows it; ``batches`` are the decode
    batches that the log tells of this start.
    """

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    notes: tuple[str, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    line: int = 1
    sources: tuple[str, ...] = ()
    logged: bool = False
    batches: tuple[LoggedBatch, ...] = ()


def in_shell(
    text: str, names: ArgumentNames, env: Mapping[str, str], depth: int = _DEPTH
) -> list[Command]:
    """Return the servers that a shell text starts, in order.

    Scripts inside it (``bash -c '...'``, here-documents) are read down to ``depth``.
    """
    return [found for command in run(text, env) for found in _of_run(command, names, depth)]


def _of_run(command: Run, names: ArgumentNames, depth: int) -> list[Command]:
    if command.words and _base(command.words[0]) in _MENTIONING:
        return []
    found = in_words(command.words, names, command.env)
    notes = list(command.notes)
    if found and command.unexported:
        listed = ", ".join(command.unexported)
        notes.append(f"set but not exported, so the server does not see it: {listed}")
    if not found and depth:
        inner = [*command.documents, *(w for w in command.words if _is_script(w, names))]
        env = _passed_on(command.words, command.env)
        found = [c for text in inner for c in in_shell(text, names, env, depth - 1)]
    return [
        replace(
            c,
            line=c.line + command.line - 1,
            notes=(*notes, *c.notes),
            files=dict(command.files) | dict(c.files),
            sources=tuple(dict.fromkeys((*_seen(command), *c.sources))),
        )
        for c in found
    ]


def _seen(command: Run) -> tuple[str, ...]:
    """Return what was sourced before a command; a container does not see the caller's own."""
    return () if {_base(word) for word in command.words} & _ISOLATED else command.sourced


def _is_script(word: str, names: ArgumentNames) -> bool:
    return " " in word.strip() and any(name in word for name in (*names.launchers, *names.programs))


def in_words(words: Sequence[str], names: ArgumentNames, env: Mapping[str, str]) -> list[Command]:
    """Return the server that one command's words start, if any.

    What stands before the launcher may set variables (``env A=1``, ``docker run -e A=1``).
    """
    start = _launcher_end(words, names)
    if start is None:
        return []
    before, argv = list(words[:start]), list(words[start:])
    notes: list[str] = []
    if _is_program(words, start, names):
        argv = _program_argv(argv, names, notes)
    return [
        Command(
            argv=tuple(argv),
            env=_passed_on(before, env),
            model=model_in(argv, names),
            notes=tuple(notes),
            sources=tuple(_env_files(before)),
        )
    ]


def _env_files(words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, (*words[1:], ""), strict=True):
        if word == "--env-file":
            yield f"--env-file {following}"
        elif word.startswith("--env-file="):
            yield word


def _launcher_end(words: Sequence[str], names: ArgumentNames) -> int | None:
    """Return where the server's own arguments begin."""
    files = tuple(f"{name.replace('.', '/')}.py" for name in sorted(names.launchers))
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word == "-m" and following in names.launchers:
            return index + 2
        if word.startswith("-m") and word[2:] in names.launchers:
            return index + 1
        if word.endswith(files):
            return index + 1
        if f"{_base(word)} {following}" in names.programs:
            return index + 2
    return None


def _is_program(words: Sequence[str], start: int, names: ArgumentNames) -> bool:
    return " ".join(_base(word) for word in words[start - 2 : start]) in names.programs


def _program_argv(argv: list[str], names: ArgumentNames, notes: list[str]) -> list[str]:
    """Take off the program's own options; its first word may be the model."""
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word in names.program_options:
            next(words, None)
        elif word.partition("=")[0] not in names.program_options:
            kept.append(word)
    if kept and not kept[0].startswith("-") and not kept[0].startswith("$"):
        notes.append(f"the first word is taken for the model, as later releases do: {kept[0]}")
        return [names.model[0], *kept]
    return kept


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _passed_on(words: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of what a command starts.

    A container sees only what its options name; ``-e NAME`` passes the caller's own value.
    """
    programs = {_base(word) for word in words}
    found = {} if programs & _ISOLATED else dict(env)
    takes_any = not programs & _CONTAINERS
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        option = _ENV_OPTION.fullmatch(word)
        option = option if option and (option[2] is not None or not takes_any) else None
        match = option or _ASSIGNMENT.fullmatch(word)
        takes_any = takes_any or _base(before) == "env"
        if match and (option or takes_any or before in _ENV_OPTIONS):
            found[match[1]] = env.get(match[1], f"${match[1]}") if match[2] is None else match[2]
        elif before in _ENV_OPTIONS and word.isidentifier():
            found[word] = env.get(word, f"${word}")
    return found


def model_in(argv: Sequence[str], names: ArgumentNames) -> str | None:
    """Return the model that a command line names; the last one wins."""
    model = None
    for index, word in enumerate(argv):
        flag, equals, value = word.partition("=")
        if flag in names.model:
            following = argv[index + 1] if index + 1 < len(argv) else None
            model = value if equals else following
    return model
