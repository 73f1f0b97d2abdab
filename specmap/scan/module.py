"""What one parsed file holds: its functions, classes, imports and stores."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from typing import NamedTuple

from specmap.codemap.source import Span, symbol_id
from specmap.scan.bodies import BodyFacts, FunctionNode, body_facts, set_attribute
from specmap.scan.nodes import nodes_in

_WORDS = re.compile(r"\w+")
# Syntax that has a place in the source.
Located = ast.expr | ast.stmt | ast.keyword


@dataclass(eq=False)
class FunctionInfo:
    """A function, method or lambda in one module."""

    module: Module
    node: FunctionNode
    qualname: str
    owner: ClassInfo | None = None

    @property
    def name(self) -> str:
        """The bare name; ``<lambda>`` for a lambda."""
        return self.qualname.rpartition(".")[2]

    @property
    def id(self) -> str:
        """The symbol id."""
        return symbol_id(self.module.file, self.qualname)

    @property
    def span(self) -> Span:
        """The lines from ``def`` to the end of the body."""
        return self.module.span(self.node)

    @cached_property
    def decorators(self) -> frozenset[str]:
        """The last dotted part of each decorator."""
        if isinstance(self.node, ast.Lambda):
            return frozenset()
        return frozenset(last_name(d) for d in self.node.decorator_list)

    @property
    def is_property(self) -> bool:
        """Whether reading the attribute calls this function."""
        return bool(self.decorators & {"property", "cached_property"})

    @property
    def is_static(self) -> bool:
        """Whether no ``self`` or ``cls`` is bound."""
        return "staticmethod" in self.decorators

    @property
    def is_context_manager(self) -> bool:
        """Whether it is a generator that ``with`` runs in two halves."""
        return "contextmanager" in self.decorators

    @property
    def is_classmethod(self) -> bool:
        """Whether the first parameter is the class."""
        return "classmethod" in self.decorators

    @property
    def body(self) -> list[ast.stmt]:
        """The statements; a lambda is one ``return``."""
        if isinstance(self.node, ast.Lambda):
            return [ast.copy_location(ast.Return(self.node.body), self.node.body)]
        return self.node.body

    @cached_property
    def parameters(self) -> list[ast.arg]:
        """Positional, then keyword-only parameters, ``self`` included."""
        args = self.node.args
        return [*args.posonlyargs, *args.args, *args.kwonlyargs]

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position of each parameter by name."""
        return {parameter.arg: index for index, parameter in enumerate(self.parameters)}

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier in the function's source."""
        first, last = self.node.lineno - 1, self.node.end_lineno or self.node.lineno
        text = b"\n".join(self.module.lines[first:last]).decode("utf-8", "replace")
        return frozenset(_WORDS.findall(text))

    @cached_property
    def facts(self) -> BodyFacts:
        """Stores, calls and walrus expressions of the whole body."""
        return body_facts(self.node)

    @cached_property
    def parent_call(self) -> ast.Call | None:
        """``super().same_name(...)`` or ``Base.same_name(self, ...)`` in this method."""
        for call in self.facts.calls:
            if not isinstance(call.func, ast.Attribute) or call.func.attr != self.name:
                continue
            receiver = call.func.value
            if isinstance(receiver, ast.Call) and getattr(receiver.func, "id", "") == "super":
                return call
            if passes_self(call):
                return call
        return None

    @cached_property
    def defaults(self) -> dict[str, ast.expr]:
        """Default value by parameter name."""
        args = self.node.args
        positional = [*args.posonlyargs, *args.args]
        tail = positional[len(positional) - len(args.defaults) :]
        found = {arg.arg: value for arg, value in zip(tail, args.defaults, strict=True)}
        pairs = zip(args.kwonlyargs, args.kw_defaults, strict=True)
        return found | {arg.arg: value for arg, value in pairs if value is not None}


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name or of the name that a call calls."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def passes_self(call: ast.Call) -> bool:
    """Whether a call is written ``Base.method(self, ...)``."""
    if not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
        return False
    first = call.args[0] if call.args else None
    return call.func.value.id != "self" and isinstance(first, ast.Name) and first.id == "self"


@dataclass(eq=False)
class ClassInfo:
    """A class in one module, with what its own body defines."""

    module: Module
    node: ast.ClassDef
    qualname: str
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    assigns: dict[str, ast.expr] = field(default_factory=dict)
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    fields: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The bare class name."""
        return self.node.name

    @property
    def id(self) -> str:
        """The symbol id."""
        return symbol_id(self.module.file, self.qualname)

    @property
    def span(self) -> Span:
        """The lines of the class statement."""
        return self.module.span(self.node)

    @cached_property
    def stores(self) -> dict[str, list[FunctionInfo]]:
        """Methods that store to ``self.<attribute>``, by attribute."""
        found: dict[str, list[FunctionInfo]] = defaultdict(list)
        for method in self.methods.values():
            for name in method.facts.stores:
                found[name].append(method)
        return found

    @cached_property
    def decorated_as_record(self) -> bool:
        """Whether the constructor is generated from the annotated fields."""
        names = {last_name(d) for d in self.node.decorator_list}
        bases = {last_name(b) for b in self.node.bases}
        return bool(names & {"dataclass", "define", "frozen"} or bases & {"Struct", "NamedTuple"})


class Patch(NamedTuple):
    """``X.a = value`` in a module's own code; ``always`` where no test or loop is around it."""

    target: ast.Attribute
    value: ast.expr
    always: bool


def _outside_functions(body: list[ast.stmt], always: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield the statements that run while a module is loaded, and whether they always do."""
    for statement in body:
        yield statement, always
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for part in ("body", "orelse", "handlers", "finalbody"):
            for inner in getattr(statement, part, ()):
                block = inner.body if isinstance(inner, ast.ExceptHandler) else [inner]
                yield from _outside_functions(block, False)


@dataclass(eq=False)
class Module:
    """One parsed file with its top-level names."""

    file: str
    name: str
    is_package: bool
    lines: list[bytes]
    tree: ast.Module
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    functions: dict[str, FunctionInfo] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    assigns: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    def span(self, node: ast.AST) -> Span:
        """Return the lines of a node."""
        line = getattr(node, "lineno", 1)
        return Span(self.file, line, getattr(node, "end_lineno", None) or line)

    def text(self, node: Located) -> str:
        """Return a node's source on one line, runs of white space made one space."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        start, end = node.col_offset, node.end_col_offset
        if first == last:
            raw = self.lines[first][start:end]
        else:
            middle = [_strip_comment(line) for line in self.lines[first + 1 : last]]
            head = _strip_comment(self.lines[first][start:])
            raw = b" ".join([head, *middle, self.lines[last][:end]])
        return " ".join(raw.decode("utf-8", "replace").split())

    @cached_property
    def _tests(self) -> dict[int, ast.stmt]:
        found: dict[int, ast.stmt] = {}
        for node in nodes_in(self.tree):
            if isinstance(node, ast.If | ast.While):
                found[id(node.test)] = node
        return found

    def statement_of(self, test: ast.expr) -> ast.stmt | None:
        """Return the ``if`` or ``while`` whose test this is."""
        return self._tests.get(id(test))

    def all_functions(self) -> list[FunctionInfo]:
        """Return module functions and methods of all classes."""
        methods = [m for c in self.classes.values() for m in c.methods.values()]
        return [*self.functions.values(), *methods]

    @cached_property
    def outside_stores(self) -> dict[str, list[FunctionInfo]]:
        """Functions that store to an attribute of something else than ``self``."""
        found: dict[str, list[FunctionInfo]] = defaultdict(list)
        for function in self.all_functions():
            for name in sorted(function.facts.outside):
                found[name].append(function)
        return found

    @cached_property
    def patches(self) -> dict[str, list[Patch]]:
        """Attributes that the module itself stores to while it is loaded."""
        found: dict[str, list[Patch]] = defaultdict(list)
        for statement, always in _outside_functions(self.tree.body, True):
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Attribute):
                        found[target.attr].append(Patch(target, statement.value, always))
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                if (name := set_attribute(statement.value)) is not None:
                    receiver, _, value = statement.value.args
                    target = ast.copy_location(ast.Attribute(receiver, name), receiver)
                    found[name].append(Patch(target, value, always))
        return found

    def runs(self, function: FunctionInfo) -> bool:
        """Return whether the module always calls one of its functions while it is loaded."""
        return any(
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and getattr(node.value.func, "id", "") == function.qualname
            for node in self.tree.body
        )

    @cached_property
    def calls(self) -> dict[str, list[tuple[ast.Call, FunctionInfo]]]:
        """Calls by the last part of the called name, with their enclosing function."""
        found: dict[str, list[tuple[ast.Call, FunctionInfo]]] = defaultdict(list)
        for function in self.all_functions():
            for node in function.facts.calls:
                found[last_name(node.func)].append((node, function))
        return found


def _strip_comment(line: bytes) -> bytes:
    if b"#" not in line:
        return line
    try:
        for token in tokenize.tokenize(BytesIO(line.strip()).readline):
            if token.type == tokenize.COMMENT:
                return line.strip()[: token.start[1]]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        head, _, _ = line.partition(b" #")
        return b"" if line.strip().startswith(b"#") else head
    return line
