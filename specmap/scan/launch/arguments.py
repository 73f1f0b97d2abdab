"""What a release can be told at launch: its fields, its arguments, their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from specmap.codemap.source import Span
from specmap.scan.launch.unknown import Unknown, Value

Action = Literal["store", "store_true", "store_false", "store_const", "either", "ignore"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the settings class; ``default`` is Unknown where it is no literal.

    ``fallback`` is what readers get when neither input nor derivation sets the field.
    """

    name: str
    default: Value | Unknown
    fallback: Value | Unknown
    span: Span


@dataclass(frozen=True, slots=True)
class Argument:
    """A command-line argument.

    ``field`` is the field that it sets, after the release's own renames; arguments like
    ``--config`` set none, there it is argparse's own name. ``type_name`` is the converter as
    the source calls it. ``choices`` is None where there are none, or where they are no
    literal. ``stored`` is what ``store_const`` stores. ``deprecated`` is the replacement that
    the source names ("" if it names none, None if the argument is current); ``refused`` is
    the message with which the argument stops the start.
    """

    field: str
    flags: tuple[str, ...]
    action: Action
    type_name: str
    default: Value | Unknown
    choices: tuple[Value, ...] | None
    span: Span
    nargs: str | int | None = None
    stored: Value | Unknown = None
    required: bool = False
    deprecated: str | None = None
    refused: str | None = None

    @property
    def kind(self) -> Literal["value", "flag", "list"]:
        """Whether it takes one value, none, or several."""
        if self.action in ("store", "store_const") and self.nargs != 0:
            return "list" if self.nargs in ("+", "*") or isinstance(self.nargs, int) else "value"
        return "flag"


@dataclass(frozen=True)
class Declarations:
    """What a release can be told: its fields by name and its arguments in source order.

    ``converters`` is what the vocabulary says of converters that are not Python's own.
    """

    release: str | None
    fields: Mapping[str, Field]
    arguments: tuple[Argument, ...]
    converters: Mapping[str, str]

    @cached_property
    def by_flag(self) -> Mapping[str, Argument]:
        """The arguments by each of their spellings."""
        return {flag: argument for argument in self.arguments for flag in argument.flags}

    @cached_property
    def defaults(self) -> Mapping[str, Value | Unknown]:
        """Each field's value when the command line says nothing about it.

        The parser's default replaces the field's own; of several arguments for one field the
        first counts, as argparse has it.
        """
        found = {name: field.default for name, field in self.fields.items()}
        seen = set()
        for argument in self.arguments:
            if argument.field in found and argument.field not in seen:
                if not _is_suppressed(argument.default):
                    seen.add(argument.field)
                    found[argument.field] = argument.default
        return found


def _is_suppressed(default: Value | Unknown) -> bool:
    return isinstance(default, Unknown) and default.text.endswith("SUPPRESS")
