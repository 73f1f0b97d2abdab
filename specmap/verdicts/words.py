"""The table ``[verdict]`` of the vocabulary: what stands for a batch, and what is assumed."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from specmap.codemap.source import canonical
from specmap.codemap.verdict import PhaseName
from specmap.errors import RulesError
from specmap.scan.vocabulary import rules_folder
from specmap.verdicts.sizetests import of_size

MODELS = ("model", "draft")
"""Whose config.json may be assumed, the target's and the draft's."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """A test that a steady batch settles; ``key`` names the property of the batch."""

    key: str
    value: bool


@dataclass(frozen=True, slots=True)
class VerdictWords:
    """What verdicts have to know by name. Tests are canonical source text.

    ``assumed`` and ``settled`` go by place and test. A place is a phase, a file in which the
    test stands, both with a blank between them, or "" where any will do. ``f(...)`` settles
    every call of ``f``.
    ``sizes`` says how a test compares the batch with what was captured: ``at most`` or ``one of``;
    ``batch_size`` stands for the size in any other test, ``largest`` is what a runner stores as the
    largest captured one, ``listed`` (by attribute) as the list of them. ``settled`` gives a test
    that needs a running server as another over the settings. ``reasons`` says what each assumption
    means, by key. ``limits`` are the settings that bound the captured sizes, ``values`` what is
    worth trying for a setting.
    ``plain_model`` stands for the config.json of a model that is not given, with another class
    (``plain_drafts``, by setting and value) for the draft of some algorithms; ``models`` says
    what that assumes, for ``model`` and ``draft``.
    """

    sizes: Mapping[str, str]
    batch_size: frozenset[str]
    largest: frozenset[str]
    listed: Mapping[str, frozenset[str]]
    assumed: Mapping[tuple[str, str], Assumed]
    settled: Mapping[tuple[str, str], str]
    reasons: Mapping[str, str]
    options: Mapping[str, str]
    switches: tuple[str, ...]
    limits: tuple[str, ...]
    width: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]]
    backends: Mapping[str, str]
    models: Mapping[str, str]
    plain_model: Mapping[str, object]
    plain_drafts: Mapping[tuple[str, str], str]
    config_class: str
    memory_mib: Mapping[int, int]

    def captured(self, test: str, names: Container[str] | None = None) -> str | None:
        """Return how a test compares what ``names`` stand for with the captured sizes."""
        return self.sizes.get(of_size(test, self.batch_size if names is None else names))

    def assumption(self, phase: str, test: str) -> Assumed | None:
        """Return what a steady batch makes of a test in a phase."""
        found = (self.assumed.get(key) for key in product((phase, ""), (test, _any_call(test))))
        return next((known for known in found if known is not None), None)

    def settling(self, phase: str, test: str, file: str = "") -> str | None:
        """Return the test of the settings that stands for a test of a file in a phase."""
        name = file.rpartition("/")[2]
        places = (f"{phase} {name}", phase, name, "")
        found = (
            self.settled.get((place, text)) for text in (test, _any_call(test)) for place in places
        )
        return next((other for other in found if other is not None), None)


def load_words(path: Path | None = None) -> VerdictWords:
    """Read the table.

    Raises:
        RulesError: the file is missing, is no TOML, or the table lacks a key.
    """
    path = path or rules_folder() / "vocabulary.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        table, launch = tables["verdict"], tables["launch"]
        assumed = {}
        for item in table["assumed"]:
            key, value, test = item.split(" := ", 2)
            held = Assumed(key, {"true": True, "false": False}[value])
            assumed.update(dict.fromkeys(_places(test), held))
        settled = {}
        for test, other in map(_split, table["settled"]):
            settled.update(dict.fromkeys(_places(test), other))
        return VerdictWords(
            sizes=_tests(table["sizes"]),
            batch_size=frozenset(map(canonical, table["batch_size"])),
            largest=frozenset(map(canonical, table["largest"])),
            listed=_groups(table["listed"]),
            assumed=assumed,
            settled=settled,
            reasons=_pairs(table["batch"]),
            options=_pairs(table["options"]),
            switches=tuple(table["switches"]),
            limits=tuple(table["limits"]),
            width=tuple(table["width"]),
            values={k: tuple(v.split()) for k, v in _pairs(table["values"]).items()},
            backends=_pairs(table["backends"]),
            models={key: _pairs(table["models"])[key] for key in MODELS},
            plain_model=dict(table["plain_model"]),
            plain_drafts={_setting(k): name for k, name in _pairs(table["plain_drafts"]).items()},
            config_class=launch["config_class"][0],
            memory_mib={int(k): int(v) for k, v in _pairs(table["memory"]).items()},
        )
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise RulesError(f"{path.name}: table [verdict]: {error}") from error


def _any_call(test: str) -> str:
    """Return what stands for every call of the function that a test calls."""
    return f"{test.partition('(')[0]}(...)"


def stores(text: str, attribute: str, values: Container[str]) -> bool:
    """Whether a statement, or the value that it stores, gives ``self.attribute`` one of values.

    It may give the first of two that a call returns.
    """
    left, _, value = text.rpartition(" = ")
    if left and not left.startswith(f"self.{attribute},"):
        return False
    try:
        node = ast.parse(value, mode="eval").body
    except SyntaxError:
        return False
    call = f"{ast.unparse(node.func)}(...)" if isinstance(node, ast.Call) else ""
    return call in values or canonical(value) in values


def _groups(items: list[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for attribute, value in map(_split, items):
        found.setdefault(attribute, set()).add(canonical(value))
    return {attribute: frozenset(values) for attribute, values in found.items()}


def _places(text: str) -> list[tuple[str, str]]:
    """Take ``verify, runner.py: test`` apart: the phases and files of the test, and the test."""
    head, found, test = text.partition(": ")
    names = [name.strip() for name in head.split(",")]
    files = [name for name in names if name.endswith(".py")]
    phases = [name for name in names if name not in files]
    if not found or not set(phases) <= set(PhaseName):
        return [("", canonical(text))]
    places = product(phases or [""], files or [""])
    return [(f"{phase} {file}".strip(), canonical(test)) for phase, file in places]


def _pairs(items: list[str]) -> dict[str, str]:
    return dict(_split(item) for item in items)


def _setting(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _tests(items: list[str]) -> dict[str, str]:
    return {canonical(test): value for test, value in map(_split, items)}


def _split(item: str) -> tuple[str, str]:
    left, _, right = item.partition(" := ")
    return left, right
