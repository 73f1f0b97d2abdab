"""Shell text into simple commands: words with their quotes, redirections, here-documents.

What launch scripts use of POSIX sh and bash; nothing is expanded or run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Quote = Literal["", "'", '"']
_SEPARATORS = ("&&", "||", ";;", ";", "|&", "|", "&", "\n", "(", ")")
_REDIRECT = re.compile(r"\d*(?:&>>|&>|<<<|<<-|<<|>>|>\||>&|<&|<>|>|<)")
_PLACEHOLDER = re.compile(r"<[A-Za-z](?:[^<>\n\"'$|;]*[^<>\n\"'$|; ])?>")
_ARRAY = re.compile(r"([A-Za-z_]\w*\+?=)\(")
_PLAIN = re.compile(r"[^\s'\"\\$`<>|&;()#{}]+")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word under one kind of quotes; ``'`` means that nothing expands in it."""

    text: str
    quote: Quote


Word = tuple[Piece, ...]


@dataclass(slots=True)
class Simple:
    """A simple command: its words, where its output goes, the documents it reads.

    ``before`` is the separator in front of it, ``between`` all of them since the last command.
    An array assignment is a word whose elements stand in ``arrays``, by its position.
    """

    line: int
    before: str
    words: list[Word] = field(default_factory=list)
    arrays: dict[int, list[Word]] = field(default_factory=dict)
    outputs: list[Word] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    between: tuple[str, ...] = ()


def literal(word: Word) -> str:
    """Return a word as text, without its quotes."""
    return "".join(piece.text for piece in word)


def lex(text: str) -> tuple[list[Simple], tuple[str, ...]]:
    """Return the simple commands of a script in order, and notes on what was mended."""
    lexer = _Lexer(text)
    lexer.run()
    found: list[Simple] = []
    between: list[str] = []
    for command in lexer.commands:
        between.append(command.before)
        if command.words or command.documents:
            command.between, between = tuple(between), []
            found.append(command)
    return found, tuple(dict.fromkeys(lexer.notes))


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.notes: list[str] = []
        self.commands: list[Simple] = [Simple(1, "")]
        self.pending: list[tuple[Simple, str, bool]] = []

    def run(self) -> None:
        """Read all of the text."""
        while self.at < len(self.text):
            self.step()

    def step(self) -> None:
        text, at = self.text, self.at
        if text.startswith("\\\n", at):
            self.at += 2
        elif text[at] in " \t":
            self.at += 1
        elif text[at] == "#":
            end = text.find("\n", at)
            self.at = len(text) if end < 0 else end
        elif (match := _REDIRECT.match(text, at)) and not _PLACEHOLDER.match(text, at):
            self.redirect(match)
        elif separator := next((s for s in _SEPARATORS if text.startswith(s, at)), None):
            self.at += len(separator)
            if separator == "\n":
                self.read_documents()
            self.commands.append(Simple(text.count("\n", 0, self.at) + 1, separator))
        elif match := _ARRAY.match(text, at):
            self.array(match)
        else:
            command = self.commands[-1]
            if not command.words:
                command.line = text.count("\n", 0, at) + 1
            command.words.append(self.word())

    def redirect(self, match: re.Match[str]) -> None:
        """Take off a redirection with its target."""
        self.at = match.end()
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if self.at == len(self.text) or self.text[self.at] in "\n;":
            return
        operator = match[0].lstrip("0123456789")
        target = self.word()
        command = self.commands[-1]
        if operator in ("<<", "<<-"):
            self.pending.append((command, literal(target), operator == "<<-"))
        elif operator.startswith((">", "&>")) and operator not in (">&",):
            command.outputs.append(target)

    def read_documents(self) -> None:
        """Read the here-documents that the line just ended has opened."""
        for command, end, indented in self.pending:
            lines: list[str] = []
            while self.at < len(self.text):
                line, newline, _ = self.text[self.at :].partition("\n")
                self.at += len(line) + len(newline)
                if line.strip() == end:
                    break
                lines.append(line.lstrip("\t") if indented else line)
            command.documents.append("\n".join(lines) + "\n")
        self.pending = []

    def array(self, match: re.Match[str]) -> None:
        """Read ``NAME=(word word)``; the elements are kept beside the word."""
        self.at = match.end()
        outer = self.commands
        self.commands = [Simple(1, "")]
        while self.at < len(self.text) and self.text[self.at] != ")":
            self.step()
        self.at += 1
        elements = [word for command in self.commands for word in command.words]
        self.commands = outer
        command = self.commands[-1]
        command.arrays[len(command.words)] = elements
        command.words.append((Piece(match[1], ""),))

    def word(self) -> Word:
        """Read one word; always moves on."""
        pieces: list[Piece] = []
        start = self.at
        while self.at < len(self.text):
            piece = self.piece(at_start=not pieces or pieces[-1].text.endswith("="))
            if piece is None:
                break
            if piece.text or piece.quote:
                pieces.append(piece)
        if self.at == start:
            pieces.append(Piece(self.text[self.at], ""))
            self.at += 1
        return tuple(pieces)

    def piece(self, at_start: bool) -> Piece | None:
        text, at = self.text, self.at
        char = text[at]
        if placeholder := _PLACEHOLDER.match(text, at):
            return self.take(placeholder.end(), "'")
        if char in " \t\n|&;()<>":
            return None
        if char == "\\":
            self.at += 2
            following = text[at + 1 : at + 2]
            return Piece("" if following == "\n" else following, "" if following == "\n" else "'")
        if char == "'":
            return self.until("'", "'")
        if char == '"':
            return self.double_quoted()
        if char in "$`":
            return self.expansion("")
        if char == "{" and at_start and (end := self.json_end()):
            self.notes.append("unquoted JSON read as if quoted: a shell would take its quotes away")
            return self.take(end, "'")
        plain = _PLAIN.match(text, at)
        return self.take(plain.end() if plain else at + 1, "")

    def take(self, end: int, quote: Quote) -> Piece:
        piece = Piece(self.text[self.at : end], quote)
        self.at = end
        return piece

    def until(self, char: str, quote: Quote) -> Piece:
        """Read from one quote to the next; to the end of the text if there is none."""
        end = self.text.find(char, self.at + 1)
        if end < 0:
            self.notes.append(f"a quote {char} is never closed")
            end = len(self.text)
        piece = Piece(self.text[self.at + 1 : end], quote)
        self.at = end + 1
        return piece

    def double_quoted(self) -> Piece:
        self.at += 1
        found: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return Piece("".join(found), '"')
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                following = self.text[self.at + 1]
                found.append("" if following == "\n" else following)
                self.at += 2
            elif char in "$`":
                found.append(self.expansion('"').text)
            else:
                found.append(char)
                self.at += 1
        self.notes.append('a quote " is never closed')
        return Piece("".join(found), '"')

    def expansion(self, quote: Quote) -> Piece:
        """Read ``$NAME``, ``${...}``, ``$(...)`` or a command in backticks, as it is written."""
        text, at = self.text, self.at
        if text[at] == "`":
            return Piece(f"$({self.until('`', quote).text})", quote)
        if text.startswith("$'", at) and not quote:
            self.at += 1
            return self.until("'", "'")
        for opening, closing in (("(", ")"), ("{", "}")):
            if text.startswith(opening, at + 1):
                end = balanced(text, at + 1, opening, closing)
                return self.take(end or len(text), quote)
        variable = _VARIABLE.match(text, at)
        return self.take(variable.end() if variable else at + 1, quote)

    def json_end(self) -> int | None:
        """Return where an unquoted JSON object ends that starts here."""
        end = balanced(self.text, self.at, "{", "}")
        inside = self.text[self.at + 1 : end].lstrip() if end else ""
        return end if inside.startswith('"') else None


def balanced(text: str, at: int, opening: str, closing: str) -> int | None:
    """Return the end of the bracket that opens at ``at``; None if it is never closed."""
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] == opening) - (text[index] == closing)
        if not depth:
            return index + 1
    return None
