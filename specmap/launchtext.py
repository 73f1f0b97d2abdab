"""What the text of a launch says: which server, its arguments, and what the caller adds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from specmap.errors import SpecmapError

if TYPE_CHECKING:
    from specmap.launched import Launch
    from specmap.scan.launch.arguments import Declarations
    from specmap.scan.launch.argv import Given
    from specmap.scan.launch.servers import Command
    from specmap.scan.launch.tables import Inputs
    from specmap.scan.vocabulary import Vocabulary
    from specmap.verdicts.words import VerdictWords

_MIB_OF_GB = 1024


def command_of(vocabulary: Vocabulary, launch: Launch) -> Command:
    """Return the server that a launch asks about.

    Raises:
        CommandError: its text starts none, or not that one; the error names the file.
    """
    from specmap.scan.launch.command import CommandError, choose, read

    try:
        return choose(read(launch.text, vocabulary.arguments, launch.env), launch.server)
    except CommandError as error:
        if not launch.source:
            raise
        raise CommandError(f"{launch.source}: {error}") from None


def given_of(
    declarations: Declarations, release: str | None, vocabulary: Vocabulary, launch: Launch
) -> tuple[Command, Given]:
    """Return the server that a launch asks about, and what its arguments say.

    Raises:
        SpecmapError: the text starts no server, or the release refuses an argument.
    """
    from specmap.scan.launch.given import given
    from specmap.scan.launch.history import load_history

    command = command_of(vocabulary, launch)
    history = load_history()

    def read_file(name: str) -> str | None:
        try:
            return (Path(launch.folder) / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    found = given(
        declarations,
        command,
        vocabulary.arguments,
        read_file,
        lambda flag: history.about(flag, release),
    )
    return command, found


def inputs_of(
    declarations: Declarations,
    command: Command,
    given: Given,
    launch: Launch,
    words: VerdictWords,
    platform: str,
) -> Inputs:
    """Return what the argument code starts from.

    Raises:
        SpecmapError: a model's config cannot be read.
    """
    from specmap.scan.launch.tables import Inputs
    from specmap.scan.launch.unknown import unknown_parts

    left_open = {n for n, text in command.env.items() if unknown_parts(text)} - set(launch.env)
    environment = {n: text for n, text in command.env.items() if n not in left_open}
    values = dict(given.values)
    if launch.tp is not None:
        values[tensor_parallel(declarations)] = launch.tp
    memory = launch.gpu_memory
    mib = None if memory is None else words.memory_mib.get(int(memory), memory * _MIB_OF_GB)
    return Inputs(
        values=values,
        converters={a.field: a.type_name for a in declarations.arguments},
        unknown_values=given.unknown_values,
        open=given.open,
        environment={**environment, **launch.env},
        unknown_environment=tuple(sorted(left_open)),
        rest_unset=not command.sources,
        platform=platform,
        gpu_memory_mib=mib,
        sm=launch.sm,
        model_config=model_config(launch.model_config),
        draft_config=model_config(launch.draft_config),
    )


def tensor_parallel(declarations: Declarations) -> str:
    """Return the setting that the option ``--tp`` replaces."""
    return declarations.by_flag["--tp-size"].field


def model_config(place: str | Path | None) -> Mapping[str, object] | None:
    """Read a model's config.json, by its name or its folder's.

    Raises:
        SpecmapError: it is not there, or no JSON object.
    """
    if place is None:
        return None
    path = Path(place)
    file = path / "config.json" if path.is_dir() else path
    try:
        data = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise SpecmapError(f"model config {str(file)!r}: {error.strerror or error}") from None
    except ValueError as error:
        raise SpecmapError(f"model config {str(file)!r}: no JSON: {error}") from None
    if not isinstance(data, dict):
        raise SpecmapError(f"model config {str(file)!r}: expected a JSON object")
    return data
