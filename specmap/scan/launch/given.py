"""From a launch command to the values that it gives: arguments, config file, Python call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from specmap.nearest import nearest
from specmap.scan.launch import manifest, pycall
from specmap.scan.launch.arguments import Declarations
from specmap.scan.launch.argv import Given, History, no_history, parse
from specmap.scan.launch.servers import Command
from specmap.scan.launch.unknown import ArgumentError, Unknown, Value
from specmap.scan.vocabulary import ArgumentNames

# The text of a file by the name that the command gives it; None if it is not there.
ReadFile = Callable[[str], str | None]


def given(
    declarations: Declarations,
    command: Command,
    names: ArgumentNames,
    read_file: ReadFile = lambda name: None,
    history: History = no_history,
) -> Given:
    """Return what a command says, by field.

    A config file comes first and the command line overrides it, as in SGLang.

    Raises:
        ArgumentError: the release would refuse it (see ``argv.parse``).
    """
    if command.fields:
        found = from_fields(declarations, command.fields, history)
        logged = pycall.LOGGED not in command.notes and _is_whole(declarations, command.fields)
        return _noted(found, (pycall.LOGGED, *command.notes) if logged else command.notes)
    argv = list(command.argv)
    opened: tuple[str, ...] = ()
    notes = list(command.notes)
    config = command.config
    place = next((index for index, word in enumerate(argv) if word in names.config), None)
    if place is not None and place + 1 < len(argv):
        file = argv[place + 1]
        text = command.files.get(file) or read_file(file)
        if text is None:
            opened = (file,)
            notes.append(f"{file} is not given; any argument that it sets is unknown")
        else:
            config = manifest.config(text)
        if names.config[0] in declarations.by_flag:
            del argv[place : place + 2]
    elif any(word.partition("=")[0] in names.config for word in argv):
        notes.append(f"SGLang reads a config file only as two words: {names.config[0]} FILE")
    found = parse(declarations, [*from_config(declarations, config), *argv], history)
    found = _noted(found, notes)
    return Given(
        found.values, found.unknown_values, found.flags, (*opened, *found.open), found.notes
    )


def _is_whole(declarations: Declarations, fields: Mapping[str, object]) -> bool:
    """Whether a call names every field, as a printed settings object does and nobody writes."""
    return bool(declarations.fields) and declarations.fields.keys() <= fields.keys()


def _noted(found: Given, notes: Sequence[str]) -> Given:
    return Given(
        found.values, found.unknown_values, found.flags, found.open, (*notes, *found.notes)
    )


def from_config(declarations: Declarations, config: Mapping[str, object]) -> list[str]:
    """Return the arguments that SGLang makes of a config file's contents.

    ``true`` gives a flag without value, ``false`` and empty lists give nothing.
    """
    flags = {f.lstrip("-") for a in declarations.arguments if a.kind == "flag" for f in a.flags}
    argv: list[str] = []
    for key, value in config.items():
        flag = f"--{key}"
        if isinstance(value, bool) and key.replace("_", "-") in flags:
            argv += [flag] if value else []
        elif isinstance(value, bool):
            argv += [flag, str(value).lower()]
        elif isinstance(value, list):
            argv += [flag, *map(str, value)] if value else []
        elif isinstance(value, dict):
            argv += [flag, json.dumps(value)]
        else:
            argv += [flag, str(value)]
    return argv


def from_fields(
    declarations: Declarations, fields: Mapping[str, object], history: History = no_history
) -> Given:
    """Return what the keywords of a Python call say.

    Raises:
        ArgumentError: the release has no such field.
    """
    values: dict[str, Value] = {}
    unknown: dict[str, str] = {}
    opened = []
    for name, value in fields.items():
        if name == "**" and isinstance(value, Unknown):
            opened.append(value.text)
        elif name not in declarations.fields:
            raise ArgumentError(_unknown_field(declarations, name, history))
        elif isinstance(value, Unknown):
            unknown[name] = value.text
        else:
            plain = _plain(value)
            if isinstance(plain, Unknown):
                unknown[name] = plain.text
            else:
                values[name] = plain
    flags = {name: name for name in (*values, *unknown)}
    return Given(values, unknown, flags, tuple(opened), ())


def _unknown_field(declarations: Declarations, name: str, history: History) -> str:
    near = nearest(name, declarations.fields)
    told = [history(f"--{name.replace('_', '-')}"), (near and f"nearest: {', '.join(near)}") or ""]
    text = "; ".join(part for part in told if part)
    release = declarations.release or ""
    return f"SGLang {release} has no field {name}{text and f' ({text})'}"


def _plain(value: object) -> Value | Unknown:
    """Return a value in our types; one that holds something unknown is unknown."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Unknown):
        return value
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        known = [item for item in items if not isinstance(item, Unknown)]
        return tuple(known) if len(known) == len(items) else Unknown(repr(value))
    if isinstance(value, Mapping):
        pairs = {str(name): _plain(item) for name, item in value.items()}
        inner = {n: item for n, item in pairs.items() if not isinstance(item, Unknown)}
        return inner if len(inner) == len(pairs) else Unknown(repr(value))
    return Unknown(repr(value))
