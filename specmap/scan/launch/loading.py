"""Binding names: imports, module bodies, functions and classes.

A name is bound when it is first read, so that only modules are parsed that the derivation
reaches.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence

from specmap.scan.launch.comparing import truth_of
from specmap.scan.launch.library import Library
from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import (
    Class,
    External,
    Function,
    Lazy,
    Member,
    Module,
    Raised,
    Scope,
    Unknown,
)

TRANSPARENT = frozenset(
    {
        "lru_cache", "cache", "wraps", "abstractmethod", "override", "final", "overload",
        "deprecated", "runtime_checkable", "unique", "total_ordering", "torch_compile",
    }
)  # fmt: skip
KINDS = {
    "staticmethod": "static",
    "classmethod": "class",
    "property": "property",
    "cached_property": "property",
    "contextmanager": "context",
}
PLAIN_BASES = frozenset(
    {"object", "ABC", "Generic", "Protocol", "Struct", "NamedTuple", "TypedDict", "str", "int"}
)


class Loader:
    """Loads modules of one library into one machine."""

    def __init__(
        self,
        machine: Machine,
        library: Library,
        registries: tuple[str, ...],
        plugins: frozenset[str],
    ) -> None:
        self.machine = machine
        self.library = library
        self.registries = registries
        self.plugins = plugins
        self.modules: dict[str, Module] = {}
        machine.load = self.load
        machine.member = self.member
        machine.import_names = self.import_names
        machine.build_class = self.build_class
        machine.define = self.define

    # Modules

    def load(self, name: str) -> Module | None:
        """Return a module with its names bound, or None if the tree has no such module."""
        if name in self.modules:
            return self.modules[name]
        file, tree = self.library.file_of(name), self.library.tree(name)
        if file is None or tree is None:
            return None
        module = Module(name, file)
        self.modules[name] = module
        module.slots["__name__"] = name
        with self.machine.apart(module):
            self._bind_body(tree.body, module, _bound_twice(tree.body))
        return module

    def member(self, module: Module, name: str) -> object:
        """Return what a module calls ``name``."""
        if name in module.slots:
            return self.machine.read(module, name)
        for star in module.stars:
            other = self.load(star)
            if other is not None and other is not module and self.defines(other, name):
                return self.member(other, name)
        child = self.load(f"{module.name}.{name}")
        if child is not None:
            return child
        return self.machine.unknown(f"{module.name}.{name}")

    def defines(self, module: Module, name: str) -> bool:
        """Whether a module binds a name, or a module that it imports everything from does."""
        if name in module.slots:
            return True
        others = [self.load(star) for star in module.stars]
        return any(o is not None and o is not module and self.defines(o, name) for o in others)

    def import_names(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        """Bind the names of an import statement."""
        store = self.machine.heap.store
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                store(scope, alias.asname or name, Lazy(self._module_of(name)))
                if alias.name.startswith(self.registries):
                    self.load(alias.name)
            return
        base = self._base(node)
        if self.library.file_of(base) is None and self.machine.tries:
            self.machine.hazards += 1
        for alias in node.names:
            if alias.name == "*":
                if isinstance(scope, Module):
                    scope.stars.append(base)
                continue
            store(scope, alias.asname or alias.name, Lazy(self._name_of(base, alias.name)))
            if base.startswith(self.registries):
                self.load(f"{base}.{alias.name}")

    def _base(self, node: ast.ImportFrom) -> str:
        base = node.module or ""
        current = self.machine.module
        if not node.level or current is None:
            return base
        parts = current.name.split(".")
        if current.file.endswith("/__init__.py"):
            parts.append("")
        return ".".join([*parts[: -node.level], *([base] if base else [])])

    def _module_of(self, name: str) -> Callable[[], object]:
        return lambda: self.load(name) or External(name)

    def _name_of(self, base: str, name: str) -> Callable[[], object]:
        def bind() -> object:
            if name in self.plugins:
                return External(name)
            module = self.load(base)
            if module is not None:
                return self.member(module, name)
            if base.partition(".")[0] == self.library.package:
                return self.machine.unknown(f"{base}.{name}")
            return External(f"{base}.{name}")

        return bind

    def _bind_body(self, body: Sequence[ast.stmt], module: Module, twice: frozenset[str]) -> bool:
        for node in body:
            self.machine.line = node
            try:
                self._bind(node, module, twice)
            except Raised:
                self._blank(node, module)
        return True

    def _blank(self, node: ast.stmt, module: Module) -> None:
        for name in _targets(node):
            self.machine.heap.store(module, name, Unknown((f"{module.name}.{name}",)))

    def _bind(self, node: ast.stmt, module: Module, twice: frozenset[str]) -> None:
        machine = self.machine
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.import_names(node, module)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            bind = self._apart(module, lambda: self.define(node, module, None))
            eager = not node.decorator_list or module.name.startswith(self.registries)
            machine.heap.store(module, node.name, bind() if eager else Lazy(bind))
        elif isinstance(node, ast.ClassDef):
            bind = self._apart(module, lambda: self.build_class(node, module))
            near = all(isinstance(module.slots.get(_last_name(b)), Class) for b in node.bases)
            eager = near and module.name.startswith(self.registries)
            machine.heap.store(module, node.name, bind() if eager else Lazy(bind))
        elif isinstance(node, ast.Expr):
            if module.name.startswith(self.registries):
                machine.execute([node], module)
        elif isinstance(node, ast.If):
            self._bind_if(node, module, twice)
        elif isinstance(node, ast.Try):
            arms = [node.body, *(handler.body for handler in node.handlers[:1])]
            if not any(isinstance(n, ast.Import | ast.ImportFrom) for n in node.body):
                arms = arms[:1]
            why = ("which packages are installed",)
            machine.branch(
                why,
                [lambda arm=arm: self._bind_body(arm, module, twice) for arm in arms],  # type: ignore[misc]
            )
        elif (names := _simple(node)) and not twice.intersection(names):
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            assert value is not None
            bind = self._apart(module, lambda: machine.evaluate(value, module))
            for name in names:
                machine.heap.store(module, name, Lazy(bind))
        elif not (isinstance(node, ast.Assign) and self._rebuilds(node, module)):
            machine.execute([node], module)

    def _rebuilds(self, node: ast.Assign, module: Module) -> bool:
        """Whether a class is made anew under its own name; it stays what the source shows."""
        names = _targets(node)
        return any(
            isinstance(module.slots.get(name), Lazy | Class)
            and any(
                isinstance(n, ast.ClassDef) and n.name == name
                for n in (self.library.tree(module.name) or ast.Module([], [])).body
            )
            for name in names
        )

    def _apart(self, module: Module, call: Callable[[], object]) -> Callable[[], object]:
        def bind() -> object:
            with self.machine.apart(module):
                try:
                    return call()
                except Raised as raised:
                    return Unknown((f"{module.name}: {raised.message}",))

        return bind

    def _bind_if(self, node: ast.If, module: Module, twice: frozenset[str]) -> None:
        test = truth_of(self.machine, self.machine.evaluate(node.test, module))
        if isinstance(test, Unknown):
            arms = [node.body, node.orelse]
            self.machine.branch(
                test.reasons,
                [lambda arm=arm: self._bind_body(arm, module, twice) for arm in arms],  # type: ignore[misc]
            )
        else:
            self._bind_body(node.body if test else node.orelse, module, twice)

    # Functions and classes

    def define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, owner: Class | None
    ) -> object:
        """Return the function of a ``def``, its decorators applied."""
        module = self.machine.module
        assert module is not None
        kind, rest = "plain", []
        if self.machine.is_replaced(node.name):
            return Function(node.name, node, module, scope, "plain", owner)
        for decorator in node.decorator_list:
            name = _last_name(decorator)
            if name in KINDS:
                kind = KINDS[name]
            elif name not in TRANSPARENT:
                rest.append(decorator)
        value: object = Function(node.name, node, module, scope, kind, owner)
        for decorator in reversed(rest):
            wrap = self.machine.evaluate(decorator, scope)
            if isinstance(wrap, External | Unknown):
                return Unknown((f"{node.name}, which {_last_name(decorator)} wraps",))
            value = self.machine.invoke(wrap, [value], {})
        return value

    def build_class(self, node: ast.ClassDef, scope: Scope) -> object:
        """Return the class of a ``class`` statement."""
        machine = self.machine
        assert machine.module is not None
        cls = Class(node.name, node, machine.module)
        for base in node.bases:
            target = base.value if isinstance(base, ast.Subscript) else base
            value = machine.evaluate(target, scope)
            if isinstance(value, Class):
                cls.bases.append(value)
                cls.marks |= value.marks
            else:
                cls.external.append(_last_name(target))
        self._mark(cls, node, scope)
        inner = Scope(scope)
        inner.slots = cls.slots
        if "enum" in cls.marks:
            self._members(cls, inner)
        for item in node.body:
            self._bind_in_class(item, cls, inner)
        for decorator in node.decorator_list:
            wrap = machine.evaluate(decorator, scope)
            if isinstance(wrap, Function):
                return machine.invoke(wrap, [cls], {})
        return cls

    def _mark(self, cls: Class, node: ast.ClassDef, scope: Scope) -> None:
        if any(name.endswith(("Enum", "Flag")) for name in cls.external):
            cls.marks.add("enum")
        if any(name in ("Struct", "NamedTuple") for name in cls.external):
            cls.marks.add("fields")
        for decorator in node.decorator_list:
            if _last_name(decorator) == "dataclass":
                cls.marks.add("fields")
        if any(n not in PLAIN_BASES and not n.endswith(("Enum", "Flag")) for n in cls.external):
            cls.marks.add("open")

    def _members(self, cls: Class, scope: Scope) -> None:
        number = 0
        for item in cls.node.body:
            if not (isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)):
                continue
            name = item.targets[0].id
            if isinstance(item.value, ast.Call) and _last_name(item.value) == "auto":
                number += 1
                value: object = number
            else:
                value = self.machine.evaluate(item.value, scope)
                number = value if isinstance(value, int) else number
            cls.fields.append(name)
            cls.slots[name] = Member(cls, name, value)

    def _bind_in_class(self, item: ast.stmt, cls: Class, scope: Scope) -> None:
        store = self.machine.heap.store
        module = cls.module
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(_last_name(d) in ("setter", "deleter") for d in item.decorator_list):
                return
            bind = self._apart(module, lambda: self.define(item, scope, cls))
            known = all(_last_name(d) in (*TRANSPARENT, *KINDS) for d in item.decorator_list)
            store(cls, item.name, bind() if known else Lazy(bind))
        elif isinstance(item, ast.ClassDef):
            store(cls, item.name, Lazy(self._apart(module, lambda: self.build_class(item, scope))))
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            if _last_name(item.annotation) != "ClassVar":
                cls.fields.append(item.target.id)
            if item.value is not None:
                self._class_value(cls, item.target.id, item.value, scope)
        elif isinstance(item, ast.Assign) and all(isinstance(t, ast.Name) for t in item.targets):
            for name in _targets(item):
                if not isinstance(cls.slots.get(name), Member):
                    self._class_value(cls, name, item.value, scope)
        elif not isinstance(item, ast.Expr | ast.Pass):
            self.machine.execute([item], scope)

    def _class_value(self, cls: Class, name: str, node: ast.expr, scope: Scope) -> None:
        def evaluate() -> object:
            value = self.machine.evaluate(node, scope)
            owner = getattr(value, "cls", None)
            if isinstance(owner, Class) and not isinstance(value, Member):
                hook = next((c for c in owner.mro() if "__set_name__" in c.slots), None)
                if hook is not None:
                    function = self.machine.read(hook, "__set_name__")
                    self.machine.invoke(function, [value, cls, name], {})
            return value

        bind = self._apart(cls.module, evaluate)
        self.machine.heap.store(
            cls, name, bind() if self._has_hook(node, cls.module) else Lazy(bind)
        )

    @staticmethod
    def _has_hook(node: ast.expr, module: Module) -> bool:
        """Whether a class-level value is an object that is told its name."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            return False
        made = module.slots.get(node.func.id)
        return isinstance(made, Class) and any("__set_name__" in c.slots for c in made.mro())


def _bound_twice(body: Sequence[ast.stmt]) -> frozenset[str]:
    counts = Counter(name for node in body for name in _all_targets(node))
    return frozenset(name for name, count in counts.items() if count > 1)


def _all_targets(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return [node.target.id, node.target.id]
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    return _targets(node)


def _targets(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _simple(node: ast.stmt) -> list[str]:
    """Return the names of a plain assignment; nothing for any other statement."""
    if isinstance(node, ast.AnnAssign):
        return _targets(node) if node.value is not None else []
    if isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets):
        return _targets(node)
    return []


def _last_name(node: ast.expr) -> str:
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
