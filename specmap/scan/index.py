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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from specmap.codemap.graph import Problem
from specmap.codemap.source import SourceFile
from specmap.scan.module import ClassInfo, Module
from specmap.scan.parse import module_name, parse_module

_CLASS = re.compile(rb"[ \t]*class[ \t]+(\w+)[ \t]*(?:\(([^:]*?)\))?[ \t]*:")
_WORD = b"class"
_NAME = re.compile(rb"[\w.]+")
_CALL = re.compile(rb"\b(\w+)\(")
# ``x.attribute =``, ``x.attribute: T =`` and the places of a tuple target, one a line.
_STORE = re.compile(rb"\.(\w+)[ \t]*(?:=(?!=)|:[^=\n]+=(?!=)|,[ \t]*\n|[,)][^=\n]*=(?!=))")
_SETATTR = re.compile(rb"(?:set|del)attr(?:__)?\([^,\n]*,\s*[\"'](\w+)[\"']")
# ``vars(x)["attribute"] =``, ``x.__dict__.pop("attribute")`` and ``del x.attribute``.
_ENTRY = re.compile(rb"(?:__dict__|\bvars\([^()\n]*\))(?:\.pop\(|\[)[\"'](\w+)[\"']")
_DELETED = re.compile(rb"\bdel [^\n]*\.(\w+)[ \t]*[;#\n]")
_PATTERNS = {"call": (_CALL,), "store": (_STORE, _SETATTR, _ENTRY, _DELETED)}
# Deep expressions (long sums, chained calls) are legal Python; the parser and our own
# walks recurse once or more per level.
_RECURSION_LIMIT = 20_000


@dataclass(slots=True)
class Asked:
    """What a scan asked about files that it then did not parse.

    ``classes`` and ``bases`` are names; ``words`` go by kind (``call``, ``store``, ``text``)
    and the folders that were asked; ``modules`` are dotted names, ``folders`` were read whole.
    """

    classes: set[str] = field(default_factory=set)
    bases: set[str] = field(default_factory=set)
    words: dict[tuple[str, tuple[str, ...]], set[str]] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def word(self, kind: str, under: tuple[str, ...], word: str) -> None:
        """Note that a word was looked for."""
        self.words.setdefault((kind, under), set()).add(word)

    def met_in(self, file: str, data: bytes) -> list[str]:
        """Return what of all this a file's bytes hold, in words that can be compared."""
        found: set[str] = set()
        for match in _class_heads(data):
            name = match.group(1).decode("ascii", "replace")
            found |= {f"class {name}"} if name in self.classes else set()
            for base in _NAME.findall(match.group(2) or b""):
                last = base.rpartition(b".")[2].decode("ascii", "replace")
                found |= {f"class {name}({last})"} if last in self.bases else set()
        for (kind, under), words in self.words.items():
            if not file.startswith(under):
                continue
            if kind == "text":
                found |= {f"text {word}" for word in words if word.encode() in data}
            else:
                held = {word.decode("ascii", "replace") for word in _words_of(kind, data)}
                found |= {f"{kind} {word}" for word in words & held}
        return sorted(found)


def _words_of(kind: str, data: bytes) -> set[bytes]:
    return {word for pattern in _PATTERNS[kind] for word in pattern.findall(data)}


def _holds(data: bytes, marks: list[bytes]) -> bool:
    return any(mark in data for mark in marks)


def _class_heads(data: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the matches of a class statement's head; most lines are passed over unread."""
    end, at = 0, data.find(_WORD)
    while at >= 0:
        line = data.rfind(b"\n", 0, at) + 1
        match = _CLASS.match(data, line) if line >= end and not data[line:at].strip() else None
        if match:
            yield match
            end = match.end()
        at = data.find(_WORD, max(end, at + len(_WORD)))


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
        self._words: dict[tuple[str, tuple[str, ...]], dict[bytes, list[str]]] = {}
        self.asked = Asked()

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
            with (self.root / file).open("rb", buffering=0) as handle:
                return handle.read()
        except OSError as error:
            if file not in self._unread:
                self._unread.add(file)
                self.problems.append(Problem(file, None, f"cannot read: {error.strerror}"))
            return b""

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The hash of every file's bytes; empty for one that cannot be read."""
        found = {}
        for file in self._files:
            known = self._hashes.get(file) or hashlib.sha256(self.source(file)).hexdigest()
            found[file] = "" if file in self._unread else known
        return found

    @cached_property
    def digest(self) -> str:
        """A hash over the names and bytes of all files."""
        total = hashlib.sha256()
        for file, content in self.hashes.items():
            total.update(file.encode() + b"\0" + content.encode())
        return total.hexdigest()

    @property
    def parsed(self) -> frozenset[str]:
        """The files that were parsed, or that could not be."""
        return frozenset(self._modules)

    def said(self) -> dict[str, list[str]]:
        """Return what the files that were not parsed hold of all that was asked."""
        rest = (f for f in self._files if f not in self._modules)
        met = {file: self.asked.met_in(file, self.source(file)) for file in rest}
        return {file: found for file, found in met.items() if found}

    def parsed_files(self) -> tuple[SourceFile, ...]:
        """Return the files that were parsed, with the hash of their bytes."""
        parsed = [file for file, module in self._modules.items() if module]
        return tuple(SourceFile(file, self._hashes[file]) for file in sorted(parsed))

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {module_name(file): file for file in self._files}

    def module(self, name: str) -> Module | None:
        """Return a module by dotted name; ``None`` when absent or unreadable."""
        self.asked.modules.add(name)
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
            for match in _class_heads(data):
                defined[match.group(1).decode("ascii", "replace")].append(file)
                for base in _NAME.findall(match.group(2) or b""):
                    last = base.rpartition(b".")[2].decode("ascii", "replace")
                    found[last].append((file, match.group(1).decode("ascii", "replace")))
        return found, defined

    def classes_named(self, name: str) -> list[ClassInfo]:
        """Return the top-level classes of this name, anywhere in the tree."""
        self.asked.classes.add(name)
        modules = map(self.module_at, dict.fromkeys(self._classes[1].get(name, [])))
        return [m.classes[name] for m in modules if m and name in m.classes]

    def modules_under(self, folder: str) -> list[Module]:
        """Return the modules below a folder."""
        return [module for module in map(self.module_at, self.files_under(folder)) if module]

    def files_under(self, folder: str) -> list[str]:
        """Return the files below a folder, or the one file of that name."""
        self.asked.folders.add(folder)
        return [f for f in self._files if f == folder or f.startswith(f"{folder}/")]

    def files_holding(self, words: Iterable[str], under: tuple[str, ...]) -> list[str]:
        """Return the files below the folders whose text holds one of the words."""
        for word in words:
            self.asked.word("text", under, word)
        marks = [word.encode() for word in words]
        files = (f for f in self._files if f.startswith(under))
        return [f for f in files if _holds(self.source(f), marks)]

    def modules_holding(self, words: Iterable[str]) -> list[Module]:
        """Return the modules of the package whose text holds one of the words."""
        files = self.files_holding(words, (f"{self.package}/",))
        return [module for module in map(self.module_at, files) if module]

    def is_named(self, module: Module) -> bool:
        """Return whether another file names a module, as one that imports it does."""
        word = module.name.rpartition(".")[2]
        files = self.files_holding((word,), (f"{self.package}/",))
        return any(file != module.file for file in files)

    def subclasses(self, name: str, skip: Callable[[str], bool]) -> list[ClassInfo]:
        """Return the classes with a base of this (last) name, modules to skip left out."""
        self.asked.bases.add(name)
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
        return self._modules_matching("store", attribute, under)

    def modules_calling(self, name: str, under: tuple[str, ...]) -> list[Module]:
        """Return the modules below the folders that call something of this name."""
        return self._modules_matching("call", name, under)

    def _modules_matching(self, kind: str, word: str, under: tuple[str, ...]) -> list[Module]:
        key = (kind, under)
        self.asked.word(kind, under, word)
        if key not in self._words:
            found: dict[bytes, list[str]] = defaultdict(list)
            for file in self._files:
                if file.startswith(under):
                    for identifier in _words_of(kind, self.source(file)):
                        found[identifier].append(file)
            self._words[key] = found
        files = self._words[key].get(word.encode(), [])
        return [module for module in map(self.module_at, files) if module]
