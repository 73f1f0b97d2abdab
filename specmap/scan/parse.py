"""Parsing one file: its syntax tree, and the tables of what its top level defines."""

from __future__ import annotations

import ast
import tokenize
from io import BytesIO

from specmap.scan.module import ClassInfo, FunctionInfo, Module, last_name
from specmap.scan.nodes import nodes_in


def parse_module(file: str, data: bytes) -> Module:
    """Parse a file and fill its tables.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse`` does.
    """
    tree = ast.parse(data, filename=file)
    name = module_name(file)
    module = Module(file, name, file.endswith("/__init__.py"), utf8_lines(data), tree)
    _collect(module, tree.body)
    return module


def utf8_lines(data: bytes) -> list[bytes]:
    """Split into lines, as UTF-8 without a BOM: the unit of ``ast``'s column offsets."""
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    if encoding not in ("utf-8", "utf-8-sig"):
        data = data.decode(encoding, "replace").encode()
    elif data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def module_name(file: str) -> str:
    """Return the dotted name of a file relative to the root."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _collect(module: Module, body: list[ast.stmt]) -> None:
    """Fill the module's tables from its top-level statements, both arms of every ``if``."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            _collect_class(module, node, node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions[node.name] = FunctionInfo(module, node, node.name)
            _collect_globals(module, node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            collect_import(module, node, module.imports)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    module.assigns[target.id].append(node.value)
                    if isinstance(node, ast.AnnAssign):
                        module.annotations[target.id] = node.annotation
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for block in ("body", "orelse", "finalbody"):
                _collect(module, getattr(node, block, []))
            for handler in getattr(node, "handlers", []):
                _collect(module, handler.body)


def _collect_globals(module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Note values that a function assigns to a name it declares ``global``."""
    names = {n for s in nodes_in(function) if isinstance(s, ast.Global) for n in s.names}
    if not names:
        return
    local: dict[str, tuple[str, str | None]] = {}
    for node in nodes_in(function):
        if isinstance(node, ast.Import | ast.ImportFrom):
            collect_import(module, node, local)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in names:
                    module.assigns[target.id].append(node.value)
    for name, target_import in local.items():
        module.imports.setdefault(name, target_import)


def _collect_class(module: Module, node: ast.ClassDef, qualname: str) -> None:
    info = ClassInfo(module, node, qualname)
    module.classes[qualname] = info
    for item in _flat(node.body):
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(last_name(d) == "setter" for d in item.decorator_list):
                continue
            method = FunctionInfo(module, item, f"{qualname}.{item.name}", info)
            info.methods[item.name] = method
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            info.annotations[item.target.id] = item.annotation
            info.fields.append(item.target.id)
            if item.value is not None:
                info.assigns[item.target.id] = item.value
        elif isinstance(item, ast.Assign):
            for target in item.targets:
                if isinstance(target, ast.Name):
                    info.assigns[target.id] = item.value
        elif isinstance(item, ast.ClassDef):
            _collect_class(module, item, f"{qualname}.{item.name}")


def _flat(body: list[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If):
            found += _flat(node.body) + _flat(node.orelse)
        else:
            found.append(node)
    return found


def collect_import(
    module: Module, node: ast.Import | ast.ImportFrom, into: dict[str, tuple[str, str | None]]
) -> None:
    """Add an import statement's names: local name -> (module, name in it or ``None``)."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                into[alias.asname] = (alias.name, None)
            else:
                first = alias.name.partition(".")[0]
                into[first] = (first, None)
        return
    base = node.module or ""
    if node.level:
        parts = module.name.split(".")
        keep = len(parts) - node.level + (1 if module.is_package else 0)
        base = ".".join([*parts[: max(keep, 0)], *([base] if base else [])])
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(base)
        else:
            into[alias.asname or alias.name] = (base, alias.name)
