"""The objects of the running server that carry settings: workers, runners, published bags."""

from __future__ import annotations

import ast

from specmap.scan.launch.building import Building
from specmap.scan.launch.interpreter import Interpreter
from specmap.scan.launch.machine import Machine
from specmap.scan.launch.values import (
    Bound,
    Carrier,
    Class,
    Function,
    Lazy,
    Native,
    Scope,
    Unknown,
    View,
)
from specmap.scan.vocabulary import Vocabulary


class Carriers:
    """Answers what an attribute of a carrier is, after the settings are derived."""

    def __init__(self, run: Interpreter, vocabulary: Vocabulary) -> None:
        self.run = run
        self.words = vocabulary.launch_words
        self.settings_names = {
            name for cls, name in vocabulary.settings_names.items()
            if cls in vocabulary.arguments.settings
        }  # fmt: skip
        self.algorithm_names = {
            *self.words.algorithm_names,
            *(set(vocabulary.settings_names.values()) - self.settings_names),
        }
        self.namespaces: list[Class] = []
        self._derived = {
            name: ast.parse(text, mode="eval").body for name, text in self.words.derived.items()
        }
        self.building = Building(run.machine, self.words.built)
        run.machine.bare = self.words.bare
        run.machine.carried = self.carried
        run.machine.derived = self.derived

    def settings(self) -> object:
        """Return the settings as the running server reads them."""
        machine = self.run.machine
        assert machine.record is not None
        return View(machine.record, machine.overlay) if machine.declared.slots else machine.record

    def named(self, name: str) -> object:
        """Return what a name stands for that no module binds."""
        if name in self.settings_names:
            return self.settings()
        return self.carried(Carrier(""), name)

    def carried(self, owner: Carrier, name: str) -> object:
        """Return an attribute of a carrier; what nothing settles is another carrier."""
        machine = self.run.machine
        if name in self.settings_names:
            return self.settings()
        if name in self.algorithm_names and owner.label != "the published settings":
            return self.algorithm()
        if name in self.words.model_names:
            return self.model()
        if name in self.words.of_model:
            return machine.invoke(self.dotted(self.words.of_model[name]), [self.model()], {})
        if owner.label and self._moves(name):
            return Unknown((f"{name} changes while the server runs",))
        if owner.label == "self" and self.building.sets(name):
            return self.building.attribute(machine.module, name)
        if owner.label and name in machine.record_fields:
            view = View(machine.record, machine.overlay)  # type: ignore[arg-type]
            return machine.settled(name, machine.attribute(view, name))
        if name in self._derived:
            return self.derived(name)
        published = self._published(name) if owner.label else None
        if published is not None:
            return published
        return Carrier(f"{owner.label}.{name}" if owner.label else name)

    def _moves(self, name: str) -> bool:
        """Whether a setting may change while the server runs: its switch is not surely off."""
        switch = self.words.moving.get(name)
        if switch is None or switch not in self.run.machine.record_fields:
            return False
        return self.run.machine.overlay.slots.get(switch) is not False

    def derived(self, name: str) -> object:
        """Return what the vocabulary says a server derives under this name."""
        scope = Scope(None)
        for settings in self.settings_names:
            scope.slots[settings] = self.settings()
        for model in self.words.model_names:
            scope.slots[model] = Lazy(self.model)
        unknown = Native("unknown", lambda p, k: Unknown((str(p[0]),)))
        scope.slots["unknown"] = unknown
        scope.slots["tree"] = Native("tree", lambda p, k: self.dotted(str(p[0])))
        return self.run.machine.evaluate(self._derived[name], scope)

    def algorithm(self) -> object:
        """Return the algorithm object."""
        words, machine = self.words.algorithm, self.run.machine
        made_by = machine.attribute(self.dotted(words["class"]), words["make"])
        value = machine.attribute(self.settings(), words["field"])
        return machine.invoke(made_by, [value], {})

    def model(self) -> object:
        """Return the model's configuration object, whose own modules are always run."""
        machine = self.run.machine
        outer, machine.within = machine.within, ()
        try:
            return self._model(machine, self.settings())
        finally:
            machine.within = outer

    def _model(self, machine: Machine, settings: object) -> object:
        record = machine.record
        for word in self.words.model:
            owner = record.cls if record is not None else None
            if "." not in word and owner is not None and word in owner.slots:
                return machine.invoke(machine.attribute(record, word), [], {})
            made_by = self.dotted(word) if "." in word else None
            if isinstance(made_by, Function | Bound):
                return machine.invoke(made_by, [settings], {})
        return machine.unknown("model config")

    def of_runner(self, name: str) -> tuple[Class, Carrier, Bound] | None:
        """Return a class, an object of the target's and its method, by ``module.Class.method``.

        None where the tree has no such class or method.
        """
        dotted, _, method = name.rpartition(".")
        owner = self.dotted(dotted)
        if not isinstance(owner, Class) or not any(method in c.slots for c in owner.mro()):
            return None
        runner = Carrier(owner.name, owner)
        runner.slots.update(dict.fromkeys(self.words.draft_marks, False))
        call = self.run.machine.attribute(runner, method)
        return (owner, runner, call) if isinstance(call, Bound) else None

    def dotted(self, name: str) -> object:
        """Return a module member, or an attribute of one, by its dotted name."""
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = self.run.loader.load(".".join(parts[:cut]))
            if module is not None:
                value = self.run.machine.member(module, parts[cut])
                for part in parts[cut + 1 :]:
                    value = self.run.machine.attribute(value, part)
                return value
        return self.run.machine.unknown(name)

    def _published(self, name: str) -> object | None:
        """Return a setting that is computed when the settings are published."""
        for cls in self.namespaces:
            for item in cls.node.body:
                if isinstance(item, ast.Assign | ast.AnnAssign) and _target(item) == name:
                    function = self._function_of(item.value)
                    if function is not None:
                        target = self.dotted(function)
                        return self.run.machine.invoke(target, [self.settings()], {})
        return None

    def _function_of(self, node: ast.expr | None) -> str | None:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            return None
        word = self.words.published.get(node.func.id)
        for keyword in node.keywords:
            if keyword.arg == word and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
        return None


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else ""
