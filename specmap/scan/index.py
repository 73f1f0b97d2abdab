"""The files of one SGLang checkout, parsed on demand.

A search by text over the raw bytes (classes by base, calls and stores by name) tells which
modules are worth parsing.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from specmap.codemap.graph import Problem
from specmap.codemap.source import SourceFile
from specmap.scan.module import ClassInfo, Module
from specmap.scan.parse import module_name, parse_module

_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*(?:\(([^:]*?)\))?[ \t]*:", re.M)
_NAME = re.compile(rb"[\w.]+")
_CALL = re.compile(rb"\b(\w+)\(")
# ``x.attribute =``, ``x.attribute: T =`` and the places of a tuple target, one a line.
_STORE = re.compile(rb"\.(\w+)[ \t]*(?:=(?!=)|:[^=\n]+=(?!=)|,[ \t]*\n|[,)][^=\n]*=(?!=))")
# Deep expressions (long sums, chained calls) are legal Python; the parser and our own
# walks recurse once or more per level.
_RECURSION_LIMIT = 20_000


class Tree:
    """All Python files under ``root/<package>``; modules are parsed on first use."""

    def __init__(self, root: Path, package: str) -> None:
        self.root = root
        self.package = package
        self.problems: list[Problem] = []
        self._files = self._list_files()
        self._hashes: dict[str, str] = {}
        self._unread: set[str] = set()
        self._modules: dict[str, Module | None] = {}
        self._words: dict[tuple[bytes, tuple[str, ...]], dict[bytes, list[str]]] = {}

    def _list_files(self) -> list[str]:
        found = []
        for folder, folders, names in os.walk(self.root / self.package):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            base = Path(folder).relative_to(self.root).as_posix()
            found += [f"{base}/{name}" for name in sorted(names) if name.endswith(".py")]
        return found

    @property
    def files(self) -> list[str]:
        """All Python files, relative to the root, sorted by folder."""
        return self._files

    def source(self, file: str) -> bytes:
        """Return a file's bytes; a file that cannot be read is a problem, and empty.

        Nothing is kept: a tree has thousands of files, of which a scan parses some hundreds.
        """
        try:
            return (self.root / file).read_bytes()
        except OSError as error:
            if file not in self._unread:
                self._unread.add(file)
                self.problems.append(Problem(file, None, f"cannot read: {error.strerror}"))
            return b""

    @cached_property
    def digest(self) -> str:
        """A hash over the names and bytes of all files."""
        total = hashlib.sha256()
        for file in self._files:
            content = hashlib.sha256(self.source(file)).digest()
            total.update(file.encode() + b"\0" + (b"" if file in self._unread else content))
        return total.hexdigest()

    def parsed_files(self) -> tuple[SourceFile, ...]:
        """Return the files that were parsed, with the hash of their bytes."""
        parsed = [file for file, module in self._modules.items() if module]
        return tuple(SourceFile(file, self._hashes[file]) for file in sorted(parsed))

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {module_name(file): file for file in self._files}

    def module(self, name: str) -> Module | None:
        """Return a module by dotted name; ``None`` when absent or unreadable."""
        file = self._by_name.get(name)
        return self.module_at(file) if file else None

    def module_at(self, file: str) -> Module | None:
        """Return the module of a file; ``None`` for one that is noted as a problem."""
        if file not in self._modules:
            self._modules[file] = self._parse(file)
        return self._modules[file]

    def _parse(self, file: str) -> Module | None:
        data = self.source(file)
        if file in self._unread:
            return None
        self._hashes[file] = hashlib.sha256(data).hexdigest()
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION_LIMIT))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return parse_module(file, data)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            text = getattr(error, "msg", None) or str(error) or type(error).__name__
            self.problems.append(Problem(file, line, f"cannot parse: {text}"))
            return None

    @cached_property
    def _classes(self) -> tuple[dict[str, list[tuple[str, str]]], dict[str, list[str]]]:
        """By last name of a base: ``(file, class name)`` of its direct subclasses; and the
        files that define a class, by its name."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        defined: dict[str, list[str]] = defaultdict(list)
        for file in self._files:
            data = self.source(file)
            if b"class " not in data:
                continue
            for match in _CLASS.finditer(data):
                defined[match.group(1).decode("ascii", "replace")].append(file)
                for base in _NAME.findall(match.group(2) or b""):
                    last = base.rpartition(b".")[2].decode("ascii", "replace")
                    found[last].append((file, match.group(1).decode("ascii", "replace")))
        return found, defined

    def classes_named(self, name: str) -> list[ClassInfo]:
        """Return the top-level classes of this name, anywhere in the tree."""
        modules = map(self.module_at, dict.fromkeys(self._classes[1].get(name, [])))
        return [m.classes[name] for m in modules if m and name in m.classes]

    def modules_under(self, folder: str) -> list[Module]:
        """Return the modules below a folder."""
        files = [f for f in self._files if f.startswith(f"{folder}/")]
        return [module for module in map(self.module_at, files) if module]

    def subclasses(self, name: str, skip: Callable[[str], bool]) -> list[ClassInfo]:
        """Return the classes with a base of this (last) name, modules to skip left out."""
        found = []
        for file, child in self._classes[0].get(name, []):
            if skip(module_name(file)):
                continue
            module = self.module_at(file)
            if module and child in module.classes:
                found.append(module.classes[child])
        return found

    def modules_storing(self, attribute: str, under: tuple[str, ...]) -> list[Module]:
        """Return the modules below the folders that assign some ``x.attribute``."""
        return self._modules_matching(_STORE, attribute, under)

    def modules_calling(self, name: str, under: tuple[str, ...]) -> list[Module]:
        """Return the modules below the folders that call something of this name."""
        return self._modules_matching(_CALL, name, under)

    def _modules_matching(
        self, pattern: re.Pattern[bytes], word: str, under: tuple[str, ...]
    ) -> list[Module]:
        key = (pattern.pattern, under)
        if key not in self._words:
            found: dict[bytes, list[str]] = defaultdict(list)
            for file in self._files:
                if file.startswith(under):
                    for identifier in set(pattern.findall(self.source(file))):
                        found[identifier].append(file)
            self._words[key] = found
        files = self._words[key].get(word.encode(), [])
        return [module for module in map(self.module_at, files) if module]
