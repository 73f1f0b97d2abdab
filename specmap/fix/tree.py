"""A tree that is being rewritten: its map, its texts, and exact places in them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from specmap.codemap.graph import CodeMap
from specmap.codemap.remedy import Change
from specmap.codemap.source import encoding_of, file_of, qualname_of
from specmap.fix.names import Names

_LINE_END = re.compile(r"\r\n|\r|\n")
Definition = cst.FunctionDef | cst.ClassDef


@dataclass
class Source:
    """One file: its text, its syntax tree, and where each node stands in the text."""

    file: str
    text: str
    _code: dict[int, str] = field(default_factory=dict)

    @cached_property
    def module(self) -> cst.Module:
        """The concrete syntax tree."""
        return cst.parse_module(self.text)

    @cached_property
    def _places(self) -> Mapping[cst.CSTNode, object]:
        return MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end.end() for end in _LINE_END.finditer(self.text)), len(self.text)]

    def code(self, node: cst.CSTNode) -> str:
        """Return the text of a node."""
        if id(node) not in self._code:
            self._code[id(node)] = self.module.code_for_node(node)
        return self._code[id(node)]

    def flat(self, node: cst.CSTNode) -> str:
        """Return the text of an expression on one line, without the parentheses around it."""
        return ast.unparse(ast.parse(f"(\n{self.code(node)}\n)", mode="eval"))

    def lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the first and the last line of a node."""
        place = self._place(node)
        return place.start.line, place.end.line

    def extent(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return where a node begins and ends, with its own parentheses."""
        place = self._place(node)
        start = self._starts[place.start.line - 1] + place.start.column
        end = self._starts[place.end.line - 1] + place.end.column
        # Only white space and comments stand between a node and its own parentheses.
        for _ in getattr(node, "lpar", ()):
            start = self.text.rindex("(", 0, start)
        for _ in getattr(node, "rpar", ()):
            end = self.text.index(")", end) + 1
        return start, end

    def statement(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the whole lines of a statement, with the comment lines that lead to it."""
        first, last = self.lines(node)
        while first > 1 and self.text[self._starts[first - 2] :].lstrip(" \t").startswith("#"):
            first -= 1
        return self._starts[first - 1], self._starts[last]

    def indent(self, node: cst.CSTNode) -> str:
        """Return the white space before the line on which a node begins."""
        line = self.text[self._starts[self.lines(node)[0] - 1] :]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def replace(self, node: cst.CSTNode, text: str) -> Change:
        """Return the change of a node into a text."""
        return Change(self.file, *self.extent(node), text)

    def drop(self, node: cst.CSTNode) -> Change:
        """Return the change that takes a statement away, and one empty line too many."""
        start, end = self.statement(node)
        before, after = self.text[:start], self.text[end:]
        if before.endswith("\n\n") and after.startswith("\n"):
            end += 1
        return Change(self.file, start, end, "")

    def before(self, node: cst.CSTNode, text: str) -> Change:
        """Return the change that puts lines before a statement and its comment lines."""
        start, _ = self.statement(node)
        return Change(self.file, start, start, textwrap.indent(text, self.indent(node)))

    def after(self, node: cst.CSTNode, text: str) -> Change:
        """Return the change that puts lines after a statement."""
        _, end = self.statement(node)
        return Change(self.file, end, end, textwrap.indent(text, self.indent(node)))

    def _place(self, node: cst.CSTNode) -> CodeRange:
        found = self._places[node]
        assert isinstance(found, CodeRange)
        return found


@dataclass
class Tree:
    """A tree on disk with changed texts over it, and the map of exactly these texts.

    ``kept`` holds what was worked out about it before.
    """

    root: Path
    codemap: CodeMap
    names: Names
    texts: Mapping[str, str] = field(default_factory=dict)
    kept: dict[str, object] = field(default_factory=dict)
    _sources: dict[str, Source] = field(default_factory=dict)
    _read: dict[str, str] = field(default_factory=dict)

    def text(self, file: str) -> str:
        """Return a file's text; empty where it cannot be read."""
        if file in self.texts:
            return self.texts[file]
        if file not in self._read:
            try:
                data = (self.root / file).read_bytes()
                self._read[file] = data.decode(encoding_of(data))
            except (OSError, UnicodeDecodeError):
                self._read[file] = ""
        return self._read[file]

    def source(self, file: str) -> Source:
        """Return a file with its syntax tree."""
        if file not in self._sources:
            self._sources[file] = Source(file, self.text(file))
        return self._sources[file]

    def source_of(self, symbol: str) -> Source:
        """Return the file of a symbol."""
        return self.source(file_of(symbol))

    def find(self, symbol: str) -> Definition | None:
        """Return the definition of a class or function, by its symbol id."""
        body: cst.BaseSuite | cst.Module = self.source_of(symbol).module
        found: Definition | None = None
        for name in qualname_of(symbol).split("."):
            found = next((d for d in definitions(body) if d.name.value == name), None)
            if found is None:
                return None
            body = found.body
        return found

    def function(self, symbol: str) -> cst.FunctionDef | None:
        """Return the definition of a function, by its symbol id."""
        found = self.find(symbol)
        return found if isinstance(found, cst.FunctionDef) else None

    def changed(self, codemap: CodeMap, texts: Mapping[str, str]) -> Tree:
        """Return the tree with other texts over it; what is the same is not read again."""
        made = Tree(self.root, codemap, self.names, texts)
        same = {f for f in self._sources if made.texts.get(f) == self.texts.get(f)}
        made._sources.update({file: self._sources[file] for file in same})
        made._read.update(self._read)
        return made

    @property
    def files(self) -> list[str]:
        """The files that the map was built from."""
        return [file.file for file in self.codemap.files]


def definitions(body: cst.BaseSuite | cst.Module) -> Iterator[Definition]:
    """Yield the classes and functions of a body, those under ``if`` and ``try`` included."""
    for statement in body.body:
        if isinstance(statement, cst.FunctionDef | cst.ClassDef):
            yield statement
        elif isinstance(statement, cst.If | cst.Try | cst.Else):
            for inner in statement.children:
                if isinstance(inner, cst.IndentedBlock):
                    yield from definitions(inner)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and all below it, in the order of the text."""
    if isinstance(node, cst.FunctionDef | cst.BaseSuite):
        return iter(_below(node))
    return _walked(node)


def _walked(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from walk(child)


@lru_cache(maxsize=4096)
def _below(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    return tuple(_walked(node))


def statements(function: cst.FunctionDef) -> Iterator[cst.SimpleStatementLine]:
    """Yield the simple statements of a function, those of functions inside it left out."""
    stack: list[cst.CSTNode] = [function.body]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.SimpleStatementLine):
            yield node
        elif not isinstance(node, cst.FunctionDef | cst.ClassDef | cst.BaseExpression):
            stack.extend(reversed(node.children))


def mentions(node: cst.CSTNode, name: str) -> int:
    """Return how often a bare name stands in a node."""
    attributes = {id(n.attr) for n in walk(node) if isinstance(n, cst.Attribute)}
    attributes |= {id(n.keyword) for n in walk(node) if isinstance(n, cst.Arg) and n.keyword}
    return sum(
        isinstance(n, cst.Name) and n.value == name and id(n) not in attributes for n in walk(node)
    )


def assigned(statement: cst.SimpleStatementLine) -> tuple[str, cst.BaseExpression] | None:
    """Return the name and the value of ``name = value``."""
    if len(statement.body) != 1:
        return None
    small = statement.body[0]
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = small.targets[0].target
        return (target.value, small.value) if isinstance(target, cst.Name) else None
    if isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name) and small.value:
        return small.target.value, small.value
    return None
