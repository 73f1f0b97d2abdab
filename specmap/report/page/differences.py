"""What two sides differ in before anything was run: targets, commands, arguments, versions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from specmap.report.page.secrets import shown
from specmap.report.page.settings import text_of
from specmap.report.page.subject import Subject
from specmap.report.page.tables import Json
from specmap.trace.rundir import without_secrets


def differences(left: Subject, right: Subject) -> list[Json]:
    """Return each fact that is not the same on both sides, by group."""
    one, other = dict(_groups(left)), dict(_groups(right))
    return [
        {
            "group": group,
            "name": name,
            "left": one[group].get(name),
            "right": other[group].get(name),
        }
        for group in one
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
    first = ranks[0] if ranks else None
    arguments = dict(first.arguments) if first is not None else {}
    if subject.outcome is not None:
        arguments = {f.name: f.value for f in subject.outcome.settings if f.known} | arguments
    yield "arguments", {n: shown(n, text_of(value)) for n, value in arguments.items()}
    yield "versions", dict(first.versions) if first is not None else {}
    environment = first.environment if first is not None else {}
    yield "environment", {n: shown(n, value) for n, value in environment.items()}
    machine = {"ranks": str(len(ranks)), "gpu": first.gpu, "ring": first.ring} if first else {}
    yield "machine", machine


def _commands(subject: Subject) -> Mapping[str, str]:
    found = {}
    if subject.outcome is not None and subject.outcome.command:
        found["command"] = shlex.join(without_secrets(subject.outcome.command))
    if subject.run is not None and subject.run.command:
        found["traced command"] = shlex.join(without_secrets(subject.run.command))
    return found
