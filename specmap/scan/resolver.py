"""The resolver: one tree, one vocabulary, one platform, and everything that evaluates."""

from __future__ import annotations

import ast
from functools import cached_property

from specmap.codemap.condition import Atom, AtomKind, Condition, leaf, negate, substitute
from specmap.scan.access import Access
from specmap.scan.attributes import Attributes
from specmap.scan.calls import Calls
from specmap.scan.comparisons import Comparisons
from specmap.scan.decorated import Decorated
from specmap.scan.executor import Executor
from specmap.scan.expressions import Expressions
from specmap.scan.guards import Execution, Path, Store
from specmap.scan.index import Tree
from specmap.scan.members import Members
from specmap.scan.memo import Memo
from specmap.scan.module import ClassInfo, FunctionInfo, Module, Patch, last_name
from specmap.scan.names import Names
from specmap.scan.parameters import Parameters
from specmap.scan.truths import Truths, strongest
from specmap.scan.types import Types
from specmap.scan.values import (
    Arm,
    Arms,
    ClassRef,
    Const,
    EnumMember,
    External,
    Facts,
    Frame,
    FunctionRef,
    Instance,
    Opaque,
    Scope,
    Sequence,
    Value,
    only,
)
from specmap.scan.vocabulary import Vocabulary

_NO_FACTS: frozenset[object] = frozenset()


def _is_class_like(store: Store) -> bool:
    """Whether a store's receiver can be a class: a name, or something that a module has."""
    receiver = store.target.value
    while isinstance(receiver, ast.Attribute):
        receiver = receiver.value
    function = store.scope.frame.function
    if not isinstance(receiver, ast.Name) or function is None or receiver.id == "self":
        return False
    return receiver is store.target.value or receiver.id in function.module.imports


class _FactExecutor(Executor):
    """Runs a body with what its caller's walk knows."""

    def __init__(self, frame: Frame, facts: Facts) -> None:
        super().__init__(frame)
        self._facts = facts

    @property
    def facts(self) -> Facts:
        return self._facts


class Resolver:
    """Answers what an expression of the tree can be. Pure: it only reads."""

    def __init__(self, tree: Tree, vocabulary: Vocabulary, platform: str) -> None:
        self.tree = tree
        self.vocabulary = vocabulary
        self.platform = platform
        self.memo = Memo()
        self.types = Types(tree, self)
        self.expressions = Expressions(self)
        self.names = Names(self)
        self.access = Access(self)
        self.truths = Truths(self)
        self.attributes = Attributes(self)
        self.parameters = Parameters(self)
        self.members = Members(self)
        self.decorated = Decorated(self)
        self.comparisons = Comparisons(self)
        self.calls = Calls(self)
        # Attributes that some walk has seen another value stored to.
        self.windows: set[str] = set()
        self._any: dict[ClassInfo, Instance] = {}
        self._boundary: dict[str, bool] = {}
        self._outside_modules: dict[str, bool] = {}
        self._settings: dict[str, bool] = {}
        self._fact_sets: dict[int, tuple[Facts, object]] = {}
        self._fact_keys: dict[object, object] = {}
        self._kinds: dict[ast.expr, AtomKind] = {}
        self._outside: dict[str, list[FunctionInfo]] = {}
        self._patches: dict[str, list[tuple[Scope, Patch]]] = {}
        self._true_tests = vocabulary.platform_tests.get(platform, frozenset())
        self._all_tests = frozenset().union(*vocabulary.platform_tests.values())

    def evaluate(self, node: ast.expr, scope: Scope) -> Arms:
        """Return everything an expression can be."""
        return self.expressions.evaluate(node, scope)

    def platform_test(self, node: ast.Call) -> Arms | None:
        """Return the answer to ``is_cuda()`` and its like on the chosen platform."""
        name = last_name(node.func)
        if name not in self._all_tests or node.args or node.keywords:
            return None
        return only(Const(name in self._true_tests))

    def truth(self, node: ast.expr, scope: Scope) -> Condition:
        """Return when a test is true."""
        return self.truths.truth(node, scope)

    def condition(self, path: Path) -> Condition:
        """Return the conjunction of the tests on a path."""
        return self.truths.condition(path)

    def settled(self, condition: Condition) -> Condition:
        """Return a condition in the tests that settle its own where a worker runs."""
        return substitute(condition, self._follows)

    def _follows(self, atom: Atom) -> Condition | None:
        text = self.vocabulary.follows.get(atom.text)
        if text is None:
            return None
        settled = leaf(text.removeprefix("not "), AtomKind.LAUNCH)
        return negate(settled) if text.startswith("not ") else settled

    def pick(self, arms: Arms, index: tuple[int | None, ...]) -> Arms:
        """Take arms apart by tuple positions."""
        return self.access.pick(arms, index)

    def member(self, value: Value, node: ast.Attribute, scope: Scope) -> Arms:
        """Return one attribute of one value."""
        return self.access.member(value, node, scope)

    def run(self, frame: Frame, facts: Facts | None = None) -> Execution:
        """Return the run of a frame's body, under what a walk knows."""
        if not facts or frame.function is None:
            return self.attributes.execution(frame)
        return _FactExecutor(frame, facts).run(frame.function)

    def any_instance(self, cls: ClassInfo) -> Instance:
        """Return the object that stands for "some instance of this class"."""
        if cls not in self._any:
            self._any[cls] = Instance(cls, "any", rule="annotation")
        return self._any[cls]

    def stands_for(self, cls: ClassInfo, instance: Instance) -> None:
        """Let a known object stand for "some instance" of its class."""
        self._any[cls] = instance

    def outside_functions(self, attribute: str) -> list[FunctionInfo]:
        """Return functions in the scope that store to ``<something>.attribute``."""
        if attribute not in self._outside:
            found = []
            for module in self._storing(attribute):
                found += module.outside_stores.get(attribute, [])
            self._outside[attribute] = found
        return self._outside[attribute]

    def _storing(self, attribute: str) -> list[Module]:
        """Return the modules that assign some ``x.attribute``: of a decision, in any folder."""
        if attribute not in self.vocabulary.decisions:
            return self.tree.modules_storing(attribute, self.vocabulary.scope)
        marks = (f".{attribute} =", f".{attribute}=", f'"{attribute}"', f"'{attribute}'")
        return self.tree.modules_holding(marks)

    def patches(self, attribute: str) -> list[tuple[Scope, Patch]]:
        """Return the stores to ``<something>.attribute`` while modules are loaded.

        Of a method that decides, also those in functions: one that its module does not
        always call when it is loaded may run, or not.
        """
        if attribute not in self._patches:
            self._patches[attribute] = found = [
                (
                    Scope(Frame(None, module)),
                    patch._replace(always=patch.always and self.tree.is_named(module)),
                )
                for module in self._storing(attribute)
                for patch in module.patches.get(attribute, ())
            ]
            decides = attribute in self.vocabulary.decisions
            for function in self.outside_functions(attribute) if decides else ():
                runs = function.module.runs(function) and self.tree.is_named(function.module)
                for store in self.attributes.execution(
                    self.attributes.frame(None, function)
                ).stores:
                    if store.target.attr == attribute and _is_class_like(store):
                        always = runs and not store.path
                        found.append((store.scope, Patch(store.target, store.value, always)))
        return self._patches[attribute]

    def constructor_calls(self, cls: ClassInfo) -> list[tuple[ast.Call, FunctionInfo]]:
        """Return the calls in the scope that are written ``ClassName(...)``."""
        found = []
        for module in self.tree.modules_calling(cls.name, self.vocabulary.scope):
            found += module.calls.get(cls.name, [])
        return found

    def calls_of(self, method: FunctionInfo, name: str) -> list[ast.Call]:
        """Return the calls of something called ``name`` inside a method."""
        return [c for c, holder in method.module.calls.get(name, ()) if holder is method]

    def is_boundary(self, module: str) -> bool:
        """Whether functions of a module are named but not followed."""
        if module not in self._boundary:
            names = self.vocabulary.boundary
            found = any(module == b or module.startswith(f"{b}.") for b in names)
            self._boundary[module] = found
        return self._boundary[module]

    def is_outside(self, module: str) -> bool:
        """Whether a module is left unread: past the boundary, or another platform's."""
        if module not in self._outside_modules:
            self._outside_modules[module] = self._reads_not(module)
        return self._outside_modules[module]

    def _reads_not(self, module: str) -> bool:
        if self.is_settings(module):
            return False
        foreign = [
            name for platform, name in self.vocabulary.platform_modules if platform != self.platform
        ]
        return self.is_boundary(module) or any(
            module == name or module.startswith(f"{name}.") for name in foreign
        )

    def is_settings(self, module: str) -> bool:
        """Whether a module holds launch settings, which stay symbols."""
        if module not in self._settings:
            names = self.vocabulary.settings
            found = any(module == m or module.startswith(f"{m}.") for m in names)
            self._settings[module] = found
        return self._settings[module]

    def keeps_terms(self, target: FunctionRef) -> bool:
        """Whether a predicate's terms are kept apart: graph decisions and mode tests."""
        if isinstance(target.self_value, EnumMember):
            return target.self_value.cls.name in self.vocabulary.mode_enum
        in_place = target.function.owner is None and target.self_value is not None
        return in_place or target.function.name in self.vocabulary.decisions

    def as_setting(self, arms: Arms) -> Arms:
        """Merge the arms of a value that is one launch setting; ``()`` when it is not.

        What only a plugin can supply stays beside it as a plugin value.
        """
        names = self.vocabulary.settings_names
        classes = {arm.value.cls for arm in arms if isinstance(arm.value, Instance | EnumMember)}
        named = sorted((c for c in classes if c.name in names), key=lambda c: c.id)
        if not named:
            return ()
        found = [Arm(Instance(cls, "setting", rule="launch setting")) for cls in named]
        others = [
            a.value for a in arms if isinstance(a.value, Instance) and a.value.cls not in named
        ]
        found += [Arm(value) for value in others]
        if others or any(isinstance(arm.value, External | Opaque) for arm in arms):
            reason = "plugin factory class"
            found.append(Arm(Opaque(names[named[0].name], AtomKind.LAUNCH, None, True, reason)))
        return tuple(found)

    @cached_property
    def runner_names(self) -> frozenset[str]:
        """Attributes that somebody asks for a decision: ``x.name.can_run(...)``, or by a local."""
        found: set[str] = set()
        for decision in sorted(self.vocabulary.decisions):
            for module in self.tree.modules_calling(decision, self.vocabulary.scope):
                for call, function in module.calls.get(decision, ()):
                    asked = call.func.value if isinstance(call.func, ast.Attribute) else call.func
                    values = [asked]
                    if isinstance(asked, ast.Name):
                        values = [a.value for a in function.facts.assigns if asked.id in a.names]
                    found.update(v.attr for v in values if isinstance(v, ast.Attribute))
        return frozenset(found)

    def is_runner(self, arms: Arms) -> bool:
        """Whether a value can be an object that decides between graph and eager."""
        classes = {arm.value.cls for arm in arms if isinstance(arm.value, Instance)}
        return any(self.types.method(c, n) for c in classes for n in self.vocabulary.decisions)

    def setting_name(self, targets: list[FunctionRef]) -> str | None:
        """Return the printed name of the settings object whose methods these are."""
        names = self.vocabulary.settings_names
        found = {getattr(getattr(t.self_value, "cls", None), "name", "") for t in targets}
        return next((names[name] for name in sorted(found) if name in names), None)

    def kind_of(self, text: str) -> AtomKind:
        """Return what kind of fact a text is about, by the names in it."""
        if any(word in text for word in self.vocabulary.batch):
            return AtomKind.BATCH
        if any(word in text for word in self.vocabulary.launch):
            return AtomKind.LAUNCH
        return AtomKind.UNKNOWN

    def reduced_text(self, node: ast.expr, scope: Scope) -> str:
        """Return a test's text with its operands reduced to the launch settings they hold."""
        module = scope.frame.module
        text = module.text(node) if hasattr(node, "lineno") else ast.unparse(node)
        operands = [node]
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        for part in operands:
            if not isinstance(part, ast.Attribute | ast.Name):
                continue
            found = self.evaluate(part, scope)
            if len(found) == 1 and isinstance(found[0].value, Opaque):
                if found[0].value.kind is AtomKind.LAUNCH:
                    text = text.replace(module.text(part), found[0].value.text, 1)
        return text

    def kind_of_node(self, node: ast.expr, scope: Scope) -> AtomKind:
        """Return the kind of a test from its text, else from what its operands hold."""
        if node not in self._kinds:
            self._kinds[node] = self._kind_of_node(node, scope)
        return self._kinds[node]

    def _kind_of_node(self, node: ast.expr, scope: Scope) -> AtomKind:
        kind = self.kind_of(scope.frame.module.text(node))
        if kind is not AtomKind.UNKNOWN:
            return kind
        operands = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node]
        kinds = set()
        for part in operands:
            if isinstance(part, ast.Name | ast.Attribute):
                for arm in self.evaluate(part, scope):
                    if isinstance(arm.value, Opaque):
                        kinds.add(arm.value.kind)
        return strongest(kinds)

    def facts_key(self, facts: Facts) -> object:
        """Return what tells two sets of facts apart: the same key object for equal sets."""
        if not facts:
            return _NO_FACTS
        held = self._fact_sets.get(id(facts))
        if held is None or held[0] is not facts:
            key = frozenset(facts.items())
            held = (facts, self._fact_keys.setdefault(key, key))
            self._fact_sets[id(facts)] = held
        return held[1]

    def fact(self, receiver: Arms, attribute: str, facts: Facts) -> Value | None:
        """Return what a walk knows about an attribute: a forward mode, an assumption."""
        assumed = facts.get(f".{attribute}")
        if assumed is not None or attribute not in self.vocabulary.mode_attribute:
            return assumed
        for arm in receiver:
            if isinstance(arm.value, Instance) and arm.value.cls.id in facts:
                return facts[arm.value.cls.id]
        return facts.get("*")

    def _is_device(self, node: ast.expr) -> bool:
        return last_name(node) in self.vocabulary.device_names and not isinstance(node, ast.Call)

    def device_key(self, node: ast.expr, scope: Scope) -> object:
        """Return a constant key; a table indexed by device is indexed by the platform's."""
        if isinstance(node, ast.Constant):
            return node.value
        if self._is_device(node):
            return self.vocabulary.device_type(self.platform)
        found = self.evaluate(node, scope) if isinstance(node, ast.Name | ast.Attribute) else ()
        if len(found) == 1 and isinstance(found[0].value, Const):
            return found[0].value.value
        return None

    def device_test(self, left: ast.expr, right: ast.expr) -> bool | None:
        """Compare a device name with a string constant on the chosen platform."""
        if (
            isinstance(right, ast.Constant)
            and isinstance(right.value, str)
            and self._is_device(left)
        ):
            return right.value == self.vocabulary.device_type(self.platform)
        return None

    def classes(self, node: ast.expr, scope: Scope) -> set[ClassInfo] | None:
        """Return the classes that an ``isinstance`` tests for; ``None`` when not all are known."""
        found: set[ClassInfo] = set()
        for arm in self.evaluate(node, scope):
            items = arm.value.items if isinstance(arm.value, Sequence) else ((arm,),)
            if items is None:
                return None
            for inner in (a for group in items for a in group):
                if not isinstance(inner.value, ClassRef):
                    return None
                found.add(inner.value.cls)
        return found
