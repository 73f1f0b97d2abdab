"""What the class of a model keeps, as its source says: its name is in the config.json."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specmap.scan.launch.library import Library

_MAX_DEPTH = 8
_Found = tuple[ast.ClassDef, str]


class ModelClasses:
    """The model classes of a tree. ``folder`` is the package that holds their modules.

    A draft of a class that the module ``renamed_in`` names may be given another one.
    """

    def __init__(self, library: Library, folder: str, renamed_in: str) -> None:
        self.library = library
        self.folder = folder
        self.renamed_in = renamed_in

    def draft_keeps(self, architecture: str, part: str, name: str) -> bool | None:
        """Return whether ``part`` of a draft model (an attribute) has the attribute ``name``.

        None where the source does not say: a class that is not found, a part that is made
        in a way that cannot be followed, a base class outside the tree.
        """
        model = None if self._is_renamed(architecture) else self._model(architecture)
        made = self._made(model, part) if model is not None else None
        if made is None:
            return None
        lines = list(self._line(made))
        stored = any(name in _stores(cls) for cls, _ in lines)
        return stored or (False if all(self._is_whole(found) for found in lines) else None)

    def _model(self, architecture: str) -> _Found | None:
        path = self.library.root / self.folder.replace(".", "/")
        word = f"class {architecture}(".encode()
        for file in sorted(path.glob("*.py")):
            if word in file.read_bytes():
                return self._class(architecture, f"{self.folder}.{file.stem}")
        return None

    def _is_renamed(self, architecture: str) -> bool:
        tree = self.library.tree(self.renamed_in)
        return tree is not None and any(
            isinstance(node, ast.Constant) and node.value == architecture for node in ast.walk(tree)
        )

    def _class(self, name: str, module: str, depth: int = 0) -> _Found | None:
        """Return a class by the name that a module knows it by, with the module it is from."""
        tree = self.library.tree(module)
        for node in tree.body if tree is not None and depth < _MAX_DEPTH else ():
            if isinstance(node, ast.ClassDef) and node.name == name:
                return node, module
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._class(alias.name, node.module, depth + 1)
        return None

    def _line(self, found: _Found, depth: int = 0) -> Iterator[_Found]:
        """Yield a class and its bases, depth first; the name that a class shadows is its base's."""
        yield found
        cls, module = found
        for base in cls.bases if depth < _MAX_DEPTH else ():
            other = self._base(base, cls, module)
            if other is not None:
                yield from self._line(other, depth + 1)

    def _base(self, base: ast.expr, cls: ast.ClassDef, module: str) -> _Found | None:
        if not isinstance(base, ast.Name) or base.id == cls.name:
            return None
        return self._class(base.id, module)

    def _is_whole(self, found: _Found) -> bool:
        """Whether all bases are followed, or are of torch's kind (``nn.Module``)."""
        cls, module = found
        return all(isinstance(b, ast.Attribute) or self._base(b, cls, module) for b in cls.bases)

    def _made(self, model: _Found, part: str) -> _Found | None:
        """Return the class of what a model's constructor puts into an attribute."""
        lines = list(self._line(model))
        for cls, module in lines:
            stores = _stores(cls)
            if part in stores:
                value = stores[part]
                made = value.func if isinstance(value, ast.Call) else None
                return self._of_call(made, module, lines) if made is not None else None
        return None

    def _of_call(self, made_by: ast.expr, module: str, lines: list[_Found]) -> _Found | None:
        if isinstance(made_by, ast.Name):
            return self._class(made_by.id, module)
        if not (isinstance(made_by, ast.Attribute) and isinstance(made_by.value, ast.Name)):
            return None
        for cls, where in lines:
            for node in cls.body:
                if isinstance(node, ast.FunctionDef) and node.name == made_by.attr:
                    given = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
                    call = given[0] if len(given) == 1 else None
                    made = call.func if isinstance(call, ast.Call) else None
                    return self._class(made.id, where) if isinstance(made, ast.Name) else None
        return None


def _stores(cls: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return what methods store to attributes of their object; None where it is taken apart."""
    found: dict[str, ast.expr | None] = {}
    for node in ast.walk(cls):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for part in parts:
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                    whole = node.value if part is target else None
                    found[part.attr] = whole if part.attr not in found else None
    return found
