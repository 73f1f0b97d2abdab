"""Launch commands as people post them: each is read, and means what it says on its release.

The files below ``commands/`` keep the spelling of what was posted; models, paths, hosts and
names are replaced. The head of each file names the kind of source, the release it is for, and
what can be read off the text: values, unknown fields, the environment, or the error.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from specmap.scan.launch.argv import Given
from specmap.scan.launch.command import Command, read
from specmap.scan.launch.declared import Declarations
from specmap.scan.launch.declared import read as read_declared
from specmap.scan.launch.given import given
from specmap.scan.launch.history import load_history
from specmap.scan.launch.unknown import ArgumentError
from specmap.scan.vocabulary import load_vocabulary
from tests.releases.trees import checkout_of

pytestmark = pytest.mark.releases

WORDS = load_vocabulary()
HISTORY = load_history()
FOLDER = Path(__file__).parent / "commands"
FILES = sorted(FOLDER.glob("*.txt"))
_HEAD = re.compile(r"# (source|release|servers|values 2|values|env|unknown|open|error): (.*)")


@cache
def declared(release: str) -> Declarations:
    return read_declared(checkout_of(release).root, WORDS)


def taken_apart(path: Path) -> tuple[dict[str, str], str]:
    """Return the head of a file and the pasted text."""
    head: dict[str, str] = {}
    lines = path.read_text("utf-8").split("\n")
    while match := _HEAD.fullmatch(lines[0]):
        head[match[1]] = match[2]
        lines.pop(0)
    return head, "\n".join(lines)


def meaning(release: str, command: Command) -> Given:
    def history(flag: str) -> str:
        return HISTORY.about(flag, release)

    return given(declared(release), command, WORDS.arguments, history=history)


def plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def test_there_are_thirty_of_all_kinds() -> None:
    texts = [path.read_text("utf-8") for path in FILES]
    assert len(texts) >= 30
    for name in ("EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "docker run", "kind:"):
        assert any(name in text for text in texts), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_posted_command(path: Path) -> None:
    head, text = taken_apart(path)
    commands = read(text, WORDS.arguments)
    assert len(commands) == int(head.get("servers", "1"))
    if "error" in head:
        with pytest.raises(ArgumentError) as caught:
            meaning(head["release"], commands[0])
        assert head["error"] in str(caught.value)
        assert "\n" not in str(caught.value)
        return
    for command, key in zip(commands, ("values", "values 2"), strict=False):
        found = meaning(head["release"], command)
        wanted = json.loads(head[key])
        assert {name: plain(found.values.get(name)) for name in wanted} == wanted
    first = meaning(head["release"], commands[0])
    assert set(head.get("unknown", "").split()) <= set(first.unknown_values)
    assert list(first.open) == head.get("open", "").split()
    for pair in head.get("env", "").split():
        name, _, value = pair.partition("=")
        assert commands[0].env[name] == value
