"""Pasted text made readable again: what browsers, chats, prompts and other shells leave in it.

Every repair that changes the meaning of the text as a shell would read it leaves a note.
"""

from __future__ import annotations

import re

_QUOTES = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'"})
_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u202f\u3000", " "))
_INVISIBLE = str.maketrans(dict.fromkeys("\ufeff\u200b\u200c\u200d\u2060", ""))
_DASH = re.compile(r"(?<![^\s])[\u2013\u2014](?=[A-Za-z])")
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.M | re.S)
_PROMPT = re.compile(
    r"^[ \t]*(?:\([^()\n]*\)[ \t]*)?"
    r"(?:(?:[\w.-]+@[\w.-]+[^\n$#>]*)[$#][ \t]+|\[[^\]\n]*@[^\]\n]*\][$#][ \t]+|\$[ \t]+)",
    re.M,
)
_CONTINUED = re.compile(r"\\[ \t]+\n")
_OTHER_CONTINUATION = re.compile(r"[ \t][\^`][ \t]*\n(?=[ \t]*-)")
_POWERSHELL = re.compile(r"^[ \t]*\$env:(\w+)[ \t]*=[ \t]*", re.M | re.I)
_DOS_SET = re.compile(r"^[ \t]*set[ \t]+\"?(\w+)=([^\"\n]*?)\"?[ \t]*$", re.M)


def repaired(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text as a POSIX shell wants it, and what was changed."""
    notes: list[str] = []
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_INVISIBLE)
    for table, note in (
        (_QUOTES, "typographic quotes read as plain ones"),
        (_SPACES, "non-breaking spaces read as plain ones"),
    ):
        text = _noted(text, text.translate(table), note, notes)
    text = _noted(text, _DASH.sub("--", text), "a long dash read as --", notes)
    text = _unquoted(_inside_fences(text))
    text = _without_prompts(text)
    note = "spaces after a backslash at the end of a line ignored: a shell would stop there"
    text = _noted(text, _CONTINUED.sub("\\\\\n", text), note, notes)
    note = "^ or ` at the end of a line read as a continued line"
    text = _noted(text, _OTHER_CONTINUATION.sub(" \\\\\n", text), note, notes)
    text = _POWERSHELL.sub(r"export \1=", text)
    return _DOS_SET.sub(r"export \1='\2'", text), tuple(notes)


def _noted(before: str, after: str, note: str, notes: list[str]) -> str:
    if after != before:
        notes.append(note)
    return after


def _inside_fences(text: str) -> str:
    """Return what stands in Markdown code fences, in its lines; all of it if there are none."""
    kept: list[str] = []
    end = 0
    for match in _FENCE.finditer(text):
        start = match.start(2)
        kept += ["\n" * text.count("\n", end, start), match.group(2)]
        end = match.end(2)
    return "".join(kept) if kept else text


def _unquoted(text: str) -> str:
    """Take off ``>`` of a quoted reply and the backticks around a one-line command."""
    lines = text.split("\n")
    if all(line.lstrip().startswith(">") for line in lines if line.strip()):
        lines = [re.sub(r"^[ \t]*>[ \t]?", "", line) for line in lines]
    return "\n".join(
        re.sub(r"^[ \t]*(?:[-*][ \t]+)?`([^`]+)`[ \t]*$", r"\1", line) for line in lines
    )


def _without_prompts(text: str) -> str:
    text = re.sub(r"^[ \t]*(>>>|\.\.\.)[ \t]", "", text, flags=re.M)
    text = _PROMPT.sub("", text)
    continued = re.findall(r"\\[ \t]*\n(..)", text)
    if continued and all(start == "> " for start in continued):
        text = re.sub(r"(\\[ \t]*\n)> ", r"\1", text)
    return text
