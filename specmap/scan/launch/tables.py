"""What the machine, the environment and the model answer, in place of code that asks them.

Which function asks for what is data: ``[launch]`` in ``rules/vocabulary.toml`` pairs names
with the words in :data:`ANSWERS` or with a constant.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from specmap.scan.launch.machine import Machine
from specmap.scan.launch.modelclasses import ModelClasses
from specmap.scan.launch.values import (
    Box,
    Carrier,
    Instance,
    Maybe,
    Native,
    Unknown,
    View,
    reasons_of,
    same,
)
from specmap.scan.vocabulary import LaunchWords, Vocabulary

NAME_OF_DRAFT = "draft model config"
NAME_OF_MODEL = "model config"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the caller knows. ``None`` is not known, except where the field says otherwise.

    ``values`` are the fields as they were given; text is converted by the function that
    ``converters`` names, as the declaration calls it. ``unknown_values`` is the text of those
    given with a value that is not known. While ``open`` is not empty it names what may give
    further fields, and one that is not given is unknown.

    ``environment`` maps variables to their text, or to ``None`` for one that is known to be
    unset; those of ``unknown_environment`` have a value that is not known, and with
    ``rest_unset`` all others are unset. ``gpu_memory_mib`` is the least
    memory of the GPUs, in MiB; ``sm`` is the compute capability times ten (90 for Hopper).
    """

    values: Mapping[str, object] = field(default_factory=dict)
    converters: Mapping[str, str] = field(default_factory=dict)
    unknown_values: Mapping[str, str] = field(default_factory=dict)
    open: tuple[str, ...] = ()
    environment: Mapping[str, str | None] = field(default_factory=dict)
    unknown_environment: tuple[str, ...] = ()
    rest_unset: bool = True
    platform: str = "cuda"
    gpu_memory_mib: float | None = None
    sm: int | None = None
    model_config: Mapping[str, object] | None = None
    draft_config: Mapping[str, object] | None = None


class Tables:
    """The answers of one machine."""

    def __init__(
        self, machine: Machine, inputs: Inputs, vocabulary: Vocabulary, models: ModelClasses
    ) -> None:
        self.machine = machine
        self.inputs = inputs
        self.models = models
        self.words: LaunchWords = vocabulary.launch_words
        self._answers: dict[str, Callable[[list[object], dict[str, object]], object]] = {
            "gpu_memory": lambda p, k: self._or_unknown(inputs.gpu_memory_mib, "GPU memory"),
            "sm": lambda p, k: self._or_unknown(inputs.sm, "GPU architecture (SM)"),
            "capability": lambda p, k: self._capability(),
            "device": lambda p, k: vocabulary.device_type(inputs.platform),
            "config": self._config,
            "draft_keeps": self._draft_keeps,
            "model_file": self._model_file,
            "declare": self._declare,
            "live_view": lambda p, k: self._view(p, live=True),
            "snapshot": lambda p, k: self._view(p, live=False),
            "result": self._result,
            "bag": lambda p, k: Carrier("the published settings"),
            "capacity": lambda p, k: machine.capacity,
            "pass": self._pass,
            "materialize": lambda p, k: self._materialize(),
        }
        self._replaced = {
            name: self._native(name, answer) for name, answer in self.words.replaced.items()
        }
        for name in self.words.bags:
            for module in self.words.bag_modules:
                self._replaced[f"{module}.{name}"] = self._native(name, "bag")
        for name in self.words.derived:
            if name.endswith("()"):
                self._replaced[name[:-2]] = self._derived(name)
        tests = [(n, p) for p, names in vocabulary.platform_tests.items() for n in names]
        for name, platform in (*self.words.platforms.items(), *tests):
            self._platform(name, platform)
        if inputs.model_config is None:
            machine.blank = dict.fromkeys(self.words.config_classes, (NAME_OF_MODEL,))
        for name, value in inputs.environment.items():
            machine.environment.slots[name] = value
        for name in inputs.unknown_environment:
            machine.environment.slots[name] = Unknown((f"env {name}",))

    def _platform(self, name: str, platform: str) -> None:
        before = self._replaced.get(name)
        true_already = before is not None and before.call([], {}) is True
        holds = platform == self.inputs.platform or true_already
        self._replaced[name] = Native(name, lambda p, k: holds)

    def _native(self, name: str, answer: str) -> Native:
        if answer in self._answers:
            return Native(name, self._answers[answer])
        value = json.loads(answer)

        def constant(positional: list[object], keywords: dict[str, object]) -> object:
            if value is not None:
                self.machine.assumptions.add(f"{name} is {json.dumps(value)}")
            return self.to_value(value)

        return Native(name, constant)

    def _derived(self, name: str) -> Native:
        return Native(name, lambda p, k: self.machine.derived(name))

    def replaced(self, name: str) -> Native | None:
        """Return what answers in place of a function of this name, or None."""
        return self._replaced.get(name)

    def is_word(self, name: str) -> bool:
        """Whether a dotted name outside the tree has an answer."""
        return name in self._replaced

    # Values

    def to_value(self, value: object) -> object:
        """Turn parsed JSON or a given argument into a value of the machine."""
        if isinstance(value, list | tuple):
            return self.machine.box("list", tuple(map(self.to_value, value)))
        if isinstance(value, Mapping):
            content = {key: self.to_value(item) for key, item in value.items()}
            return self.machine.box("dict", content)
        return value

    def _or_unknown(self, value: object, reason: str) -> object:
        return Unknown((reason,)) if value is None else value

    def _capability(self) -> object:
        sm = self.inputs.sm
        if sm is None:
            return tuple(Unknown(("GPU architecture (SM)",)) for _ in range(2))
        return divmod(sm, 10)

    # The settings

    def _view(self, positional: list[object], *, live: bool) -> object:
        target = positional[0] if positional else None
        record = target.record if isinstance(target, View) else target
        if not isinstance(record, Instance) or record is not self.machine.record:
            return record
        overlay = self.machine.overlay
        return View(record, overlay, None if live else dict(overlay.slots))

    def _declare(self, positional: list[object], keywords: dict[str, object]) -> object:
        for name, value in keywords.items():
            if isinstance(value, Maybe):
                before = self.machine.overlay.slots.get(name)
                value = self.machine.heap.join_values([value.value, before], value.reasons)
            self.machine.set_field(name, value, raw=False)
        return None

    def declare_all(self, declared: object) -> None:
        """Declare what a table says; one that is not known may declare anything."""
        content = self.machine.content(declared) if isinstance(declared, Box) else declared
        if not isinstance(content, dict):
            reasons = reasons_of(content) or ("declarations that could not be told",)
            self.machine.spoil([self.machine.record], reasons[0])
            return
        outer = self.machine.sites
        self.machine.sites = declared.sites if isinstance(declared, Box) else {}
        try:
            self._declare([], {str(key): value for key, value in content.items()})
        finally:
            self.machine.sites = outer

    def _pass(self, positional: list[object], keywords: dict[str, object]) -> object:
        view = self._view(positional, live=False)
        self.declare_all(self.machine.invoke(positional[1], [view], {}))
        return None

    def _materialize(self) -> None:
        machine = self.machine
        assert machine.record is not None
        for name in sorted(machine.declared.slots):
            machine.heap.store(machine.record, name, machine.overlay.slots[name])

    def declare_items(self, value: object) -> None:
        """Declare what a list of ``(source, table)`` pairs says."""
        content = self.machine.content(value) if isinstance(value, Box) else value
        for item in content if isinstance(content, tuple) else (Unknown(reasons_of(content)),):
            pair = item.value if isinstance(item, Maybe) else item
            declared = pair[1] if isinstance(pair, tuple) and len(pair) == 2 else pair

            def arm(declared: object = declared) -> bool:
                self.declare_all(declared)
                return True

            if isinstance(item, Maybe):
                self.machine.branch(item.reasons, [arm, lambda: True])
            else:
                arm()

    def _result(self, positional: list[object], keywords: dict[str, object]) -> object:
        view = self._view(positional, live=True)
        name = positional[1] if len(positional) > 1 else None
        if isinstance(name, str):
            return self.machine.settled(name, self.machine.attribute(view, name))
        return self.machine.unknown(*reasons_of(name))

    # The model

    def _config(self, positional: list[object], keywords: dict[str, object]) -> object:
        path = positional[0] if positional else keywords.get(self.words.config_path)
        machine = self.machine
        assert machine.record is not None
        holders = (machine.record, machine.overlay)
        models = [holder.slots.get(self.words.model_path) for holder in holders]
        drafts = [holder.slots.get(self.words.draft_path) for holder in holders]
        if path is None or any(same(path, model) for model in models):
            return self._config_object(self.inputs.model_config, NAME_OF_MODEL)
        if any(same(path, draft) for draft in drafts):
            return self._config_object(self.inputs.draft_config, NAME_OF_DRAFT)
        return machine.unknown(NAME_OF_MODEL, NAME_OF_DRAFT)

    def _draft_keeps(self, positional: list[object], keywords: dict[str, object]) -> object:
        """Whether a part of the draft model has an attribute."""
        config, (part, name) = self.inputs.draft_config, positional
        named = config.get(self.words.config_class) if config is not None else None
        known = None
        if isinstance(named, list | tuple) and named and isinstance(named[0], str):
            known = self.models.draft_keeps(named[0], str(part), str(name))
        return self._or_unknown(known, NAME_OF_DRAFT)

    def _model_file(self, positional: list[object], keywords: dict[str, object]) -> object:
        """Whether a path is there: of the model, nothing but its configuration is looked at."""
        record, path = self.machine.record, positional[0] if positional else None
        names = (self.words.model_path, self.words.draft_path)
        models = [record.slots.get(name) for name in names] if record is not None else []
        if isinstance(path, str) and path in models:
            return path.startswith(("/", ".", "~"))
        inside = any(isinstance(m, str) and str(path).startswith(f"{m}/") for m in models)
        if inside and posixpath.basename(str(path)) != self.words.config_file:
            self.machine.assumptions.add("no file of the model but its config.json counts")
            return False
        return self.machine.unknown(f"the file {path}" if isinstance(path, str) else "a file")

    def _config_object(self, data: Mapping[str, object] | None, label: str) -> object:
        if data is None:
            return self.machine.unknown(label)
        instance = Instance(None, label, open_=True)
        for key, value in data.items():
            nested = isinstance(value, Mapping) and key.endswith("_config")
            if nested and key not in self.words.plain_configs and isinstance(value, Mapping):
                held: object = self._config_object(value, f"{label}: {key}")
            else:
                held = self.to_value(value)
            instance.slots[key] = held
        return instance

    def absent(self, value: object, name: str) -> object:
        """Whether a missing attribute is surely missing: then a note, else None.

        What a model's config.json leaves out has the default that the code asks for.
        """
        if isinstance(value, Instance):
            if value.cls is None:
                self.machine.assumptions.add(f"{value.label} has no {name}")
                return name
            return None if value.open else name
        return name if value is None or isinstance(value, Box | str | int | float | tuple) else None
