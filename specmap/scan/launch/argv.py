"""A command line against a release's declared arguments, by argparse's own rules."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn

from specmap.nearest import nearest
from specmap.scan.launch.arguments import Argument, Declarations
from specmap.scan.launch.unknown import ArgumentError, Unknown, Value, is_open, unknown_parts

# What is known about a flag in other releases, in words; "" if nothing is.
History = Callable[[str], str]
_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)(k|M|G|T|Ki|Mi|Gi|Ti)")
_POWERS = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True, slots=True)
class Given:
    """What a command line says, by field.

    ``values`` holds what is known and ``unknown_values`` the text of what is not; a field
    is in one of them or in neither; a required one that is not given is unknown. ``flags`` is
    each field's argument as it was written.
    ``open`` names what may give further arguments (an unresolved ``$EXTRA_ARGS``, a config
    file that is not there): while it is not empty, a field that is not given is unknown.
    """

    values: Mapping[str, Value]
    unknown_values: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def no_history(flag: str) -> str:
    """Tell nothing about a flag in other releases."""
    return ""


def parse(declarations: Declarations, argv: Sequence[str], history: History = no_history) -> Given:
    """Parse a command line as the release's own parser would.

    A value with an unresolved variable or placeholder is accepted and kept as unknown. A
    missing required argument is a note, so that a part of a command line can be asked about.

    Raises:
        ArgumentError: the release would refuse it: an argument that it does not know (the
            message names the nearest, and what ``history`` tells), an ambiguous prefix, a
            value of a wrong type or outside the choices, a retired argument.
    """
    collected = _Collected(declarations, history)
    parser = _Parser(prog="sglang", add_help=False, allow_abbrev=True)
    parser.collected = collected
    parser.register("type", None, str)
    for argument in declarations.arguments:
        _register(parser, argument, collected)
    parser.add_argument("-h", "--help", nargs=0, action=_Ignored)
    _, rest = parser.parse_known_args(list(argv))
    opened = [word for word in rest if is_open(word)]
    unknown = [w for w in rest if not is_open(w) and (w.startswith("-") or not opened)]
    if unknown:
        raise ArgumentError(collected.unrecognized(unknown))
    return collected.given(opened)


class _Parser(argparse.ArgumentParser):
    collected: _Collected

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(self.collected.refused(message))


class _Collected:
    """The values of one parse, and its messages."""

    def __init__(self, declarations: Declarations, history: History) -> None:
        self.declarations = declarations
        self.history = history
        self.values: dict[str, Value | Unknown] = {}
        self.flags: dict[str, str] = {}
        self.open: list[str] = []
        self.notes: list[str] = []

    @property
    def release(self) -> str:
        return f"SGLang {self.declarations.release}" if self.declarations.release else "SGLang"

    def refused(self, message: str) -> str:
        """Return argparse's message, with the history of a flag that it names."""
        told = self.history(message.split()[2]) if message.startswith("ambiguous option") else ""
        return f"{self.release} refuses this command line: {message}{told and f' ({told})'}"

    def unrecognized(self, words: list[str]) -> str:
        flags = [word for word in words if word.startswith("-")] or words
        return "; ".join(self.unknown_flag(word.partition("=")[0]) for word in flags)

    def unknown_flag(self, flag: str) -> str:
        near = nearest(flag, self.declarations.by_flag)
        parts = [self.history(flag), f"nearest: {', '.join(near)}" if near else ""]
        told = "; ".join(part for part in parts if part)
        return f"{self.release} does not know the argument {flag}{told and f' ({told})'}"

    def given(self, opened: list[str]) -> Given:
        known = {n: v for n, v in self.values.items() if not isinstance(v, Unknown)}
        unknown = {n: v.text for n, v in self.values.items() if isinstance(v, Unknown)}
        self.open += opened
        if self.open:
            names = ", ".join(dict.fromkeys(self.open))
            self.notes.append(f"{names} may give more arguments; taken to repeat none given here")
        for argument in self.declarations.arguments:
            if argument.required and argument.field not in self.values and not self.open:
                unknown[argument.field] = f"<{argument.flags[0].lstrip('-')}>"
                self.notes.append(f"{argument.flags[0]} is not given; {self.release} requires it")
        return Given(known, unknown, self.flags, tuple(self.open), tuple(self.notes))


def _register(parser: _Parser, argument: Argument, collected: _Collected) -> None:
    flags = list(argument.flags)
    if argument.action == "either":
        flags += [f"--no-{flag[2:]}" for flag in argument.flags if flag.startswith("--")]
    keywords: dict[str, Any] = {"nargs": 0 if argument.kind == "flag" else argument.nargs}
    if argument.kind != "flag":
        keywords["type"] = _converter(argument, collected.declarations)
        if argument.choices is not None:
            keywords["choices"] = _Choices(argument.choices)
    if argument.nargs == "?":
        keywords["const"] = argument.stored
    action = parser.add_argument(
        *flags, action=_Stored, default=argparse.SUPPRESS, dest=argument.field, **keywords
    )
    assert isinstance(action, _Stored)
    action.argument = argument


class _Choices(tuple[Value, ...]):
    """Choices that let a value pass which is not known."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Unknown) or super().__contains__(value)


class _Ignored(argparse.Action):
    def __call__(self, *args: object, **keywords: object) -> None:
        pass


class _Stored(argparse.Action):
    argument: Argument

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep one occurrence; the last one wins."""
        assert isinstance(parser, _Parser)
        argument, collected = self.argument, parser.collected
        written = option_string or argument.flags[0]
        if argument.refused is not None:
            parser.error(f"{written}: {argument.refused}")
        if argument.deprecated is not None:
            instead = f"; instead: {argument.deprecated}" if argument.deprecated else ""
            effect = " and has no effect" if argument.action == "ignore" else ""
            collected.notes.append(f"{written} is deprecated{effect}{instead}")
        if argument.action == "ignore":
            return
        collected.values[argument.field] = _value(argument, written, values)
        collected.flags[argument.field] = written
        if isinstance(values, list):
            collected.open += [v.text for v in values if isinstance(v, Unknown) and is_open(v.text)]


def _value(argument: Argument, written: str, values: Any) -> Value | Unknown:
    match argument.action:
        case "store_true":
            return True
        case "store_false":
            return False
        case "either":
            return written in argument.flags
        case "store_const":
            return argument.stored
    if not isinstance(values, list):
        found: Value | Unknown = values
        return found
    if any(isinstance(value, Unknown) for value in values):
        texts = [value.text if isinstance(value, Unknown) else str(value) for value in values]
        return Unknown(" ".join(texts))
    return tuple(values)


def _converter(argument: Argument, declarations: Declarations) -> Callable[[str], Value | Unknown]:
    meaning = declarations.converters.get(argument.type_name, argument.type_name)
    plain = _CONVERTERS.get(meaning, str)

    def convert(text: str) -> Value | Unknown:
        return Unknown(text) if unknown_parts(text) else plain(text)

    convert.__name__ = meaning  # argparse: "invalid int value"
    return convert


def _nullable(text: str) -> str | None:
    return text if text and text != "None" else None


def _suffixed(text: str) -> int:
    """Read ``64k`` (thousands) and ``4Ki`` (1024s)."""
    found = _SUFFIXED.fullmatch(text.strip())
    if found is None:
        return int(text)
    number, suffix = found.groups()
    base = 1024 if suffix.endswith("i") else 1000
    if base == 1024 and "." in number:
        raise ValueError(text)
    return int(Decimal(number) * base ** _POWERS[suffix[0]])


_CONVERTERS: Mapping[str, Callable[[str], Value]] = {
    "int": int,
    "float": float,
    "nullable": _nullable,
    "suffixed": _suffixed,
}
