"""What two sides differ in before anything was run: targets, commands, arguments, versions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from specmap.report.page.secrets import UNRECORDED, shown
from specmap.report.page.settings import text_of
from specmap.report.page.subject import Subject
from specmap.report.page.tables import Json
from specmap.trace.rundir import without_secrets

_OPEN = "not known"


def differences(left: Subject, right: Subject) -> list[Json]:
    """Return each fact that is not the same on both sides, by group.

    What one side alone can have, the variables of a recorded run say, is not compared.
    """
    one, other = dict(_groups(left)), dict(_groups(right))
    if "arguments" in one and "arguments" in other:
        compared = _compared(left, right, one["arguments"], other["arguments"])
        for groups in (one, other):
            values = groups["arguments"]
            groups["arguments"] = {n: value for n, value in values.items() if n in compared}
    return [
        {
            "group": group,
            "name": name,
            "left": one[group].get(name),
            "right": other[group].get(name),
        }
        for group in one
        if group in other
        for name in sorted({*one[group], *other[group]})
        if one[group].get(name) != other[group].get(name)
    ]


def _groups(subject: Subject) -> Iterator[tuple[str, Mapping[str, str]]]:
    codemap = subject.codemap
    yield (
        "target",
        {
            "target": codemap.target,
            "release": codemap.release or "",
            "commit": codemap.commit or "",
            "platform": codemap.platform,
        },
    )
    yield "launch", _commands(subject)
    ranks = subject.run.ranks if subject.run is not None else ()
    if subject.facts or ranks:
        yield "arguments", _arguments(subject)
    if ranks:
        first = ranks[0]
        yield "versions", dict(first.versions)
        yield "environment", {n: shown(n, value) for n, value in first.environment.items()}
        yield "machine", {"ranks": str(len(ranks)), "gpu": first.gpu, "ring": first.ring}


def _arguments(subject: Subject) -> Mapping[str, str]:
    """Return the value of each argument, given or not."""
    ranks = subject.run.ranks if subject.run is not None else ()
    recorded = ranks[0].arguments if ranks else {}
    settled = {name: fact.value for name, fact in subject.facts.items() if fact.known}
    values = {
        name: shown(name, text_of(value))
        for name, value in (settled | dict(recorded)).items()
        if value != UNRECORDED
    }
    return dict.fromkeys(subject.facts, _OPEN) | values


def _compared(
    left: Subject, right: Subject, one: Mapping[str, str], other: Mapping[str, str]
) -> set[str]:
    """Return the arguments that both sides know, and telling ones that one does not.

    A run's header alone need not have all of them, so what it lacks says nothing.
    """
    known = {name for name in set(one) & set(other) if _OPEN not in (one[name], other[name])}
    telling = left.telling | right.telling
    alone = (set(one) - set(other)) if right.facts else set()
    alone |= (set(other) - set(one)) if left.facts else set()
    return known | telling & (set(one) & set(other) | alone)


def _commands(subject: Subject) -> Mapping[str, str]:
    found = {}
    if subject.outcome is not None and subject.outcome.command:
        found["command"] = shlex.join(without_secrets(subject.outcome.command))
    if subject.run is not None and subject.run.command:
        found["traced command"] = shlex.join(without_secrets(subject.run.command))
    return found
