"""How a release writes its arguments down: typed fields, metadata, calls to a parser."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from specmap.scan.index import Tree
from specmap.scan.launch.arguments import Action, Argument, Field
from specmap.scan.launch.literals import Literals
from specmap.scan.launch.unknown import Unknown, Value
from specmap.scan.module import ClassInfo, FunctionInfo, Module, last_name
from specmap.scan.vocabulary import ArgumentNames

_FLAG = re.compile(r"(?<!\w)--[a-z][\w-]*")
_SCALARS = ("str", "int", "float")
_FLAG_ACTIONS = ("store_true", "store_false", "either", "ignore")
_EMPTY: Mapping[str, Value] = {"list": (), "tuple": (), "set": (), "dict": {}}


@dataclass(frozen=True, slots=True)
class FieldNode:
    """A field with the syntax that declares it."""

    declared: Field
    annotation: ast.expr
    module: Module
    has_default: bool


def read_fields(tree: Tree, owner: ClassInfo, names: ArgumentNames) -> list[FieldNode]:
    """Return the fields of the settings class, in order.

    They are its own, or those of the classes that it is assembled from.
    """
    literals = Literals(tree)
    classes: dict[str, ClassInfo] = {}
    for name in sorted(names.namespaces & set(owner.module.assigns)):
        for value in owner.module.assigns[name]:
            for item in getattr(value, "elts", []):
                part = literals.class_of(item, owner.module)
                if part is not None:
                    classes[part.id] = part
    classes[owner.id] = owner
    found = {}
    for info in classes.values():
        for name in info.fields:
            if last_name(_subscripted(info.annotations[name])) != "ClassVar":
                found[name] = _field(info, name, literals, names)
    return list(found.values())


def _field(info: ClassInfo, name: str, literals: Literals, names: ArgumentNames) -> FieldNode:
    module, annotation, value = info.module, info.annotations[name], info.assigns.get(name)
    default = Unknown("") if value is None else _default(value, module, literals)
    metadata = _metadata(annotation, names)
    wanted = _keyword(metadata, names.keywords["fallback"])
    fallback = None if wanted is None else literals.value(wanted, module)
    end = value or annotation
    span = module.span(ast.copy_location(ast.Pass(), annotation))
    span = type(span)(span.file, span.line, end.end_lineno or span.end_line)
    return FieldNode(Field(name, default, fallback, span), annotation, module, value is not None)


def _default(value: ast.expr, module: Module, literals: Literals) -> Value | Unknown:
    """Return a field's default; ``field(default_factory=list)`` is an empty list."""
    if isinstance(value, ast.Call) and last_name(value) == "field":
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        factory = given.get("default_factory")
        if "default" in given:
            return literals.value(given["default"], module)
        if isinstance(factory, ast.Name) and factory.id in _EMPTY:
            return _EMPTY[factory.id]
        if isinstance(factory, ast.Lambda):
            return literals.value(factory.body, module)
    return literals.value(value, module)


def read_arguments(
    tree: Tree, owner: ClassInfo, fields: list[FieldNode], names: ArgumentNames
) -> tuple[Argument, ...]:
    """Return the arguments: those generated from fields, then those registered by hand."""
    reader = _Reader(Literals(tree), {f.declared.name: f.declared for f in fields}, names)
    found = [reader.generated(field) for field in fields]
    methods = owner.methods
    renames: dict[str, str] = {}
    for name in sorted(names.rename & set(methods)):
        renames |= dict(_renames(methods[name]))
    for name in sorted(names.register & set(methods)):
        for call in sorted(methods[name].facts.calls, key=lambda c: (c.lineno, c.col_offset)):
            if last_name(call) == "add_argument":
                found.append(reader.by_hand(call, owner, renames))
    return tuple(argument for argument in found if argument is not None)


def _renames(function: FunctionInfo) -> Iterator[tuple[str, str]]:
    """Yield ``args.field = args.name`` of one and the same object as (name, field)."""
    for node in ast.walk(function.node):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=left), attr=new)],
                value=ast.Attribute(value=ast.Name(id=right), attr=old),
            ) if left == right:
                yield old, new


def _subscripted(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return what stands in the brackets of ``X[...]``."""
    if not isinstance(node, ast.Subscript):
        return []
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _metadata(annotation: ast.expr, names: ArgumentNames) -> ast.expr | None:
    """Return the help text or metadata call of an annotated field."""
    if last_name(_subscripted(annotation)) not in names.annotated:
        return None
    for part in _parts(annotation)[1:]:
        if isinstance(part, ast.Call) and last_name(part) in names.metadata:
            return part
        if isinstance(part, ast.JoinedStr) or (
            isinstance(part, ast.Constant) and isinstance(part.value, str)
        ):
            return part
    return None


def _keyword(call: ast.expr | None, name: str) -> ast.expr | None:
    if not isinstance(call, ast.Call):
        return None
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _plain_type(node: ast.expr) -> ast.expr:
    """Take ``Optional[X]`` and ``X | None`` apart."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        parts = [node.left, node.right]
    elif last_name(_subscripted(node)) in ("Optional", "Union"):
        parts = _parts(node)
    else:
        return node
    kept = [part for part in parts if not _is_none(part)]
    return kept[0] if len(kept) == 1 else node


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class _Reader:
    def __init__(
        self, literals: Literals, fields: Mapping[str, Field], names: ArgumentNames
    ) -> None:
        self.literals = literals
        self.fields = fields
        self.names = names

    def generated(self, field: FieldNode) -> Argument | None:
        """Return the argument of an annotated field; None if it has none."""
        data = _metadata(field.annotation, self.names)
        hidden = self._said(data, "hidden", field.module)
        if data is None or hidden is True:
            return None
        declared, module, keywords = field.declared, field.module, self.names.keywords
        flag = self._said(data, "flag", module) or f"--{declared.name.replace('_', '-')}"
        aliases = self._said(data, "aliases", module)
        flags = (str(flag), *map(str, aliases if isinstance(aliases, tuple) else ()))
        given = (
            {k.arg: k.value for k in data.keywords if k.arg} if isinstance(data, ast.Call) else {}
        )
        extra = given.get(keywords["extra"])
        if isinstance(extra, ast.Dict):
            pairs = zip(extra.keys, extra.values, strict=True)
            given |= {str(k.value): v for k, v in pairs if isinstance(k, ast.Constant)}
        converter = given.get(keywords["type"], given.get("type"))
        shape = self._shape(_plain_type(_parts(field.annotation)[0]), given, module, converter)
        required = shape.required or (not field.has_default and "required" not in given)
        return Argument(
            field=declared.name,
            flags=flags,
            action=shape.action,
            type_name=shape.type_name,
            default=declared.default if field.has_default else None,
            choices=shape.choices,
            span=declared.span,
            nargs=shape.nargs,
            stored=shape.stored,
            required=required,
        )

    def by_hand(
        self, call: ast.Call, owner: ClassInfo, renames: Mapping[str, str]
    ) -> Argument | None:
        """Return the argument that a call of ``add_argument`` registers."""
        module, keywords = owner.module, self.names.keywords
        texts = [a.value for a in call.args if isinstance(a, ast.Constant)]
        flags = [text for text in texts if isinstance(text, str)]
        if len(flags) != len(call.args) or not flags:
            return None
        given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        dest = self._text(given.get("dest"), module)
        first = next((flag for flag in flags if flag.startswith("--")), flags[0])
        name = dest or first.lstrip("-").replace("-", "_")
        field = renames.get(name, name)
        shape = self._shape(None, given, module, given.get("type"))
        own = self._own_default(given.get("default"), field, shape.action, module)
        retired = last_name(given["action"]) in self.names.retired if "action" in given else False
        replacement = self._text(given.get(keywords["replacement"]), module)
        helped = _FLAG.findall(self._text(given.get("help"), module) or "")
        named = replacement or next((flag for flag in helped if flag not in flags), "")
        return Argument(
            field=field,
            flags=tuple(flags),
            action=shape.action,
            type_name=shape.type_name,
            default=own,
            choices=shape.choices,
            span=module.span(call),
            nargs=shape.nargs,
            stored=shape.stored,
            required=shape.required,
            deprecated=named if retired else None,
            refused=self._text(given.get(keywords["message"]), module) if retired else None,
        )

    def _shape(
        self,
        annotation: ast.expr | None,
        given: Mapping[str, ast.expr],
        module: Module,
        converter: ast.expr | None,
    ) -> _Shape:
        """Return what the argument takes, from its keywords and, without them, its type."""
        shape = _Shape("store", "str", None, None, None, self._is_true(given.get("required")))
        kind = last_name(_subscripted(annotation)) if annotation is not None else ""
        if annotation is not None and kind == "Literal":
            values = tuple(self.literals.value(part, module) for part in _parts(annotation))
            shape.choices = _known(values)
            first = type(values[0]).__name__ if values else "str"
            shape.type_name = first if first in _SCALARS else "str"
        elif annotation is not None and kind in ("List", "list") and converter is None:
            inner = last_name(_parts(annotation)[0]) if _parts(annotation) else "str"
            shape.nargs, shape.type_name = "+", inner if inner in _SCALARS else "str"
        elif kind in _SCALARS:
            shape.type_name = kind
        if converter is not None:
            shape.type_name = module.text(converter)
        if "choices" in given:
            choices = self.literals.value(given["choices"], module)
            shape.choices = choices if isinstance(choices, tuple) else None
        if "action" in given:
            shape.action = self._action(given["action"])
        elif kind == "bool":
            shape.action = "store_true"
        if shape.action in ("store", "store_const"):
            self._set_nargs(shape, given, module)
        return shape

    def _set_nargs(self, shape: _Shape, given: Mapping[str, ast.expr], module: Module) -> None:
        if shape.action == "store_const":
            shape.nargs = 0
            stored = given.get(self.names.keywords["stored"], given.get("const"))
            shape.stored = None if stored is None else self.literals.value(stored, module)
        elif "const" in given:
            shape.stored = self.literals.value(given["const"], module)
        if "nargs" in given:
            nargs = self.literals.value(given["nargs"], module)
            shape.nargs = nargs if isinstance(nargs, str | int) else None

    def _action(self, node: ast.expr) -> Action:
        name = str(node.value) if isinstance(node, ast.Constant) else last_name(node)
        if name == "BooleanOptionalAction":
            return "either"
        name = self.names.actions.get(name, name)
        known = (*_FLAG_ACTIONS, "store_const")
        return cast(Action, name) if name in known else "store"

    def _own_default(
        self, node: ast.expr | None, field: str, action: str, module: Module
    ) -> Value | Unknown:
        """Return the parser's default; what is no literal is the field's own default."""
        if node is None:
            return False if action == "store_true" else action == "store_false" or None
        value = self.literals.value(node, module)
        if isinstance(value, Unknown) and not value.text.endswith("SUPPRESS"):
            own = self.fields.get(field)
            named = own is not None and (field in value.text)
            return own.default if own is not None and named else value
        return value

    def _said(self, data: ast.expr | None, meaning: str, module: Module) -> Value:
        node = _keyword(data, self.names.keywords[meaning])
        value = None if node is None else self.literals.value(node, module)
        return None if isinstance(value, Unknown) else value

    def _text(self, node: ast.expr | None, module: Module) -> str | None:
        value = None if node is None else self.literals.value(node, module)
        return value if isinstance(value, str) else None

    def _is_true(self, node: ast.expr | None) -> bool:
        return isinstance(node, ast.Constant) and node.value is True


@dataclass(slots=True)
class _Shape:
    action: Action
    type_name: str
    nargs: str | int | None
    choices: tuple[Value, ...] | None
    stored: Value | Unknown
    required: bool


def _known(values: tuple[Value | Unknown, ...]) -> tuple[Value, ...] | None:
    kept = tuple(value for value in values if not isinstance(value, Unknown))
    return kept if len(kept) == len(values) else None
