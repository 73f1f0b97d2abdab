"""Servers that Python code starts: ``Engine(...)``, settings objects, commands in strings."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from dataclasses import replace

from specmap.scan.launch.logged import parsed, starts
from specmap.scan.launch.servers import Command, in_shell, in_words
from specmap.scan.launch.unknown import Unknown
from specmap.scan.module import last_name
from specmap.scan.vocabulary import ArgumentNames

LOGGED = (
    "a logged settings object: 'given' is what it shows, and SGLang has derived some of that from "
    "the rest; try a change with the launch command itself"
)


def servers(text: str, names: ArgumentNames, env: Mapping[str, str]) -> list[Command]:
    """Return the servers that a Python text starts, in order.

    Text that is not Python may still hold settings objects as a server logs them, after the
    command that started it. One that cannot be read is a note of the others.
    """
    tree = parsed(textwrap.dedent(text))
    if tree is not None:
        return _called(tree, names, env)
    shown = starts(text, names)
    notes = tuple(start.wrong for start in shown if start.tree is None)
    found = [
        replace(
            command, line=start.line, logged=True, batches=start.batches,
            notes=(LOGGED, *notes, *command.notes),
        )
        for start in shown
        if start.tree is not None
        for command in _called(start.tree, names, env)
    ]  # fmt: skip
    if not found:
        return []
    before = "\n".join(text.split("\n")[: shown[0].line - 1])
    return [*in_shell(before, names, env), *found]


def broken(text: str, names: ArgumentNames) -> str:
    """Say what is wrong with a logged settings object that cannot be read, "" without one."""
    return next((start.wrong for start in starts(text, names) if start.wrong), "")


def _called(tree: ast.Module, names: ArgumentNames, env: Mapping[str, str]) -> list[Command]:
    reader = _Reader(names, dict(env))
    reader.visit(tree)
    return reader.found


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
