"""Servers that Python code starts: ``Engine(...)``, settings objects, commands in strings."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Mapping
from dataclasses import replace

from specmap.scan.launch.servers import Command, in_shell, in_words
from specmap.scan.launch.shelllexer import balanced
from specmap.scan.launch.unknown import Unknown
from specmap.scan.module import last_name
from specmap.scan.vocabulary import ArgumentNames

LOGGED = (
    "a logged settings object: 'given' is what it shows, and SGLang has derived some of that from "
    "the rest; try a change with the launch command itself"
)


def servers(text: str, names: ArgumentNames, env: Mapping[str, str]) -> list[Command]:
    """Return the servers that a Python text starts, in order.

    Text that is not Python may still hold a settings object as a server logs it.
    """
    tree = _parsed(textwrap.dedent(text))
    note: tuple[str, ...] = ()
    if tree is None:
        tree, note = _logged(text, names), (LOGGED,)
    if tree is None:
        return []
    reader = _Reader(names, dict(env))
    reader.visit(tree)
    return [replace(command, notes=(*note, *command.notes)) for command in reader.found]


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _logged(text: str, names: ArgumentNames) -> ast.Module | None:
    """Return the last ``Name(field=value, ...)`` in a log; lines broken inside it are joined."""
    found = None
    for match in re.finditer(rf"\b(?:{'|'.join(sorted(names.calls))})\(\w+=", text):
        end = balanced(text, match.end(0) - len(match[0].partition("(")[2]) - 1, "(", ")")
        found = _parsed(text[match.start() : end]) if end else None
    return found


class _Reader(ast.NodeVisitor):
    """Goes through the statements in order and keeps the names bound to literals."""

    def __init__(self, names: ArgumentNames, env: dict[str, str]) -> None:
        self.names = names
        self.env = env
        self.known: dict[str, object] = {}
        self.found: list[Command] = []
        self.branches = 0

    def visit(self, node: ast.AST) -> None:
        """Count the branches and loops around a statement: what they set is not known."""
        branch = isinstance(node, ast.If | ast.For | ast.While | ast.Try)
        self.branches += branch
        super().visit(node)
        self.branches -= branch

    def visit_Assign(self, node: ast.Assign) -> None:
        """Note ``name = literal`` and ``os.environ["A"] = "1"``."""
        self.generic_visit(node)
        value = self.value(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                unknown = Unknown(f"{{{{{target.id}}}}}")
                self.known[target.id] = unknown if self.branches else value
            elif isinstance(target, ast.Subscript) and last_name(target.value) == "environ":
                name = self.value(target.slice)
                if isinstance(name, str):
                    self.env[name] = str(value.text if isinstance(value, Unknown) else value)

    def visit_Call(self, node: ast.Call) -> None:
        """Read a call that starts a server; the innermost one counts."""
        before = len(self.found)
        self.generic_visit(node)
        if len(self.found) == before and last_name(node) in self.names.calls:
            self.found.append(self.call(node))

    def visit_Constant(self, node: ast.Constant) -> None:
        """Read a command in a string."""
        if isinstance(node.value, str) and " " in node.value:
            self.add(in_shell(node.value, self.names, self.env), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Read a command in an f-string; what it fills in is not known unless it is a literal."""
        value = self.value(node)
        text = value.text if isinstance(value, Unknown) else str(value)
        self.add(in_shell(text, self.names, self.env), node)

    def visit_List(self, node: ast.List) -> None:
        """Read a command in a list of strings."""
        words = [self.value(item) for item in node.elts]
        texts = [word.text if isinstance(word, Unknown) else str(word) for word in words]
        direct = in_words(texts, self.names, self.env)
        if direct:
            self.add(direct, node)
        else:
            self.generic_visit(node)

    def add(self, commands: list[Command], node: ast.expr) -> None:
        self.found += [replace(c, line=c.line + node.lineno - 1) for c in commands]

    def call(self, node: ast.Call) -> Command:
        fields: dict[str, object] = {}
        notes = []
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                fields[keyword.arg] = value
            elif isinstance(value, Mapping):
                fields |= value
            else:
                fields["**"] = Unknown(f"**{ast.unparse(keyword.value)}")
        if node.args:
            notes.append("positional arguments of the call are not read")
        named = (flag.lstrip("-").replace("-", "_") for flag in self.names.model)
        model = next((fields[name] for name in named if name in fields), None)
        return Command(
            env=dict(self.env),
            model=model.text
            if isinstance(model, Unknown)
            else None
            if model is None
            else str(model),
            fields=fields,
            notes=tuple(notes),
            line=node.lineno,
        )

    def value(self, node: ast.expr) -> object:
        """Return a literal's value; lists become tuples, what is not literal is Unknown."""
        match node:
            case ast.Name(id=name) if name in self.known:
                return self.known[name]
            case ast.JoinedStr(values=parts):
                return self.joined(parts)
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                if all(keyword.arg for keyword in keywords):
                    return {str(keyword.arg): self.value(keyword.value) for keyword in keywords}
            case ast.Dict(keys=keys, values=values) if all(
                isinstance(k, ast.Constant) for k in keys
            ):
                names = [key.value for key in keys if isinstance(key, ast.Constant)]
                return {str(n): self.value(v) for n, v in zip(names, values, strict=True)}
        try:
            found = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return Unknown(f"{{{{{ast.unparse(node)}}}}}")
        return tuple(found) if isinstance(found, list | set) else found

    def joined(self, parts: list[ast.expr]) -> object:
        texts = []
        for part in parts:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            value = self.value(inner)
            texts.append(value.text if isinstance(value, Unknown) else str(value))
        return "".join(texts)
