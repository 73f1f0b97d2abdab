"""What a name or an annotation means: classes, their linearised bases, module tables."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from specmap.codemap.condition import AtomKind
from specmap.scan.index import Tree
from specmap.scan.module import ClassInfo, FunctionInfo, Module, last_name
from specmap.scan.values import (
    NONE,
    Arm,
    Arms,
    ClassRef,
    Const,
    EnumMember,
    External,
    Frame,
    FunctionRef,
    Instance,
    ModuleRef,
    Opaque,
    Scope,
    Sequence,
    Table,
    only,
    optional,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

_SEQUENCES = {
    "List",
    "list",
    "Sequence",
    "Iterable",
    "Iterator",
    "Generator",
    "deque",
    "set",
    "Set",
}
_MAPPINGS = {"Dict", "dict", "Mapping", "defaultdict", "OrderedDict"}
_EMPTY = (NONE, Table(()), Sequence(()), Sequence((), grows=True))
_WRAPPERS = {"Optional", "Annotated", "Final", "ClassVar"}


class Types:
    """Classes and module names of one tree."""

    def __init__(self, tree: Tree, resolver: Resolver) -> None:
        self.tree = tree
        self._resolver = resolver
        self._mro: dict[ClassInfo, list[ClassInfo]] = {}
        self._names: dict[tuple[str, str], Arms] = {}
        self._annotations: dict[ast.expr, Arms] = {}
        self._plain: dict[ClassInfo, bool] = {}
        self._abstract: dict[ClassInfo, bool] = {}
        self._methods: dict[tuple[ClassInfo, str, ClassInfo | None], FunctionInfo | None] = {}
        self._concrete: dict[ClassInfo, list[ClassInfo]] = {}

    def module_name(self, module: Module, name: str) -> Arms:
        """Return what a name means at the top level of a module (builtins last)."""
        key = (module.name, name)
        if key not in self._names:
            self._names[key] = ()
            self._names[key] = self._look_up(module, name)
        return self._names[key]

    def _look_up(self, module: Module, name: str) -> Arms:
        groups: list[Arms] = []
        if name in module.classes:
            groups.append(only(ClassRef(module.classes[name])))
        if name in module.functions:
            groups.append(only(FunctionRef(module.functions[name])))
        if name in module.imports:
            groups.append(self.imported(*module.imports[name]))
        for value in module.assigns.get(name, ()):
            scope = Scope(Frame(None, module))
            found = self._resolver.evaluate(value, scope)
            if name in module.annotations and all(arm.value in _EMPTY for arm in found):
                found = self.annotation(module.annotations[name], scope) or found
            groups.append(found)
        if groups:
            return self._assigned(name, groups)
        for star in module.stars:
            other = self.tree.module(star)
            if other is not None and (found := self.module_name(other, name)):
                return found
        if hasattr(builtins, name):
            return only(External(f"builtins.{name}"))
        return ()

    def _assigned(self, name: str, groups: list[Arms]) -> Arms:
        """What several statements bind a name to: nobody knows which of them ran last."""
        known = [g for g in groups if any(arm.value != NONE for arm in g)]
        found = unite(*(known or groups))
        plain = [arm for arm in found if isinstance(arm.value, Const | EnumMember)]
        if len(groups) > 1 and len(plain) > 1:
            return only(Opaque(name))
        return optional(found) if known and len(known) < len(groups) else found

    def imported(self, module: str, name: str | None) -> Arms:
        """Return what an import binds; what lies outside is a name only, never parsed."""
        if name in self._resolver.vocabulary.plugins:
            return only(Opaque(name, AtomKind.LAUNCH, None, True, "out-of-tree platform class"))
        if self._resolver.is_outside(module):
            return only(External(module if name is None else f"{module}.{name}"))
        target = self.tree.module(module if name is None else f"{module}.{name}")
        if target is not None:
            return only(ModuleRef(target))
        parent = self.tree.module(module)
        if name is None or parent is None:
            if module.partition(".")[0] == self.tree.package and name is not None:
                text = f"{module}.{name}"
                return only(Opaque(name, reason=f"{text} is not in the tree"))
            return only(External(module if name is None else f"{module}.{name}"))
        return self.module_name(parent, name) or self._lazy(parent, name)

    def _lazy(self, package: Module, name: str) -> Arms:
        """A package that hands out names through its own ``__getattr__`` table."""
        for values in package.assigns.values():
            for value in values:
                if not isinstance(value, ast.Dict):
                    continue
                for key, target in zip(value.keys, value.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == name:
                        text = next(
                            (n.value for n in ast.walk(target) if isinstance(n, ast.Constant)), ""
                        )
                        module = str(text)
                        if module.startswith("."):
                            module = package.name + module
                        if self.tree.module(module) is not None:
                            return self.imported(module, name)
        return only(Opaque(name, reason=f"{package.name} does not define {name}"))

    def bases(self, cls: ClassInfo) -> list[ClassInfo]:
        """Return the direct bases that are classes of the tree."""
        found = []
        for base in cls.node.bases:
            node = base.value if isinstance(base, ast.Subscript) else base
            for arm in self._resolver.evaluate(node, Scope(Frame(None, cls.module))):
                if isinstance(arm.value, ClassRef) and arm.value.cls is not cls:
                    found.append(arm.value.cls)
                    break
        return found

    def mro(self, cls: ClassInfo) -> list[ClassInfo]:
        """Return the linearised bases inside the tree, the class first."""
        if cls not in self._mro:
            self._mro[cls] = [cls]
            bases = self.bases(cls)
            self._mro[cls] = [cls, *_merge([self.mro(b) for b in bases] + [bases])]
        return self._mro[cls]

    def method(
        self, cls: ClassInfo, name: str, after: ClassInfo | None = None
    ) -> FunctionInfo | None:
        """Return the method that ``name`` means on a class (after ``after``, as super())."""
        key = (cls, name, after)
        if key not in self._methods:
            line = self.mro(cls)
            if after is not None and after in line:
                line = line[line.index(after) + 1 :]
            self._methods[key] = self._patched(line, name)
        return self._methods[key]

    def _patched(self, line: list[ClassInfo], name: str) -> FunctionInfo | None:
        """Return a method as the modules leave it: ``Class.name = function`` replaces it.

        ``None`` also where nobody can tell whether it does, or with what.
        """
        patches = self._resolver.patches(name)
        for cls in line:
            for scope, patch in patches:
                receiver = self._resolver.evaluate(patch.target.value, scope)
                if ClassRef(cls) in {arm.value for arm in receiver}:
                    found = [arm.value for arm in self._resolver.evaluate(patch.value, scope)]
                    one = found[0] if len(found) == 1 and patch.always else None
                    return one.function if isinstance(one, FunctionRef) else None
                if name in cls.methods and all(isinstance(a.value, Opaque) for a in receiver):
                    return None
            if name in cls.methods:
                return cls.methods[name]
        return None

    def is_enum(self, cls: ClassInfo) -> bool:
        """Whether a base of the class is one of the standard library's enums."""
        return any(
            "Enum" in last_name(base) or last_name(base) == "Flag"
            for c in self.mro(cls)
            for base in c.node.bases
        )

    def is_abstract(self, cls: ClassInfo) -> bool:
        """Whether a class leaves an abstract method open or names ABC/Protocol as a base."""
        if cls not in self._abstract:
            self._abstract[cls] = self._leaves_open(cls)
        return self._abstract[cls]

    def _leaves_open(self, cls: ClassInfo) -> bool:
        if any(last_name(b) in ("ABC", "Protocol") for b in cls.node.bases):
            return True
        seen: set[str] = set()
        for c in self.mro(cls):
            for name, method in c.methods.items():
                if name not in seen and method.decorators & {"abstractmethod", "abstractproperty"}:
                    return True
                seen.add(name)
        return False

    def is_plain(self, cls: ClassInfo) -> bool:
        """Whether a class only holds data: an enum, or a record without objects in it."""
        if cls not in self._plain:
            self._plain[cls] = False
            self._plain[cls] = self.is_enum(cls) or (
                cls.decorated_as_record and all(map(self._holds_data, self._field_types(cls)))
            )
        return self._plain[cls]

    def _field_types(self, cls: ClassInfo) -> list[Arm]:
        scope = Scope(Frame(None, cls.module))
        return [
            arm
            for annotation in cls.annotations.values()
            for arm in self.annotation(annotation, scope)
        ]

    def _holds_data(self, arm: Arm) -> bool:
        value = arm.value
        if isinstance(value, Instance):
            return self.is_plain(value.cls) or value.cls.decorated_as_record
        return not isinstance(value, ClassRef)

    def concrete(self, cls: ClassInfo) -> list[ClassInfo]:
        """Return the classes that an object declared as ``cls`` can have."""
        if not self.is_abstract(cls):
            return [cls]
        if cls not in self._concrete:
            self._concrete[cls] = []
            found: dict[ClassInfo, None] = {}
            for child in self._children(cls):
                if cls in self.mro(child):
                    found.update(dict.fromkeys(self.concrete(child)))
                    if not self.is_abstract(child):
                        found.update(dict.fromkeys(self.below(child)))
            self._concrete[cls] = list(found)
        return self._concrete[cls] or [cls]

    def _children(self, cls: ClassInfo) -> list[ClassInfo]:
        return self.tree.subclasses(cls.name, self._resolver.is_outside)

    def below(self, cls: ClassInfo) -> list[ClassInfo]:
        """Return the subclasses inside the tree, at any depth."""
        found: dict[ClassInfo, None] = {}
        for child in self._children(cls):
            if child is not cls and cls in self.mro(child):
                found[child] = None
                found.update(dict.fromkeys(self.below(child)))
        return list(found)

    def annotation(self, node: ast.expr | None, scope: Scope) -> Arms:
        """Return the values that an annotation promises; ``()`` when it says nothing."""
        if node is None:
            return ()
        if scope.frame.function is not None:
            return self._annotation(node, scope)
        if node not in self._annotations:
            self._annotations[node] = ()
            self._annotations[node] = self._annotation(node, scope)
        return self._annotations[node]

    def _annotation(self, node: ast.expr, scope: Scope) -> Arms:
        if isinstance(node, ast.Constant):
            return self._constant_annotation(node, scope)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._union([node.left, node.right], scope)
        if isinstance(node, ast.Subscript):
            return self._generic(node, scope)
        found: list[Arm] = []
        for arm in self._resolver.evaluate(node, scope):
            found += self.instance_of(arm)
        return unite(tuple(found))

    def _union(self, parts: list[ast.expr], scope: Scope) -> Arms:
        found = unite(*(self.annotation(part, scope) for part in parts))
        return optional(found) if any(arm.value == NONE for arm in found) else found

    def _constant_annotation(self, node: ast.Constant, scope: Scope) -> Arms:
        if node.value is None:
            return only(NONE)
        if not isinstance(node.value, str):
            return ()
        try:
            inner = ast.parse(node.value.strip(), mode="eval").body
        except SyntaxError:
            return ()
        for part in ast.walk(inner):
            ast.copy_location(part, node)
        return self.annotation(inner, scope)

    def instance_of(self, arm: Arm) -> list[Arm]:
        """Return the objects that a class-valued arm stands for in an annotation."""
        value = arm.value
        if isinstance(value, ClassRef):
            return [
                Arm(Instance(c, "annotation", rule="annotation"), arm.condition)
                for c in self.concrete(value.cls)
            ]
        if isinstance(value, External):
            if value.name in ("typing.Any", "builtins.object"):
                return []
            if value.name in ("builtins.tuple", "builtins.list"):
                return [Arm(Sequence(None), arm.condition)]
            if value.name == "builtins.dict":
                return [Arm(Table(()), arm.condition)]
            return [Arm(External(f"{value.name}()"), arm.condition)]
        return [arm] if value == NONE or isinstance(value, Sequence | Table) else []

    def _generic(self, node: ast.Subscript, scope: Scope) -> Arms:
        name = last_name(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name in _WRAPPERS:
            found = self.annotation(inner[0], scope)
            return optional(found) if name == "Optional" else found
        if name == "Union":
            return self._union(inner, scope)
        if name in ("Tuple", "tuple"):
            if any(isinstance(p, ast.Constant) and p.value is ... for p in inner):
                return only(Sequence(None, self.annotation(inner[0], scope)))
            return only(Sequence(tuple(self.annotation(part, scope) for part in inner)))
        if name in _SEQUENCES:
            return only(Sequence(None, self.annotation(inner[0], scope)))
        if name in _MAPPINGS:
            return only(Table((), self.annotation(inner[-1], scope)))
        if name in ("Type", "type"):
            arms = self._resolver.evaluate(inner[0], scope)
            return unite(*(self._class_arms(arm) for arm in arms))
        return self.annotation(node.value, scope)

    def _class_arms(self, arm: Arm) -> Arms:
        if not isinstance(arm.value, ClassRef):
            return ()
        return tuple(Arm(ClassRef(c), arm.condition) for c in self.concrete(arm.value.cls))


def _merge(lines: list[list[ClassInfo]]) -> list[ClassInfo]:
    """C3 merge; where the source's order is inconsistent the first class wins."""
    lines = [list(line) for line in lines if line]
    merged: list[ClassInfo] = []
    while lines:
        head = next(
            (c[0] for c in lines if not any(c[0] in other[1:] for other in lines)), lines[0][0]
        )
        merged.append(head)
        lines = [[c for c in line if c is not head] for line in lines]
        lines = [line for line in lines if line]
    return merged
