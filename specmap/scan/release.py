"""Which release and commit a SGLang tree says it is, read without importing it."""

from __future__ import annotations

import ast
import re
import tomllib
from email.parser import HeaderParser
from pathlib import Path

from packaging.version import InvalidVersion, Version

_PACKAGE = "sglang"
_MEANT = re.compile(rf"\s*(?:{_PACKAGE})?\s*[=-]?\s*v?(\d+(?:\.\w+)+)\s*", re.IGNORECASE)


def release_in(root: Path) -> str | None:
    """Return the release of the tree under ``root``, normalised, or ``None``.

    Looked up in this order: ``version.py`` and ``_version.py`` of the package (a literal
    at module level; later releases compute it), the metadata beside an installed package,
    and the project file of a source tree.
    """
    package = root / _PACKAGE
    texts = (
        _literal(package / "version.py", "__version__"),
        _literal(package / "_version.py", "__version__"),
        _metadata_version(root),
        _project_version(root / "pyproject.toml"),
    )
    return next((text for text in map(_normal, texts) if text is not None), None)


def meant(text: str) -> str | None:
    """Return ``did you mean sglang==X?`` where ``text`` reads like a release and is no target."""
    found = _MEANT.fullmatch(text)
    return f"did you mean {_PACKAGE}=={found[1]}?" if found else None


def commit_in(root: Path) -> str | None:
    """Return the commit that the build wrote into ``_version.py``, or ``None``."""
    return _literal(root / _PACKAGE / "_version.py", "__commit_id__")


def _normal(text: str | None) -> str | None:
    try:
        return None if text is None else str(Version(text))
    except InvalidVersion:
        return None


def _literal(path: Path, name: str) -> str | None:
    """Return the string that the module at ``path`` assigns to ``name`` at its top level."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in tree.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if name in names and isinstance(node.value.value, str):
            return node.value.value
    return None


def _metadata_version(root: Path) -> str | None:
    found = sorted(root.glob(f"{_PACKAGE}-*.dist-info/METADATA"))
    if len(found) != 1:
        return None
    try:
        return HeaderParser().parsestr(found[0].read_text("utf-8", "replace"))["Version"]
    except OSError:
        return None


def _project_version(path: Path) -> str | None:
    try:
        project = tomllib.loads(path.read_text("utf-8")).get("project", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    version = project.get("version") if project.get("name") == _PACKAGE else None
    return version if isinstance(version, str) else None
