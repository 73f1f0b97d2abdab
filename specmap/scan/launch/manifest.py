"""Servers in YAML: docker compose files, Kubernetes manifests, SGLang's own config files.

Read with the library that SGLang reads its ``--config`` with, so that ``on``, ``1e-3`` and
dates mean the same here and there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from specmap.scan.launch.servers import Command, in_shell, in_words
from specmap.scan.launch.shell import run
from specmap.scan.vocabulary import ArgumentNames

_ENTRY = ("entrypoint", "command", "args")
_ENVIRONMENT = ("env", "environment")
_SOURCES = ("envFrom", "env_file")
_SHELLS = re.compile(r"(?:.*/)?(?:ba|da|z|k)?sh")
_CONFIG_KEY = re.compile(r"[A-Za-z][\w-]*")
# Helm: {{ .Values.tp }} is a value that is not known; lines with nothing else are control.
_TEMPLATE = re.compile(r"\{\{-?\s*\.?([A-Za-z][\w.]*)[^{}]*\}\}")
_TEMPLATE_LINE = re.compile(r"\s*\{\{[^{}]*\}\}\s*")
# A key at the beginning of a line, as no shell command has it.
_LOOKS = re.compile(r"^[ \t-]*[A-Za-z][\w-]*:(?:[ \t]|$)", re.M)
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)")


def documents(text: str) -> list[Any]:
    """Return the YAML documents of a text; none if it is not YAML, or only one scalar.

    A template of YAML is read with its values as placeholders.
    """
    found = _loaded(text)
    if found is None and "{{" in text:
        lines = [line for line in text.split("\n") if not _TEMPLATE_LINE.fullmatch(line)]
        found = _loaded(_TEMPLATE.sub(r"<\1>", "\n".join(lines)))
    return [document for document in found or [] if isinstance(document, dict | list)]


def _loaded(text: str) -> list[Any] | None:
    try:
        return list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def broken(text: str) -> str:
    """Say where a text that looks like YAML is none, "" where it is YAML or does not look so."""
    if not _LOOKS.search(text) or "{{" in text:
        return ""
    try:
        list(yaml.safe_load_all(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        return f"{where}{error.problem or error.context}"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return str(error)
    return ""


def servers(text: str, names: ArgumentNames, env: Mapping[str, str]) -> list[Command]:
    """Return the servers that the containers of a manifest start, in order."""
    found: list[Command] = []
    for document in documents(text):
        for container in _containers(document, set()):
            for command in _of_container(container, names, env):
                found.append(replace(command, line=_line_of(command, text, len(found))))
    return found


def config(text: str) -> Mapping[str, object]:
    """Return a text as the contents of a config file; empty if it cannot be one."""
    found = documents(text)
    if len(found) != 1 or not isinstance(found[0], dict) or not found[0]:
        return {}
    return found[0] if all(_is_config_key(key) for key in found[0]) else {}


def _is_config_key(key: object) -> bool:
    return isinstance(key, str) and _CONFIG_KEY.fullmatch(key) is not None


def _containers(node: Any, seen: set[int]) -> Iterator[dict[Any, Any]]:
    """Yield the mappings that have a command, wherever they stand; aliases once."""
    if not isinstance(node, dict | list) or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, dict) and any(isinstance(node.get(key), str | list) for key in _ENTRY):
        yield node
    for child in node.values() if isinstance(node, dict) else node:
        yield from _containers(child, seen)


def _of_container(
    container: Mapping[Any, Any], names: ArgumentNames, env: Mapping[str, str]
) -> list[Command]:
    own = dict(env)
    for key in _ENVIRONMENT:
        own |= _environment(container.get(key))
    sources = tuple(key for key in _SOURCES if container.get(key))
    words: list[str] = []
    for key in _ENTRY:
        words += _words(container.get(key), own)
    found = in_words(words, names, own)
    if not found and words and _SHELLS.fullmatch(words[0]):
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        found = in_shell(script, names, own)
    if not found and isinstance(container.get("command"), str):
        found = in_shell(str(container["command"]), names, own)
    return [replace(command, sources=(*sources, *command.sources)) for command in found]


def _environment(node: Any) -> dict[str, str]:
    """Return the variables of ``{A: 1}``, ``[A=1]`` or ``[{name: A, value: 1}]``.

    A value from elsewhere (``valueFrom``, no value) is a reference to itself: not known.
    """
    if isinstance(node, dict):
        pairs = [(name, value) for name, value in node.items()]
    elif isinstance(node, list):
        pairs = [_pair(item) for item in node]
    else:
        return {}
    found = {}
    for name, value in pairs:
        if not isinstance(name, str):
            continue
        if isinstance(value, str | int | float):
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            found[name] = f"${name}"
    return found


def _pair(item: Any) -> tuple[Any, Any]:
    if isinstance(item, dict):
        return item.get("name"), item.get("value")
    name, equals, value = str(item).partition("=")
    return name, value if equals else None


def _words(node: Any, env: Mapping[str, str]) -> list[str]:
    """Return the words of a command: a list as it is, a string as a shell splits it."""
    if isinstance(node, str):
        runs = run(node, env)
        if len(runs) == 1:
            return list(runs[0].words)
        try:
            return shlex.split(node)
        except ValueError:
            return [node]
    if not isinstance(node, Sequence):
        return []
    return [_referred(_text(item), env) for item in node]


def _text(item: object) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)


def _referred(text: str, env: Mapping[str, str]) -> str:
    """Put in the values of ``$(NAME)``, which Kubernetes does in arguments."""
    return _REFERENCE.sub(lambda match: env.get(match[1], match[0]), text)


def _line_of(command: Command, text: str, index: int) -> int:
    """Return the line of the first place that names this command's last word, or 1."""
    for word in reversed(command.argv):
        place = text.find(word)
        if place >= 0 and text.count(word) == 1:
            return text.count("\n", 0, place) + 1
    return index + 1
