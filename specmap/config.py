"""``[tool.specmap]`` in a project's pyproject.toml: read, checked, frozen."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from specmap.codemap.rule import Rule, Severity
from specmap.codemap.tables import Key, problems
from specmap.errors import SpecmapError

FILE = "pyproject.toml"
_RULE_KEYS = {"severity": Key(str, tuple(Severity)), "parameters": Key(dict)}


@dataclass(frozen=True, slots=True)
class Config:
    """What a project decided; the command line's options stand above it.

    ``folder`` is where the file was found, for messages and relative paths. ``severity``
    and ``parameters`` are by rule id.
    """

    folder: Path | None = None
    platform: str | None = None
    output_format: str | None = None
    baseline: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def find_config(
    start: Path, rules: Sequence[Rule], *, platforms: Sequence[str], formats: Sequence[str]
) -> Config:
    """Read the nearest pyproject.toml above ``start`` that has a table ``[tool.specmap]``.

    Without one, everything is at its default. The search ends at the top of a repository.

    Raises:
        SpecmapError: the table is wrong; the message lists everything that is wrong.
    """
    for folder in (start, *start.parents):
        table = _table(folder / FILE)
        if table is not None:
            return read_config(table, folder, rules, platforms=platforms, formats=formats)
        if (folder / ".git").exists():
            break
    return Config()


def read_config(
    table: Mapping[str, object],
    folder: Path,
    rules: Sequence[Rule],
    *,
    platforms: Sequence[str],
    formats: Sequence[str],
) -> Config:
    """Check one table ``[tool.specmap]`` and return what it says.

    Raises:
        SpecmapError: as :func:`find_config`.
    """
    keys = {
        "platform": Key(str, tuple(platforms)),
        "output-format": Key(str, tuple(formats)),
        "baseline": Key(str),
        "select": Key(list),
        "ignore": Key(list),
        "rules": Key(dict),
    }
    own = table.get("rules")
    tables = own if isinstance(own, dict) else {}
    wrong = [*problems(table, keys), *_rule_problems(tables, rules), *_selectors(table, rules)]
    if wrong:
        raise SpecmapError(f"{FILE}: [tool.specmap]: {'; '.join(wrong)}")
    ids = {name: rule.id for rule in rules for name in (rule.id, rule.name)}
    baseline = table.get("baseline")
    return Config(
        folder=folder,
        platform=_text(table.get("platform")),
        output_format=_text(table.get("output-format")),
        baseline=folder / baseline if isinstance(baseline, str) else None,
        select=_texts(table.get("select")),
        ignore=_texts(table.get("ignore")),
        severity={ids[n]: Severity(t["severity"]) for n, t in tables.items() if "severity" in t},
        parameters={ids[n]: t["parameters"] for n, t in tables.items() if "parameters" in t},
    )


def _table(path: Path) -> Mapping[str, object] | None:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecmapError(f"{path.name} in {path.parent.name!r} cannot be read: {error}") from None
    table = content.get("tool", {}).get("specmap")
    if table is not None and not isinstance(table, dict):
        raise SpecmapError(f"{path.name}: tool.specmap must be a table")
    return table


def _rule_problems(tables: Mapping[str, object], rules: Sequence[Rule]) -> Iterator[str]:
    names = {name for rule in rules for name in (rule.id, rule.name)}
    for name, table in tables.items():
        if name not in names:
            yield f"rules.{name}: no such rule; 'specmap rules' lists them"
        elif not isinstance(table, dict):
            yield f"rules.{name}: must be a table"
        else:
            yield from (f"rules.{name}.{problem}" for problem in problems(table, _RULE_KEYS))


def _selectors(table: Mapping[str, object], rules: Sequence[Rule]) -> Iterator[str]:
    for key in ("select", "ignore"):
        for selector in _texts(table.get(key)):
            if not any(rule.is_selected_by(selector) for rule in rules):
                yield f"{key}: no rule {selector!r}; 'specmap rules' lists ids, names and topics"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
