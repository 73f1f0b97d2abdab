"""Launch facts of one release, by evaluating its own argument code three-valued."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

from specmap.codemap.launch import Answer, Fact, LaunchFacts, Refusal
from specmap.errors import TargetError
from specmap.scan.launch.capturing import capture_sizes, pool_bounds
from specmap.scan.launch.carrying import Carriers
from specmap.scan.launch.comparing import truth_of
from specmap.scan.launch.exporting import Exporter, fact_of, refusal_of
from specmap.scan.launch.interpreter import Interpreter, interpreter
from specmap.scan.launch.library import FunctionNode, Kept, Library
from specmap.scan.launch.machine import CutOff
from specmap.scan.launch.slicing import binding
from specmap.scan.launch.starting import adjust, make_worker
from specmap.scan.launch.tables import Inputs
from specmap.scan.launch.values import (
    Box,
    Carrier,
    Class,
    External,
    Instance,
    Module,
    Origin,
    Raised,
    Scope,
    Trace,
    Unknown,
    merged,
    reasons_of,
)
from specmap.scan.parse import module_name
from specmap.scan.vocabulary import Vocabulary


class Evaluator:
    """The settings of one release under one set of inputs.

    ``library`` may be shared between evaluations of the same tree; it keeps syntax trees.
    """

    def __init__(
        self, root: Path, vocabulary: Vocabulary, inputs: Inputs, library: Library | None = None
    ) -> None:
        self.vocabulary = vocabulary
        self.words = vocabulary.launch_words
        self.inputs = inputs
        self.library = library or Library(root, vocabulary.package)
        self.run: Interpreter = interpreter(self.library, inputs, vocabulary)
        self.carriers = Carriers(self.run, vocabulary)
        self._failed: Raised | None = None
        self._cut = False
        self._facts: Mapping[str, Fact] | None = None
        self._resolve()
        self.run.machine.in_service = True

    @property
    def record(self) -> Instance:
        """The settings object."""
        record = self.run.machine.record
        assert record is not None
        return record

    def _resolve(self) -> None:
        machine = self.run.machine
        try:
            cls = self._settings_class()
            self._fill(cls)
            for name in (*self.words.resolve, *self.words.check):
                owner = next((c for c in cls.mro() if name in c.slots), None)
                if owner is not None:
                    machine.invoke(machine.read(owner, name), [self.record], {})
            adjust(self.run, self.carriers, self.words)
        except Raised as raised:
            self._failed = raised
        except (CutOff, RecursionError):
            self._cut = True

    def _settings_class(self) -> Class:
        names = self.vocabulary.arguments
        for dotted in names.modules:
            module = self.run.loader.load(dotted)
            for name in sorted(names.settings):
                cls = self.run.loader.member(module, name) if module is not None else None
                if isinstance(cls, Class):
                    return cls
        wanted = " or ".join(sorted(names.settings))
        raise TargetError(f"this tree has no class {wanted} in {', '.join(names.modules)}")

    def _fill(self, cls: Class) -> None:
        """Make the settings object: defaults, then what was given."""
        machine, tables = self.run.machine, self.run.tables
        record = Instance(cls, cls.name)
        self.carriers.namespaces = self._namespaces(cls.module)
        for holder in (cls, *self.carriers.namespaces):
            partial = Instance(holder, cls.name)
            self.run.calls.fill(partial, [], {})
            names = dict.fromkeys(n for c in reversed(holder.mro()) for n in c.fields)
            for name in names:
                record.slots[name] = partial.slots.get(name)
            self._fallbacks(holder)
        machine.record = record
        machine.record_fields = frozenset(record.slots)
        given = {*self.inputs.values, *self.inputs.unknown_values}
        unknown = sorted(given - machine.record_fields)
        if unknown:
            raise TargetError(f"{cls.name} has no field {', '.join(unknown)}")
        for name in record.slots:
            origin = Origin("default")
            if name in self.inputs.unknown_values:
                text = self.inputs.unknown_values[name]
                record.slots[name] = Unknown((f"{name} = {text}",))
                origin = Origin("given")
            elif name not in self.inputs.values and self.inputs.open:
                record.slots[name] = Unknown(self.inputs.open)
            if name in self.inputs.values:
                value = tables.to_value(self.inputs.values[name])
                record.slots[name] = self._converted(name, value)
                origin = Origin("given")
            if name == self.words.model_path and record.slots[name] is None:
                record.slots[name] = Unknown((f"{name}, which is not given",))
            machine.origins.slots[name] = Trace((origin,))
        machine.overlay.slots.update(record.slots)

    def _converted(self, name: str, value: object) -> object:
        """Convert given text as the argument's declaration says.

        Raises:
            Raised: the converter refuses the text.
        """
        first, _, rest = self.inputs.converters.get(name, "").partition(".")
        if not first or not isinstance(value, str):
            return value
        run = self.run
        cls = run.machine.record.cls if run.machine.record is not None else None
        for holder in (*([cls] if cls else []), *self.carriers.namespaces):
            if run.loader.defines(holder.module, first):
                converter = run.loader.member(holder.module, first)
                for part in filter(None, rest.split(".")):
                    converter = run.machine.attribute(converter, part)
                return run.machine.invoke(converter, [value], {})
        return value

    def _fallbacks(self, cls: Class) -> None:
        """Note what readers get where neither input nor derivation sets a field."""
        word = self.vocabulary.arguments.keywords["fallback"]
        for item in cls.node.body:
            if not (isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)):
                continue
            for node in ast.walk(item.annotation):
                if isinstance(node, ast.keyword) and node.arg == word:
                    if isinstance(node.value, ast.Constant):
                        self.run.machine.fallbacks[item.target.id] = node.value.value

    def _namespaces(self, module: Module) -> list[Class]:
        found: list[Class] = []
        for name in sorted(self.vocabulary.arguments.namespaces):
            if name in module.slots:
                value = self.run.machine.read(module, name)
                content = self.run.machine.content(value) if isinstance(value, Box) else ()
                if isinstance(content, tuple):
                    found += [c for c in content if isinstance(c, Class)]
        return found

    def facts(self) -> LaunchFacts:
        """Return what the launch makes of the settings."""
        return Exporter(self.run.machine, self.inputs).facts(self._failed, self.lost)

    @property
    def lost(self) -> Unknown | None:
        """Why nothing can be told about this launch, or None."""
        if self._failed is not None:
            return Unknown(("the server refuses to start",))
        return Unknown(("the evaluation was cut off",)) if self._cut else None

    @property
    def uncounted(self) -> tuple[str, int, int] | None:
        """A given setting, its value and the least that code was written for, where it is below.

        What the argument code itself sets is what the release's code knows.
        """
        for name, least in self.words.counts.items():
            value = self.run.machine.overlay.slots.get(name)
            if (
                self.lost is None
                and name in self.inputs.values
                and isinstance(value, int)
                and value < least
            ):
                return name, value, least
        return None

    def _ask(self, question: Callable[[], object]) -> object:
        """Answer a question on the finished evaluation and leave no trace."""
        if self.lost is not None:
            return self.lost
        machine = self.run.machine
        machine.steps, machine.tries = 0, machine.tries + 1
        depth = machine.heap.push()
        try:
            return question()
        except Raised as raised:
            return Unknown((raised.message or raised.kind,))
        except (CutOff, RecursionError):
            return Unknown(("the evaluation was cut off",))
        finally:
            machine.tries -= 1
            machine.heap.take(depth)

    def stopped(self, file: str, name: str) -> Refusal | None:
        """Return the raise that certainly stops the start of a worker class, or None."""
        return self._stop(lambda: make_worker(self.run, self.carriers, self.words, file, name))

    def capture_stopped(self) -> Refusal | None:
        """Return the raise that certainly stops a runner that lists its batch sizes, or None."""
        return self._stop(lambda: capture_sizes(self.run, self.carriers, self.words))

    def _stop(self, question: Callable[[], object]) -> Refusal | None:
        failed: list[Raised] = []

        def asked() -> object:
            try:
                return question()
            except Raised as raised:
                failed.append(raised)
                raise

        self._ask(asked)
        return refusal_of(failed[0]) if failed else None

    def pool_range(self) -> tuple[int | None, int | None]:
        """Return the least and the most requests that are admitted, None where not known."""
        found = self._ask(lambda: pool_bounds(self.run, self.carriers, self.words))
        ends = found if isinstance(found, tuple) and len(found) == 2 else (None, None)
        least, most = (end if isinstance(end, int) else None for end in ends)
        return least, most

    def kind(self, text: str, file: str = "") -> str:
        """Return the text or the class that an expression evaluates to, "" if not known."""
        node = ast.parse(text, mode="eval").body
        value = self._value(node, file, 0)
        if isinstance(value, Instance) and not isinstance(value, Carrier) and value.cls is not None:
            return value.cls.name
        return value if isinstance(value, str) else ""

    def capture_sizes(self) -> Fact:
        """Return the batch sizes that a decode runner captures: a tuple, ascending."""
        sizes = self._ask(lambda: capture_sizes(self.run, self.carriers, self.words))
        return fact_of(self.run.machine, "captured batch sizes", sizes)

    def truth(self, text: str, file: str = "", line: int = 0) -> Answer:
        """Return whether a test of the map holds.

        ``file`` is where the test stands, relative to the root: its module binds the names.
        With ``line``, names that its function binds before are followed.
        """
        machine = self.run.machine
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            return Answer(text, None, ("a running server: no test in the source",), (), ())
        machine.reads = []
        value = self._ask(
            lambda: truth_of(machine, machine.evaluate(node, self._scope(node, file, line)))
        )
        read = sorted(set(machine.reads))
        machine.reads = None
        operands = tuple(
            fact_of(machine, ast.unparse(part), self._value(part, file, line))
            for part in _operands(node)
        )
        if self._facts is None:
            self._facts = self.facts().facts
        facts = self._facts
        known = value if isinstance(value, bool) else None
        why = () if known is not None else merged(reasons_of(value)) or (text,)
        return Answer(text, known, why, operands, tuple(facts[n] for n in read if n in facts))

    def bound(self, name: str, file: str, line: int) -> str | None:
        """Return what the one assignment to a local name before a line gives it, as source."""
        module = module_name(file)
        function = self.library.function_at(module, line)
        found = binding(function, name, line) if function is not None else None
        one = found[0] if found is not None and len(found) == 1 else None
        return ast.unparse(one.value) if isinstance(one, ast.Assign) else None

    def stored(self, attribute: str, file: str, line: int) -> list[Kept]:
        """Return what the class around a line stores to ``self.attribute``."""
        return self.library.stored_in_class(module_name(file), line, attribute)

    def _value(self, node: ast.expr, file: str, line: int) -> object:
        return self._ask(lambda: self.run.machine.evaluate(node, self._scope(node, file, line)))

    def constructed(self, name: str) -> int | None:
        """Return the number that one constructor alone gives an attribute of ``self``, or None."""
        stored = self.library.stored_once(self.vocabulary.scope, name)
        if stored is None:
            return None
        value = self._value(stored.value, stored.module, stored.value.lineno)
        return value if type(value) is int else None

    def _scope(self, node: ast.expr, file: str, line: int) -> Scope:
        """Return the names of a test: local, its module's, the settings, carriers for the rest.

        ``file`` may be a module's name.
        """
        module = self.run.loader.load(module_name(file)) if file else None
        scope = Scope(module)
        self.run.machine.module = module
        function = self.library.function_at(module.name, line) if module and line else None
        name = self.library.class_at(module.name, line) if module and line else ""
        cls = self.run.loader.member(module, name) if module and name else None
        if isinstance(cls, Class):
            scope.slots["self"] = Carrier("self", methods=cls)
        self._fill_scope(scope, node, function, line)
        return scope

    def _fill_scope(
        self, scope: Scope, node: ast.AST, function: FunctionNode | None, line: int, depth: int = 3
    ) -> None:
        module = scope.parent if isinstance(scope.parent, Module) else None
        bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not _loads(n)}
        for part in ast.walk(node):
            if not isinstance(part, ast.Name) or part.id in bound or part.id in scope.slots:
                continue
            if function is not None and depth:
                statements = binding(function, part.id, line)
                if statements:
                    body = ast.Module(statements, [])
                    self._fill_scope(scope, body, function, line, depth - 1)
                    self.run.machine.execute(statements, scope)
                    continue
            if module is not None and self._binds(module, part.id):
                continue
            if self.run.builtins.has(part.id):
                continue
            scope.slots[part.id] = self._named(part.id)

    def _named(self, name: str) -> object:
        for dotted in self.words.names_in:
            module = self.run.loader.load(dotted)
            if module is not None and self._binds(module, name):
                return self.run.loader.member(module, name)
        bags = (f"{module}.{name}" for module in self.words.bag_modules)
        native = next(filter(None, map(self.run.tables.replaced, (name, *bags))), None)
        if native is not None:
            return native
        outside = name in self.words.outside or name in self.vocabulary.plugins
        return External(name) if outside else self.carriers.named(name)

    def _binds(self, module: Module, name: str) -> bool:
        if name in module.slots:
            return True
        return bool(module.stars) and self.run.loader.defines(module, name)


def _loads(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _operands(node: ast.expr) -> list[ast.expr]:
    """Return the parts of a test whose values decide it."""
    if isinstance(node, ast.BoolOp):
        return [part for value in node.values for part in _operands(value)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _operands(node.operand)
    parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node]
    return [part for part in parts if not isinstance(part, ast.Constant)]
