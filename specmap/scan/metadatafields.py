"""How the eager and the graph builders of one attention backend fill its metadata."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from specmap.codemap.hazards import MetadataField
from specmap.scan.module import ClassInfo, FunctionInfo, last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.resolver import Resolver

_DTYPE = re.compile(r"torch\.(u?int\d+|float\d+|bfloat16|bool|long)\b")

_CASTS = frozenset({"to", "int", "long", "clone", "contiguous"})
# Sums and indices of integers are int64, whatever the type of what is summed.
_COUNTS = frozenset({"sum", "cumsum", "argsort", "argmax", "count_nonzero"})
# A field that says its type in its name is cast where it is filled.
_NAMED = ("int32", "int64")


def metadata_fields(resolver: Resolver) -> tuple[MetadataField, ...]:
    """Return the fields that the builders of each backend class fill."""
    words = resolver.vocabulary.hazards
    builders = dict.fromkeys(words["metadata_eager"], "eager")
    builders |= dict.fromkeys(words["metadata_graph"], "graph")
    found: list[MetadataField] = []
    for file in [source.file for source in resolver.tree.parsed_files()]:
        module = resolver.tree.module_at(file) if file.startswith(words["metadata_scope"]) else None
        if module is not None:
            for cls in module.classes.values():
                if {builders[name] for name in cls.methods if name in builders} == {
                    "eager",
                    "graph",
                }:
                    for name, method in cls.methods.items():
                        if name in builders:
                            found += _filled(cls, method, builders[name])
    return tuple(sorted(set(found), key=lambda f: (f.span, f.name, f.text)))


def _filled(cls: ClassInfo, method: FunctionInfo, builder: str) -> Iterator[MetadataField]:
    for node in nodes_in(method.node):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and "metadata" in ast.unparse(target.value):
                    yield from _field(cls, method, builder, target.attr, node.value, node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = node.func.value
            base = base.value if isinstance(base, ast.Subscript) else base
            if node.func.attr == "copy_" and isinstance(base, ast.Attribute) and node.args:
                if "metadata" in ast.unparse(base.value):
                    yield from _field(cls, method, builder, base.attr, node.args[0], node)
        if isinstance(node, ast.Call) and last_name(node.func).endswith("Metadata"):
            for keyword in node.keywords:
                if keyword.arg:
                    yield from _field(cls, method, builder, keyword.arg, keyword.value, keyword)


def _field(
    cls: ClassInfo,
    method: FunctionInfo,
    builder: str,
    name: str,
    value: ast.expr,
    at: ast.stmt | ast.expr | ast.keyword,
) -> Iterator[MetadataField]:
    spelt = value
    if isinstance(value, ast.Name):
        bound = [s.value for s in method.facts.assigns if last_name(s.targets[0]) == value.id]
        spelt = bound[0] if len(bound) == 1 else value
    text = method.module.text(spelt)
    source = _start(spelt, _CASTS | _COUNTS if name.endswith(_NAMED) else _CASTS)
    if not source:
        return
    dtype = _DTYPE.search(text)
    yield MetadataField(
        method.module.span(at),
        method.id,
        cls.id,
        builder,
        name,
        text,
        source,
        dtype[1] if dtype else "",
    )


def _start(node: ast.expr, methods: frozenset[str]) -> str:
    """The tensor that a value starts from, through methods, slices and arithmetic."""
    while not isinstance(node, ast.Name | ast.Attribute):
        if isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in methods:
                return ""
            node = node.func.value
        else:
            return ""
    return last_name(node)
