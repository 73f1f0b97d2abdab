"""Renames SGLang's own classes, functions and methods in a copied tree.

The renaming law: a map must not depend on SGLang's names beyond ``rules/vocabulary.toml``.

Two kinds of names are told apart. A name that nobody else uses is replaced in the whole
tree, as a whole identifier, also where a string is exactly that name (a forward reference,
``getattr``, ``__all__``) or a type expression that holds it. A name that Python, its standard
library or torch uses as well (``forward``, ``replay``) is replaced only where it is SGLang's:
at the definitions in the classes of the map and their relatives, and on the lines where the
map says that the call reaches one of them; a name that only a module shares, on the line of
every method call when no other code defines it. Names with two underscores at each end, names of
server arguments stay, and so do shared names of properties, module functions and classes.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from specmap.codemap.graph import CodeMap
from specmap.codemap.source import qualname_of, symbol_id

# What tensors, modules, streams, events, graphs and process groups of torch call their own.
_TORCH_TEXT = """
T add all all_gather all_reduce any apply arange argmax argmin backward barrier bool
broadcast buffers bytes capture_begin capture_end cat children clamp clone close compile
contiguous copy_ cpu cuda cumsum data detach device div dtype elapsed_time empty eq eval
exp expand extra_repr fill_ flatten float forward full gather get_device group half
index index_select init int item load_state_dict log long masked_fill max mean min
modules mul named_parameters ndim nonzero norm numel ones parameters permute pool prod
query rank record record_event recv repeat replay reset reshape scatter seed select send
shape size softmax sort split squeeze stack state_dict step store stream stride sub sum
synchronize tensor to tolist topk train transpose type unique unsqueeze view wait
wait_event wait_stream where world_size zero_ zeros
"""
TORCH = frozenset(_TORCH_TEXT.split())

# The class whose fields are the user's own words.
SETTINGS = "ServerArgs"

# Tables of the vocabulary whose words match inside longer names.
PARTIAL = ("atoms", "sync", "sync_labels")

_LEX = re.compile(
    r"""
    (?P<string>[rRbBuUfF]{0,2}(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<comment>\#[^\n]*)
    |(?P<name>[^\W\d]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_TYPE_TEXT = re.compile(r"[\w.\[\], |]+")
_WORD = re.compile(r"[^\W\d]\w*")
_TOML_STRING = re.compile(r'"([^"]*)"')
_BRACES = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Renaming:
    """New names by old name; ``shared`` ones only hold on the listed lines of each file."""

    everywhere: dict[str, str]
    shared: dict[str, str]
    lines: dict[str, dict[int, frozenset[str]]]

    @property
    def all_names(self) -> dict[str, str]:
        """Both kinds together."""
        return self.everywhere | self.shared

    def back(self, text: str) -> str:
        """Return a text of the renamed tree in the old names."""
        old = {new: name for name, new in self.all_names.items()}
        return _WORD.sub(lambda word: old.get(word[0], word[0]), text)


def vocabulary(text: str, renaming: Renaming) -> str:
    """Return ``rules/vocabulary.toml`` for the renamed tree.

    Whole words are replaced; a shared word keeps its old form beside the new one. Words
    that match inside longer names gain the new names of those that they matched.
    """
    table, lines = "", []
    for line in text.splitlines():
        table = line.strip("[] ") if line.startswith("[") else table
        partial = table.partition(".")[0] in PARTIAL
        if not line.startswith("#"):
            words = _TOML_STRING.findall(line)
            entries = [_entry(word, renaming, partial) for word in words]
            line = _TOML_STRING.sub("{}", line.replace("{", "{{").replace("}", "}}"))
            line = line.format(*entries)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _entry(word: str, renaming: Renaming, partial: bool) -> str:
    entries = [word] if word in renaming.shared else []
    entries.append(_WORD.sub(lambda part: renaming.all_names.get(part[0], part[0]), word))
    if partial:
        entries += [new for old, new in renaming.all_names.items() if word in old and word != old]
    return ", ".join(f'"{entry}"' for entry in dict.fromkeys(entries))


def _new_names(names: Iterable[str]) -> dict[str, str]:
    """Return names that say nothing; private names stay private, classes capitalised."""
    found = {}
    for number, name in enumerate(sorted(names), 1):
        bare = name.lstrip("_")
        found[name] = name[: -len(bare)] + f"{'Kind' if bare[:1].isupper() else 'op_'}{number:05d}"
    return found


def plan(code_map: CodeMap, tree: Path) -> Renaming:
    """Choose the names of a map's functions and classes, and where the shared ones hold."""
    facts = {path.relative_to(tree).as_posix(): _facts(path) for path in sources(tree)}
    names = {part for f in code_map.functions for part in f.qualname.split(".")}
    names |= {qualname_of(base) for c in code_map.classes for base in (c.id, *c.mro)}
    names |= {method for c in code_map.classes for method, _ in c.methods}
    names -= {n for n in names if not n.isidentifier() or (n[:2] == n[-2:] == "__")}
    names -= set().union(*(f.settings for f in facts.values()))
    foreign = (TORCH | _python_names()).union(*(f.outside for f in facts.values()))
    shared = names & (foreign | _module_names(tree))
    new, lines = _new_names(names), _shared_lines(code_map, facts, shared, shared - foreign)
    held = {name for by_line in lines.values() for found in by_line.values() for name in found}
    return Renaming(
        everywhere={n: new[n] for n in sorted(names - shared)},
        shared={n: new[n] for n in sorted(held)},
        lines=lines,
    )


def sources(tree: Path) -> list[Path]:
    """Return the Python files below ``tree`` in a stable order."""
    return sorted(tree.rglob("*.py"))


def rename_tree(tree: Path, renaming: Renaming) -> None:
    """Rewrite every Python file below ``tree``; lines keep their numbers."""
    for path in sources(tree):
        file = path.relative_to(tree).as_posix()
        source = path.read_bytes().decode("utf-8", "surrogateescape")
        changed = renamed(source, renaming, renaming.lines.get(file, {}))
        if changed != source:
            path.write_bytes(changed.encode("utf-8", "surrogateescape"))


def renamed(source: str, renaming: Renaming, lines: dict[int, frozenset[str]]) -> str:
    """Return the source with the new names; comments and other strings stay."""
    everywhere, shared = renaming.everywhere, renaming.shared
    starts = [0, *(m.end() for m in re.finditer("\n", source))] if lines else []
    wanted = {start: lines.get(number, frozenset()) for number, start in enumerate(starts, 1)}

    def on_line(position: int) -> frozenset[str]:
        return wanted.get(source.rfind("\n", 0, position) + 1, frozenset())

    def new(match: re.Match[str]) -> str:
        text = match[0]
        if match.lastgroup == "name":
            if text in everywhere:
                return everywhere[text]
            return shared[text] if lines and text in on_line(match.start()) else text
        return _string(text, everywhere) if match.lastgroup == "string" else text

    return _LEX.sub(new, source)


def _string(literal: str, names: dict[str, str]) -> str:
    prefix = literal[: min(literal.find(q) for q in "\"'" if q in literal)]

    def words(text: str) -> str:
        return _WORD.sub(lambda word: names.get(word[0], word[0]), text)

    if "f" in prefix.lower():
        return _BRACES.sub(lambda part: words(part[0]), literal)
    inner = literal[len(prefix) :].strip("\"'")
    if inner in names:
        return literal.replace(inner, names[inner])
    types = [w for w in _WORD.findall(inner) if w in names and w[:1].isupper()]
    return (
        prefix + words(literal[len(prefix) :]) if types and _TYPE_TEXT.fullmatch(inner) else literal
    )


@dataclass(frozen=True, slots=True)
class _Method:
    holder: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class _Facts:
    """What one module says: its classes with their bases, methods, and foreign names."""

    bases: tuple[tuple[str, str], ...]
    methods: tuple[_Method, ...]
    outside: frozenset[str]
    settings: frozenset[str]
    defined: tuple[str, ...]
    called: dict[tuple[int, str], int]


def _facts(path: Path) -> _Facts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SGLang's own invalid escapes
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
    classes = [n for n in nodes if isinstance(n, ast.ClassDef)]
    return _Facts(
        bases=tuple((c.name, _last_name(base)) for c in classes for base in c.bases),
        methods=tuple(
            _Method(c.name, item.name, item.lineno)
            for c in classes
            for item in c.body
            if isinstance(item, ast.FunctionDef) and not _is_property(item)
        ),
        outside=frozenset(_outside_names(nodes)),
        settings=frozenset(name for c in classes if c.name == SETTINGS for name in _fields(c)),
        defined=tuple(
            n.name
            for n in nodes
            if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ),
        called={
            (node.lineno, node.func.attr): node.func.end_lineno or node.lineno
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        },
    )


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id


def _is_property(item: ast.FunctionDef) -> bool:
    """A property is read without a call, so no call edge tells where; its name stays."""
    marks = [ast.unparse(mark) for mark in item.decorator_list]
    return any("propert" in mark or ".setter" in mark for mark in marks)


def _outside_names(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names that a module takes from packages other than SGLang."""
    roots = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            outside = [a for a in node.names if not a.name.startswith("sglang")]
            roots |= {(a.asname or a.name).partition(".")[0] for a in outside}
        elif isinstance(node, ast.ImportFrom) and _is_outside(node):
            yield from (a.name for a in node.names)
    for node in nodes:
        if isinstance(node, ast.Attribute) and _root(node) in roots:
            yield node.attr


def _is_outside(node: ast.ImportFrom) -> bool:
    return not node.level and not (node.module or "").startswith("sglang")


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _module_names(tree: Path) -> set[str]:
    return {part.removesuffix(".py") for p in sources(tree) for part in p.relative_to(tree).parts}


def _python_names() -> set[str]:
    """Return what built-in types and the classes of common standard modules call their own."""
    names = set(dir(builtins))
    kinds: list[type] = [dict, list, set, str, bytes, int, float, tuple, type, Exception, property]
    modules = "abc asyncio collections contextlib dataclasses enum functools itertools logging"
    modules += " multiprocessing os pathlib pickle queue random re signal threading time typing"
    for module in map(importlib.import_module, modules.split()):
        kinds += [kind for _, kind in inspect.getmembers(module, inspect.isclass)]
    return names.union(*map(dir, kinds))


def _shared_lines(
    code_map: CodeMap, facts: dict[str, _Facts], shared: set[str], modular: set[str]
) -> dict[str, dict[int, frozenset[str]]]:
    """Return where the shared names are SGLang's: definitions, and calls that reach them.

    ``modular`` are those that nothing but a module shares.
    """
    found: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    family = _family({c.name for c in code_map.classes}, facts.values())
    defined = set()
    for file, module in facts.items():
        for method in module.methods:
            if method.holder in family and method.name in shared:
                found[file][method.line].add(method.name)
                defined.add(symbol_id(file, f"{method.holder}.{method.name}"))
    for edge in code_map.edges:
        for callee in defined.intersection(edge.callees):
            name = qualname_of(callee).rpartition(".")[2]
            called = facts[edge.span.file].called
            line = called.get((edge.span.line, name), edge.span.line)
            found[edge.span.file][line].add(name)
    own = modular & _only_methods(family, facts.values())
    for file, module in facts.items():
        for (_, name), line in module.called.items():
            if name in own:
                found[file][line].add(name)
    return {f: {n: frozenset(w) for n, w in lines.items()} for f, lines in found.items()}


def _only_methods(family: set[str], modules: Iterable[_Facts]) -> set[str]:
    """Return the names that nothing but methods of the family's classes define."""
    spare: Counter[str] = Counter()
    for module in modules:
        spare.update(module.defined)
        spare.subtract(m.name for m in module.methods if m.holder in family)
    return {name for name, count in spare.items() if count == 0}


def _family(names: set[str], modules: Iterable[_Facts]) -> set[str]:
    """Return the named classes and everything that inherits from them."""
    pairs = {pair for module in modules for pair in module.bases}
    below = set(names)
    while more := {child for child, base in pairs if base in below} - below:
        below |= more
    return below
