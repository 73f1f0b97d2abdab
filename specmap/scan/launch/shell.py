"""What a shell script sets before each command, as far as its text tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from specmap.scan.launch.shelllexer import Piece, Simple, Word, lex, literal
from specmap.scan.launch.unknown import unknown_parts

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.S)
_NAMED = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?:\[[@*]\])?\}|([A-Za-z_]\w*))")
_ARRAY = re.compile(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}")
# A function's body runs when it is called, if it is.
_OPENING = frozenset({"if", "for", "while", "until", "case", "{"})
_CLOSING = frozenset({"fi", "done", "esac", "}"})
_LEADING = frozenset({"then", "else", "elif", "do", "!", "time", *_OPENING, *_CLOSING})
_EXPORTS = frozenset({"export", "setenv", "declare", "typeset", "readonly", "local"})
# Commands that set the variables which their words name.
_WRITERS = frozenset({"let", "eval", "read", "printf", "mapfile", "readarray", "getopts"})
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_ARITHMETIC = re.compile(r"\(\(\s*([A-Za-z_]\w*)\s*(?:[-+*/%]?=(?!=)|\+\+|--)")
_TESTS = frozenset({"[", "[[", "test"})
_PIPES = ("|", "|&")
_PIPED = (("|",), ("|&",))
_APART = (*_PIPED, ("&",))
_SOURCES = frozenset({"source", "."})
# What `source` most often reads: Python's and conda's own scripts set nothing that a server reads.
_HARMLESS = ("activate", "conda.sh")
# Commands that only show or keep the document that they are given.
_SHOWING = frozenset({"cat", ":", "true", "read", "mapfile", "readarray"})


@dataclass(slots=True)
class Run:
    """A command with its words expanded, and the environment that the script has exported.

    ``unexported`` holds variables that are set but not exported and that no word refers to;
    ``sourced`` the commands before it that may have set any other variable.
    """

    line: int
    words: tuple[str, ...]
    env: Mapping[str, str]
    documents: tuple[str, ...]
    files: Mapping[str, str]
    unexported: tuple[str, ...]
    notes: tuple[str, ...]
    sourced: tuple[str, ...] = ()


@dataclass(slots=True)
class _State:
    """What is known at one point; a variable that a branch or loop sets is not known.

    ``stated`` is what the caller knows.
    ``tested``: the command runs only where a test before it holds (``[ -n "$A" ] && export B``).
    """

    known: dict[str, list[str]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    stated: Mapping[str, str] = field(default_factory=dict)
    branched: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    sourced: list[str] = field(default_factory=list)
    outer: list[tuple[dict[str, list[str]], set[str], set[str]]] = field(default_factory=list)
    depth: int = 0
    asked: bool = False
    tested: bool = False

    @property
    def maybe(self) -> bool:
        """Whether the command at this point runs only under a condition."""
        return self.tested or self.depth > 0

    def forget(self, name: str) -> None:
        """Make a variable unknown for good."""
        self.branched.add(name)
        self.known.pop(name, None)

    def source(self, command: str) -> None:
        """Read a file that is not there: it may set any variable, but what is stated holds."""
        self.sourced.append(command)
        self.known = {name: [value] for name, value in self.stated.items()}

    def enter(self) -> None:
        """Begin a subshell: what it sets is gone after it."""
        self.outer.append((dict(self.known), set(self.exported), set(self.branched)))

    def leave(self) -> None:
        """End a subshell."""
        if self.outer:
            self.known, self.exported, self.branched = self.outer.pop()

    def assign(self, name: str, add: str, values: list[str], is_array: bool) -> None:
        if self.maybe:
            self.forget(name)
        elif name in self.branched:
            return
        elif add and name in self.known:
            old = self.known[name]
            self.known[name] = old + values if is_array else ["".join(old + values)]
        elif not add:
            self.known[name] = values

    def env(self) -> dict[str, str]:
        """Return the exported variables, unknown ones as a reference to themselves."""
        return {n: " ".join(self.known.get(n, [f"${n}"])) for n in sorted(self.exported)}


def run(text: str, env: Mapping[str, str]) -> list[Run]:
    """Return the commands that a script runs, in order, branches and loops taken once.

    ``env`` is what the caller knows of the environment.
    """
    state = _State({name: [value] for name, value in env.items()}, set(env), env)
    simples, notes = lex(text)
    for name in _ARITHMETIC.findall(text):
        state.forget(name)
    found = []
    lined = _joined(simples)
    apart = False
    for simple, following in zip_longest(lined, lined[1:]):
        _scope(simple, state, apart)
        ended = following.between[:1] if following is not None else ()
        apart = simple.before in _PIPES or ended in _APART
        if apart:
            state.enter()
        command = _strip_keywords(simple, state)
        _follow(simple, state)
        words, local = _assignments(command, state)
        for target in command.outputs:
            for document in command.documents:
                state.files[literal(target)] = document
        expanded = tuple(text for word in words for text in _expand(word, state))
        if expanded[:1] and expanded[0] in _EXPORTS:
            _export(expanded, state)
            continue
        if expanded[:1] == ("unset",):
            _unset(expanded[1:], state)
            continue
        if expanded[:1] and expanded[0] in _WRITERS:
            for name in set(_IDENTIFIER.findall(" ".join(expanded[1:]))) & state.known.keys():
                state.forget(name)
        if len(expanded) > 1 and expanded[0] in _SOURCES:
            if not expanded[1].endswith(_HARMLESS):
                state.source(" ".join(expanded[:2]))
            continue
        shown = expanded[:1] and expanded[0] in _SHOWING and ended not in _PIPED
        documents = () if shown and not command.outputs else tuple(command.documents)
        if not words and not documents:
            continue
        quiet = sorted(set(state.known) - state.exported - state.used - set(local))
        env_here = state.env() | local
        found.append(
            Run(simple.line, expanded, env_here, documents, state.files, tuple(quiet), notes,
                tuple(dict.fromkeys(state.sourced)))
        )  # fmt: skip
    return _with_join_notes(found, simples)


def _scope(simple: Simple, state: _State, apart: bool) -> None:
    """Leave the subshell of the last command, and enter or leave those of parentheses."""
    if apart:
        state.leave()
    for separator in simple.between:
        if separator == "(":
            state.enter()
        elif separator == ")":
            state.leave()


def _joined(simples: list[Simple]) -> list[Simple]:
    """Append a line that starts with an option to the command that it was meant for."""
    found: list[Simple] = []
    for simple in simples:
        is_option = simple.words and literal(simple.words[0]).startswith("--")
        if found and is_option and simple.before == "\n" and found[-1].words:
            found[-1].words += simple.words
            found[-1].before += "+"
        else:
            found.append(simple)
    return found


def _with_join_notes(found: list[Run], simples: list[Simple]) -> list[Run]:
    joined = {simple.line for simple in simples if simple.before.endswith("+")}
    note = "lines that a shell would not join are read as one command (a missing backslash)"
    for command in found:
        if command.line in joined:
            command.notes = (*command.notes, note)
    return found


def _follow(simple: Simple, state: _State) -> None:
    """Tell whether a test stands before the command in its ``&&`` and ``||`` list."""
    joined = simple.before in ("&&", "||")
    state.tested = joined and (state.tested or state.asked or simple.before == "||")
    is_test = bool(simple.words) and literal(simple.words[0]) in _TESTS
    state.asked = is_test or (joined and state.asked)


def _strip_keywords(simple: Simple, state: _State) -> Simple:
    """Take leading keywords off, and keep count of how deep the command stands."""
    words = list(simple.words)
    while words and literal(words[0]) in _LEADING:
        keyword = literal(words.pop(0))
        if keyword in _OPENING:
            state.depth += 1
        elif keyword in _CLOSING:
            state.depth = max(state.depth - 1, 0)
        if keyword == "for" and words:
            state.assign(literal(words[0]), "", [], is_array=False)
            words.clear()
    offset = len(simple.words) - len(words)
    arrays = {index - offset: items for index, items in simple.arrays.items()}
    return Simple(simple.line, simple.before, words, arrays, simple.outputs, simple.documents)


def _assignments(command: Simple, state: _State) -> tuple[list[Word], dict[str, str]]:
    """Split ``A=1 B=2 program`` into the words and what is set for them alone."""
    local: dict[str, str] = {}
    words = list(command.words)
    index = 0
    while words and (match := _assignment(words[0])):
        name, add, _ = match
        if index in command.arrays:
            values = [t for item in command.arrays[index] for t in _expand(item, state)]
        else:
            values = [_joined_text(_value(words[0]), state)]
        words.pop(0)
        local[name] = " ".join(values)
        if all(_assignment(word) for word in words):
            state.assign(name, add, values, index in command.arrays)
        index += 1
    return words, local if words else {}


def _assignment(word: Word) -> tuple[str, str, str] | None:
    if word[0].quote:
        return None
    match = _ASSIGNMENT.fullmatch(word[0].text)
    return (match[1], match[2], match[3]) if match else None


def _value(word: Word) -> Word:
    """Return what stands after the ``=``."""
    head = word[0].text.partition("=")[2]
    return (Piece(head, ""), *word[1:])


def _export(words: tuple[str, ...], state: _State) -> None:
    exports = words[0] in ("export", "setenv") or "-x" in words
    if words[0] == "setenv" and len(words) == 3:
        words = (words[0], f"{words[1]}={words[2]}")
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not name.isidentifier():
            continue
        if equals:
            state.assign(name.removesuffix("+"), "", [value], is_array=False)
        if exports and state.maybe and name not in state.exported:
            state.forget(name)
        if exports:
            state.exported.add(name)


def _unset(names: tuple[str, ...], state: _State) -> None:
    for name in names:
        if state.maybe:
            state.forget(name)
        else:
            state.exported.discard(name)


def _joined_text(word: Word, state: _State) -> str:
    """Expand a word without splitting it."""
    return "".join(p.text if p.quote == "'" else _substituted(p.text, state) for p in word)


def _substituted(text: str, state: _State) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        state.used.add(name)
        value = " ".join(state.known.get(name, [match[0]]))
        # What a command prints is not known, and not in how many words.
        return match[0] if any(" " in part for part in unknown_parts(value)) else value

    return _NAMED.sub(value, text)


def _expand(word: Word, state: _State) -> list[str]:
    """Expand a word; an unquoted variable is split at white space, an array at its elements."""
    if len(word) == 1 and (match := _ARRAY.fullmatch(word[0].text)):
        name = match[1]
        state.used.add(name)
        elements = state.known.get(name)
        if elements is None:
            return [word[0].text]
        return elements if word[0].quote else [w for text in elements for w in text.split()]
    found = [""]
    for piece in word:
        text = piece.text if piece.quote == "'" else _substituted(piece.text, state)
        if piece.quote or text == piece.text:
            found[-1] += text
            continue
        parts = text.split()
        if parts:
            found[-1] += parts[0]
            found += parts[1:]
    return [text for text in found if text or any(piece.quote for piece in word)]
