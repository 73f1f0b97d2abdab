"""What graph runners do to their attributes, at capture, inside the region and at replay."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from specmap.codemap.hazards import BufferUse, Role, UseKind
from specmap.scan.module import ClassInfo, FunctionInfo, Module, last_name
from specmap.scan.nodes import arguments_of, nodes_in
from specmap.scan.resolver import Resolver

_FACTORIES = frozenset(
    {"zeros", "ones", "empty", "full", "tensor", "arange"}
    | {"zeros_like", "ones_like", "empty_like", "full_like"}
)
_FILLS = frozenset({"copy_", "fill_", "zero_"})
_INVERSE = {"add_": "sub_", "sub_": "add_", "mul_": "div_", "div_": "mul_"}
_GROW = frozenset({"append", "extend", "add", "update", "pop", "clear", "insert"})


class BufferUses:
    """Reads the classes of the tree that capture graphs and say whether they can replay."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._words = resolver.vocabulary

    def find(self) -> tuple[BufferUse, ...]:
        """Return the uses of every runner, own and inherited methods together."""
        found: dict[BufferUse, None] = {}
        for cls in self._runners():
            uses = list(self._of_runner(cls))
            found.update(dict.fromkeys(_settled(uses)))
        return tuple(sorted(found, key=lambda u: (u.span, u.runner, u.target, u.kind, u.text)))

    def _runners(self) -> Iterator[ClassInfo]:
        tree, words = self._resolver.tree, self._words
        for folder in words.scope:
            under = (f"{folder}/",)
            graphs = set(tree.files_holding(["raph"], under))
            for file in tree.files_holding(sorted(words.capture_methods), under):
                module = tree.module_at(file) if file in graphs else None
                for cls in module.classes.values() if module else ():
                    if self._method(cls, words.decisions) and self._method(
                        cls, words.capture_methods
                    ):
                        yield cls

    def _method(self, cls: ClassInfo, names: Iterable[str]) -> FunctionInfo | None:
        found = (self._resolver.types.method(cls, name) for name in sorted(names))
        return next((method for method in found if method is not None), None)

    def _of_runner(self, cls: ClassInfo) -> Iterator[BufferUse]:
        methods: dict[str, FunctionInfo] = {}
        for base in self._resolver.types.mro(cls):
            for name, method in base.methods.items():
                methods.setdefault(name, method)
        capture = _closure(methods, self._words.capture_methods)
        replay = _closure(methods, self._words.hazards["replay_methods"]) - capture
        for name, method in methods.items():
            role = Role.INIT
            if name in capture:
                role = Role.CAPTURE
            elif name in replay:
                role = Role.REPLAY
            yield from _uses(method, cls, role)
            for call in _called_in_region(method) if role is Role.CAPTURE else ():
                for function in self._workers_methods(call, cls):
                    yield from _Body(function, function.node, cls, Role.REGION).outside()

    def _workers_methods(self, name: str, runner: ClassInfo) -> Iterator[FunctionInfo]:
        """Methods of that name beside which the runner is built: what a region's call can be."""
        for module in self._resolver.tree.modules_under(self._words.speculative):
            if module is runner.module or not _names(module, runner.name):
                continue
            for cls in module.classes.values():
                if name in cls.methods:
                    yield cls.methods[name]


def _names(module: Module, name: str) -> bool:
    """Whether a module's code names something, in a comment it does not count."""
    word = name.encode()
    if not any(word in line for line in module.lines):
        return False
    return any(
        last_name(n) == name
        if isinstance(n, ast.Name | ast.Attribute)
        else isinstance(n, ast.alias) and n.name.rpartition(".")[2] == name
        for n in nodes_in(module.tree)
    )


def _closure(methods: dict[str, FunctionInfo], names: Iterable[str]) -> set[str]:
    """Names of methods, and of those that they call on ``self``."""
    found: set[str] = set()
    waiting = [name for name in names if name in methods]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for call in methods[name].facts.calls:
            if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
                if call.func.value.id == "self" and call.func.attr in methods:
                    waiting.append(call.func.attr)
    return found


def _regions(method: FunctionInfo) -> list[ast.FunctionDef]:
    """What is captured: nested functions handed on, or called under ``with graph(...)``."""
    nodes = nodes_in(method.node)
    handed: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            given = arguments_of(node)
            handed |= {g.id for g in given if isinstance(g, ast.Name)}
        elif isinstance(node, ast.With) and any("graph(" in ast.unparse(i) for i in node.items):
            inner = [n for s in node.body for n in nodes_in(s) if isinstance(n, ast.Call)]
            handed |= {last_name(call.func) for call in inner}
    nested = [n for n in nodes if isinstance(n, ast.FunctionDef) and n is not method.node]
    return [function for function in nested if function.name in handed]


def _called_in_region(method: FunctionInfo) -> set[str]:
    """Methods of other objects of the runner that a region calls: ``self.worker.draft()``."""
    found: set[str] = set()
    for region in _regions(method):
        for node in nodes_in(region):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                holder = node.func.value
                if isinstance(holder, ast.Attribute) and _root(holder) == "self":
                    found.add(node.func.attr)
    return found


def _uses(method: FunctionInfo, cls: ClassInfo, role: Role) -> Iterator[BufferUse]:
    nested = _regions(method)
    inside = {id(n) for f in nested for n in nodes_in(f)} if role is Role.CAPTURE else set()
    yield from _Body(method, method.node, cls, role, frozenset(inside)).uses()
    if role is Role.CAPTURE:
        for function in nested:
            yield from _Body(method, function, cls, Role.REGION).uses()


class _Body:
    """The uses of one function body; nodes in ``skip`` belong to another."""

    def __init__(
        self,
        function: FunctionInfo,
        node: ast.AST,
        cls: ClassInfo,
        role: Role,
        skip: frozenset[int] = frozenset(),
    ) -> None:
        self._function = function
        self._cls = cls
        self._role = role
        self._nodes = [n for n in nodes_in(node) if id(n) not in skip]
        self._env = _bindings(function)
        self._elements = _elements(function)
        called = {id(n.func) for n in self._nodes if isinstance(n, ast.Call)}
        self._called = called

    def uses(self) -> Iterator[BufferUse]:
        """Yield what the body does to attributes."""
        for node in self._nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from self._stored(target, node.value, node)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                yield from self._stored(node.target, node.value, node)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
                yield self._use(UseKind.UPDATE, node.target, node, "+=")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield from self._call(node, node.func)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                reads = self._role in (Role.CAPTURE, Role.REGION)
                if reads and id(node) not in self._called and self._spelt(node).startswith("self."):
                    yield self._use(UseKind.READ, node, node, "")

    def outside(self) -> Iterator[BufferUse]:
        """Yield what a method of another object does to what it was handed."""
        wanted = (UseKind.UPDATE, UseKind.COLLECT)
        yield from (u for u in self.uses() if u.kind in wanted and not u.target.startswith("self."))

    def _stored(
        self, target: ast.expr, value: ast.expr, statement: ast.Assign | ast.AnnAssign
    ) -> Iterator[BufferUse]:
        if isinstance(target, ast.Tuple):
            for item in target.elts:
                yield from self._stored(item, value, statement)
        elif isinstance(target, ast.Attribute):
            made = isinstance(value, ast.Call) and last_name(value.func) in _FACTORIES
            kind = UseKind.MAKE if made else UseKind.REBIND
            yield self._use(kind, target, statement, self._text(value))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Attribute):
            sliced = isinstance(target.slice, ast.Slice | ast.Tuple)
            kind = UseKind.FILL if sliced else UseKind.COLLECT
            yield self._use(kind, target.value, statement, self._text(value))

    def _call(self, node: ast.Call, func: ast.Attribute) -> Iterator[BufferUse]:
        base = func.value.value if isinstance(func.value, ast.Subscript) else func.value
        if not isinstance(base, ast.Attribute):
            return
        value = self._filled(node.args[0]) if node.args else ""
        if func.attr in _FILLS:
            yield self._use(UseKind.FILL, base, node, value)
        elif func.attr in _INVERSE:
            yield self._use(UseKind.UPDATE, base, node, func.attr)
        elif func.attr in _GROW and self._role is Role.REGION and _root(base) == "self":
            yield self._use(UseKind.COLLECT, base, node, func.attr)

    def _filled(self, node: ast.expr) -> str:
        """What each element is set to: ``x`` of ``fill_(x)`` and ``copy_(tensor([x] * n))``."""
        if isinstance(node, ast.Name) and isinstance(self._env.get(node.id), ast.Call):
            node = self._env[node.id]
        if isinstance(node, ast.Call) and last_name(node.func) == "tensor" and node.args:
            node = node.args[0]
            if isinstance(node, ast.Name):
                node = self._elements.get(node.id, node)
            node = node.left if isinstance(node, ast.BinOp) else node
            if isinstance(node, ast.List) and node.elts:
                node = node.elts[0]
        return self._text(node)

    def _text(self, node: ast.expr) -> str:
        """An expression with its local names spelt out, one level deep."""
        if isinstance(node, ast.Name):
            bound = self._env.get(node.id)
            node = bound if isinstance(bound, ast.BinOp | ast.Name | ast.IfExp) else node
        return ast.unparse(node)

    def _spelt(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self._spelt(node.value)}.{node.attr}"
        if isinstance(node, ast.Name) and isinstance(self._env.get(node.id), ast.Attribute):
            return ast.unparse(self._env[node.id])
        return ast.unparse(node)

    def _use(
        self, kind: UseKind, target: ast.Attribute, at: ast.expr | ast.stmt, value: str
    ) -> BufferUse:
        module = self._function.module
        return BufferUse(
            module.span(at),
            self._function.id,
            self._cls.id,
            self._role,
            kind,
            self._spelt(target),
            module.text(at),
            value,
        )


def _bindings(function: FunctionInfo) -> dict[str, ast.expr]:
    """Local names that are bound once, by a plain assignment."""
    found: dict[str, ast.expr] = {}
    again: set[str] = set()
    for statement in function.facts.assigns:
        for target in statement.targets:
            if isinstance(target, ast.Name):
                # Tensors of the same numbers for different groups of ranks are one here.
                if target.id in found and last_name(statement.value) != "tensor":
                    again.add(target.id)
                found.setdefault(target.id, statement.value)
    return {name: value for name, value in found.items() if name not in again}


def _elements(function: FunctionInfo) -> dict[str, ast.expr]:
    """What the lists of a local name hold, where all hold the same: ``[x] * n`` and ``[x]``."""
    bound: dict[str, list[ast.expr]] = {}
    for statement in function.facts.assigns:
        for target in statement.targets:
            none = isinstance(statement.value, ast.Constant) and statement.value.value is None
            if isinstance(target, ast.Name) and not none:
                value = statement.value
                value = value.left if isinstance(value, ast.BinOp) else value
                bound.setdefault(target.id, []).append(value)
    found = {}
    for name, values in bound.items():
        lists = [v for v in values if isinstance(v, ast.List) and len(v.elts) == 1]
        if len(lists) == len(values) and len({ast.unparse(v) for v in lists}) == 1:
            found[name] = lists[0].elts[0]
    return found


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _settled(uses: list[BufferUse]) -> Iterator[BufferUse]:
    """Keep what matters: reads of what the replay stores anew, and updates with their undoing."""
    anew = (UseKind.REBIND, UseKind.MAKE)
    stored = {u.target for u in uses if u.role is Role.REPLAY and u.kind in anew}
    made = {u.target for u in uses if u.kind is UseKind.MAKE}
    region = [u for u in uses if u.role is Role.REGION and u.kind is UseKind.UPDATE]
    done = {(u.target.rpartition(".")[2], u.value) for u in region}
    for use in uses:
        if use.kind is UseKind.READ and use.target not in stored:
            continue
        if use.kind is UseKind.UPDATE:
            name = use.target.rpartition(".")[2]
            counts = use.value == "+=" and use.target.startswith("self.") and use.target not in made
            undone = (name, _INVERSE.get(use.value, "")) in done
            kind = UseKind.COLLECT if counts else UseKind.UPDATE
            yield replace(use, kind=kind, restored=undone)
        else:
            yield use
