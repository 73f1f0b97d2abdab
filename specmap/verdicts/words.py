"""The table ``[verdict]`` of the vocabulary: what stands for a batch, and what is assumed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specmap.codemap.source import canonical
from specmap.errors import RulesError
from specmap.scan.vocabulary import rules_folder


@dataclass(frozen=True, slots=True)
class Assumed:
    """A test that a steady batch settles; ``key`` names the property of the batch."""

    key: str
    value: bool


@dataclass(frozen=True, slots=True)
class VerdictWords:
    """What verdicts have to know by name. Tests are canonical source text.

    ``sizes`` says how a test compares the batch with what was captured: ``at most`` or
    ``one of``. ``settled`` gives a test that needs a running server as another over the
    settings. ``reasons`` says what each assumption means, by key. ``limits`` are the settings
    that bound the captured sizes, ``values`` what is worth trying for a setting.
    """

    sizes: Mapping[str, str]
    assumed: Mapping[str, Assumed]
    settled: Mapping[str, str]
    reasons: Mapping[str, str]
    options: Mapping[str, str]
    switches: tuple[str, ...]
    limits: tuple[str, ...]
    width: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]]
    backends: Mapping[str, str]
    memory_mib: Mapping[int, int]


def load_words(path: Path | None = None) -> VerdictWords:
    """Read the table.

    Raises:
        RulesError: the file is missing, is no TOML, or the table lacks a key.
    """
    path = path or rules_folder() / "vocabulary.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))["verdict"]
        assumed = {}
        for item in table["assumed"]:
            key, value, test = item.split(" := ", 2)
            assumed[canonical(test)] = Assumed(key, {"true": True, "false": False}[value])
        return VerdictWords(
            sizes=_tests(table["sizes"]),
            assumed=assumed,
            settled=_tests(table["settled"]),
            reasons=_pairs(table["batch"]),
            options=_pairs(table["options"]),
            switches=tuple(table["switches"]),
            limits=tuple(table["limits"]),
            width=tuple(table["width"]),
            values={k: tuple(v.split()) for k, v in _pairs(table["values"]).items()},
            backends=_pairs(table["backends"]),
            memory_mib={int(k): int(v) for k, v in _pairs(table["memory"]).items()},
        )
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise RulesError(f"{path.name}: table [verdict]: {error}") from error


def _pairs(items: list[str]) -> dict[str, str]:
    return dict(_split(item) for item in items)


def _tests(items: list[str]) -> dict[str, str]:
    return {canonical(test): value for test, value in map(_split, items)}


def _split(item: str) -> tuple[str, str]:
    left, _, right = item.partition(" := ")
    return left, right
