"""What a page must not say: the values of keys, tokens and passwords, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specmap.report.page.subject import Subject
from specmap.trace.rundir import without_secrets

HIDDEN = "***"
UNRECORDED = "<hidden>"
"""What a run's header holds in place of a value that may be secret."""
_LEAST = 4
"""Shorter values are only hidden where they are named: they stand in other words, too."""


def shown(name: str, value: str) -> str:
    """Return a setting's value, or what stands for it where the name says that it is secret."""
    return HIDDEN if value and _is_secret(name) else value


def _is_secret(name: str) -> bool:
    return without_secrets([f"{name}=x"]) == [f"{name}={HIDDEN}"]


def secrets_of(subject: Subject) -> frozenset[str]:
    """Return the values that the launch, the run and its environment keep secret."""
    found = set(_of_command(subject.outcome.command if subject.outcome is not None else ()))
    if subject.run is not None:
        found |= set(_of_command(subject.run.command))
        for rank in subject.run.ranks:
            found |= set(_of_table(rank.arguments)) | set(_of_table(rank.environment))
    return frozenset(value for value in found if len(value) >= _LEAST)


def _of_command(command: Sequence[str]) -> Iterator[str]:
    for word, kept in zip(command, without_secrets(command), strict=True):
        if word != kept:
            yield word.partition("=")[2] if kept != HIDDEN else word


def _of_table(table: Mapping[str, object]) -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, str) and _is_secret(name):
            yield value


def scrubbed(value: Any, secrets: frozenset[str]) -> Any:
    """Return data with every secret replaced, longest first."""
    if not secrets:
        return value
    return _scrubbed(value, sorted(secrets, key=lambda text: (-len(text), text)))


def _scrubbed(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, dict):
        return {_scrubbed(k, secrets): _scrubbed(v, secrets) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(item, secrets) for item in value]
    return value
