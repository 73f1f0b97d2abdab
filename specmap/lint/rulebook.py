"""Loads rules: our own folder, and the packages that other distributions name.

A pack is a package behind the entry point group ``specmap.rules``; its folder holds rule
folders as ``rules/`` does. Nothing in a rule's folder is ever run.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from packaging.version import InvalidVersion, Version

from specmap.codemap.finding import Detector
from specmap.codemap.rule import Confidence, Needs, Rule, Severity, parameters_of
from specmap.codemap.tables import Key, problems
from specmap.errors import RulesError
from specmap.scan.vocabulary import rules_folder

GROUP = "specmap.rules"
UNUSED, MALFORMED, *OF_CHANGES = ENGINE = ("SPM001", "SPM002", "SPM113", "SPM114", "SPM115")
GRAPH_LOST, TEST_ADDED, GRAPH_UNTOLD = OF_CHANGES
"""Rules that the engine itself finds, from comments and from two maps: they have no detector."""
DECLARATION = "rule.toml"
_FOLDER = re.compile(r"[A-Z]{3,}\d{3}-[a-z0-9]+(-[a-z0-9]+)*")
_KEYS = {
    "id": Key(str, required=True),
    "name": Key(str, required=True),
    "summary": Key(str, required=True),
    "topic": Key(str, required=True),
    "severity": Key(str, tuple(Severity), required=True),
    "confidence": Key(str, tuple(Confidence), required=True),
    "needs": Key(str, tuple(Needs), required=True),
    "detector": Key(str),
    "parameters": Key(dict),
    "releases": Key(dict),
}
_RELEASES = {"first": Key(str), "last": Key(str)}


def load() -> tuple[Rule, ...]:
    """Return our rules and those of every installed pack, by id.

    Raises:
        RulesError: a declaration is wrong, or two rules share an id or a name; the message
            lists everything that is wrong.
    """
    errors: list[str] = []
    rules = list(_read_folder(rules_folder(), "specmap", errors))
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        origin = entry.dist.name if entry.dist is not None else entry.name
        try:
            folder = Path(str(files(entry.value)))
        except Exception as error:
            errors.append(f"{origin}: entry point {entry.name}: {type(error).__name__}: {error}")
        else:
            rules += _read_folder(folder, origin, errors)
    return _checked(rules, errors)


def load_folder(folder: Path, origin: str = "specmap") -> tuple[Rule, ...]:
    """Return the rules of one folder, by id.

    Raises:
        RulesError: as :func:`load`.
    """
    errors: list[str] = []
    return _checked(list(_read_folder(folder, origin, errors)), errors)


def rule_folders(folder: Path) -> list[Path]:
    """Return the folders that hold a declaration, by name."""
    return sorted(path.parent for path in folder.glob(f"*/{DECLARATION}"))


def detector_of(rule: Rule) -> Detector:
    """Return the function that finds the matches of a rule.

    Raises:
        RulesError: there is no such function.
    """
    module, _, name = rule.detector.partition(":")
    try:
        found: Detector = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise RulesError(f"{rule.id}: no detector {rule.detector!r}: {error}") from None
    return found


def check_parameters(rule: Rule, given: Mapping[str, object]) -> list[str]:
    """Return what is wrong with parameters for the detector of a rule.

    Raises:
        RulesError: there is no such detector.
    """
    declared = parameters_of(detector_of(rule))
    return list(problems(given, {name: Key(kind, (), True) for name, kind in declared.items()}))


def _checked(rules: Sequence[Rule], errors: list[str]) -> tuple[Rule, ...]:
    met: dict[str, Rule] = {}
    for rule in rules:
        for name in (rule.id, rule.name):
            if name in met:
                errors.append(f"{name}: declared by {met[name].origin} and by {rule.origin}")
            met[name] = rule
    if errors:
        raise RulesError("; ".join(errors))
    return tuple(sorted(rules, key=lambda rule: rule.id))


def _read_folder(folder: Path, origin: str, errors: list[str]) -> Iterator[Rule]:
    for place in rule_folders(folder):
        where = f"{place.name}/{DECLARATION}"
        try:
            table = tomllib.loads((place / DECLARATION).read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            errors.append(f"{where}: {error}")
            continue
        found = [*problems(table, _KEYS)]
        found = found or [*_contradictions(table, place.name)]
        if found:
            errors += [f"{where}: {problem}" for problem in found]
        else:
            yield _rule(table, place, origin)


def _contradictions(table: Mapping[str, object], folder: str) -> Iterator[str]:
    """Yield what the keys say against each other and against the folder's name."""
    if not _FOLDER.fullmatch(folder) or folder != f"{table['id']}-{table['name']}":
        yield f"id and name: the folder must be called ID-name, such as SPM101-{table['name']}"
    if table["id"] not in ENGINE and str(table.get("detector")).count(":") != 1:
        yield "detector: must be 'module:function'"
    releases = table.get("releases")
    if isinstance(releases, dict):
        yield from (f"releases.{problem}" for problem in problems(releases, _RELEASES))
        for key, value in releases.items():
            try:
                Version(str(value))
            except InvalidVersion:
                yield f"releases.{key}: {value!r} is not a release"


def _rule(table: Mapping[str, object], place: Path, origin: str) -> Rule:
    releases, parameters = table.get("releases"), table.get("parameters")
    releases = releases if isinstance(releases, dict) else {}
    page = place / "README.md"
    return Rule(
        id=str(table["id"]),
        name=str(table["name"]),
        summary=str(table["summary"]),
        topic=str(table["topic"]),
        severity=Severity(str(table["severity"])),
        confidence=Confidence(str(table["confidence"])),
        needs=Needs(str(table["needs"])),
        detector=str(table.get("detector", "")),
        parameters=MappingProxyType(dict(parameters if isinstance(parameters, dict) else {})),
        first_release=releases.get("first"),
        last_release=releases.get("last"),
        explanation=page.read_text("utf-8") if page.is_file() else "",
        fixable=any(place.glob("invalid/*.fixed.py")),
        origin=origin,
    )
