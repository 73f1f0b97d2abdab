"""The names that SGLang changes from release to release, read from ``vocabulary.toml``.

The analysis knows what a runner, a decision or a forward mode is; what SGLang calls them
is data. A name holds for all releases unless it carries a range.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from specmap.errors import RulesError


def rules_folder() -> Path:
    """Return the folder of the rules: packaged in a wheel, else the checkout's ``rules``.

    Raises:
        RulesError: neither is there.
    """
    package = Path(str(files("specmap")))
    for folder in (package / "_rules", package.parent / "rules"):
        if (folder / "vocabulary.toml").is_file():
            return folder
    raise RulesError("vocabulary.toml is missing: reinstall specmap, or run it from a checkout")


@dataclass(frozen=True, slots=True)
class ArgumentNames:
    """The table ``[arguments]``: how arguments are declared and servers started."""

    settings: frozenset[str]
    modules: tuple[str, ...]
    namespaces: frozenset[str]
    register: frozenset[str]
    rename: frozenset[str]
    annotated: frozenset[str]
    metadata: frozenset[str]
    keywords: Mapping[str, str]
    actions: Mapping[str, str]
    retired: frozenset[str]
    types: Mapping[str, str]
    launchers: frozenset[str]
    programs: frozenset[str]
    calls: frozenset[str]
    program_options: frozenset[str]
    model: tuple[str, ...]
    config: tuple[str, ...]
    logged_batch: tuple[str, ...]
    logged_running: tuple[str, ...]
    logged_graph: tuple[str, ...]
    logged_rank: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaunchWords:
    """What the evaluation of SGLang's argument code has to know by name."""

    resolve: tuple[str, ...]
    check: tuple[str, ...]
    adjust: tuple[str, ...]
    registries: tuple[str, ...]
    ignored: frozenset[str]
    views: frozenset[str]
    replaced: Mapping[str, str]
    platforms: Mapping[str, str]
    constants: frozenset[str]
    stash: frozenset[str]
    model_path: str
    draft_path: str
    config_path: str
    config_file: str
    config_kind: str
    config_class: str
    models: str
    renamed_in: str
    config_classes: frozenset[str]
    plain_configs: frozenset[str]
    algorithm: Mapping[str, str]
    algorithm_names: frozenset[str]
    model_names: frozenset[str]
    model: tuple[str, ...]
    bags: frozenset[str]
    bag_modules: tuple[str, ...]
    published: Mapping[str, str]
    derived: Mapping[str, str]
    moving: Mapping[str, str]
    names_in: tuple[str, ...]
    outside: frozenset[str]
    pool: Mapping[str, str]
    draft_marks: frozenset[str]
    capture: tuple[str, ...]
    capture_width: str
    pool_size: tuple[str, ...]
    of_model: Mapping[str, str]
    built: Mapping[str, str]
    bare: tuple[str, ...]
    started: tuple[str, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names by meaning; see the comments in ``rules/vocabulary.toml``."""

    package: str
    speculative: str
    scope: tuple[str, ...]
    boundary: tuple[str, ...]
    scheduler: frozenset[str]
    scheduler_steps: tuple[str, ...]
    entry: frozenset[str]
    mode_enum: frozenset[str]
    mode_attribute: frozenset[str]
    overwritten: frozenset[str]
    modes: Mapping[str, tuple[str, ...]]
    assumed: Mapping[str, Mapping[str, bool]]
    model_runner: frozenset[str]
    model_attribute: str
    decisions: frozenset[str]
    capture_mode: frozenset[str]
    swaps: Mapping[str, str]
    graph_types: frozenset[str]
    graph_calls: frozenset[str]
    graph_call_names: frozenset[str]
    piecewise: frozenset[str]
    auxiliary: frozenset[str]
    capture_methods: frozenset[str]
    flags: Mapping[str, frozenset[str]]
    platform_tests: Mapping[str, frozenset[str]]
    settings: tuple[str, ...]
    settings_names: Mapping[str, str]
    device_names: frozenset[str]
    device_types: Mapping[str, str]
    plugins: frozenset[str]
    same: Mapping[str, str]
    follows: Mapping[str, str]
    launch: tuple[str, ...]
    batch: tuple[str, ...]
    fixed_width: tuple[str, ...]
    cpu_names: tuple[str, ...]
    platform_modules: tuple[tuple[str, str], ...]
    labels: Mapping[str, tuple[str, ...]]
    hazards: Mapping[str, tuple[str, ...]]
    launch_words: LaunchWords
    arguments: ArgumentNames

    def device_type(self, platform: str) -> str:
        """Return PyTorch's name of the platform's device (``torch.device(...).type``)."""
        return self.device_types.get(platform, platform)


def load_vocabulary(path: Path | None = None) -> Vocabulary:
    """Read the vocabulary.

    Raises:
        RulesError: the file is missing, is not UTF-8 or TOML, or lacks a key.
    """
    path = path or rules_folder() / "vocabulary.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RulesError(f"{path.name}: {error}") from error
    try:
        return _build(data)
    except (KeyError, TypeError) as error:
        raise RulesError(f"{path.name}: missing or wrong key {error}") from error


def _build(data: dict[str, dict[str, list[str]]]) -> Vocabulary:
    tree, scheduler, mode = data["tree"], data["scheduler"], data["mode"]
    runner = data["runner"]
    return Vocabulary(
        package=tree["package"][0],
        speculative=tree["speculative"][0],
        scope=tuple(tree["scope"]),
        boundary=tuple(tree["boundary"]),
        scheduler=frozenset(scheduler["class"]),
        scheduler_steps=tuple(scheduler["steps"]),
        entry=frozenset(scheduler["entry"]),
        mode_enum=frozenset(mode["enum"]),
        mode_attribute=frozenset(mode["attribute"]),
        overwritten=frozenset(mode["overwritten"]),
        modes={key: tuple(value) for key, value in data["modes"].items()},
        assumed={
            walk: {name.lstrip("!"): not name.startswith("!") for name in names}
            for walk, names in data["assumed"].items()
        },
        model_runner=frozenset(runner["model_runner"]),
        model_attribute=runner["model_attribute"][0],
        decisions=frozenset(runner["decisions"]),
        capture_mode=frozenset(runner["capture_mode"]),
        swaps=_pairs(runner["swaps"]),
        graph_types=frozenset(runner["graph_types"]),
        graph_calls=frozenset(runner["graph_calls"]),
        graph_call_names=frozenset(runner["graph_call_names"]),
        piecewise=frozenset(runner["piecewise"]),
        auxiliary=frozenset(runner["auxiliary"]),
        capture_methods=frozenset(runner["capture_methods"]),
        flags={key: frozenset(value) for key, value in data["flags"].items()},
        platform_tests={key: frozenset(value) for key, value in data["platform"].items()},
        settings=tuple(data["settings"]["modules"]),
        settings_names=dict(pair.split("=", 1) for pair in data["settings"]["names"]),
        device_names=frozenset(data["device"]["names"]),
        device_types=_pairs(data["device"]["types"]),
        plugins=frozenset(data["plugins"]["roots"]),
        same=dict(pair.split(" := ", 1) for pair in data["atoms"]["same"]),
        follows=dict(pair.split(" := ", 1) for pair in data["atoms"]["follows"]),
        launch=tuple(data["atoms"]["launch"]),
        batch=tuple(data["atoms"]["batch"]),
        fixed_width=tuple(data["verify"]["fixed_width"]),
        cpu_names=tuple(data["sync"]["cpu_names"]),
        platform_modules=tuple(
            (platform, module)
            for platform, modules in data["platform_modules"].items()
            for module in modules
        ),
        labels={key: tuple(value) for key, value in data["sync_labels"].items()},
        hazards={key: tuple(value) for key, value in data["hazards"].items()},
        arguments=_arguments(data["arguments"]),
        launch_words=_launch_words(data["launch"]),
    )


def _arguments(table: dict[str, list[str]]) -> ArgumentNames:
    return ArgumentNames(
        settings=frozenset(table["class"]),
        modules=tuple(table["modules"]),
        namespaces=frozenset(table["namespaces"]),
        register=frozenset(table["register"]),
        rename=frozenset(table["rename"]),
        annotated=frozenset(table["annotated"]),
        metadata=frozenset(table["metadata"]),
        keywords=_pairs(table["keywords"]),
        actions=_pairs(table["actions"]),
        retired=frozenset(table["retired"]),
        types=_pairs(table["types"]),
        launchers=frozenset(table["launchers"]),
        programs=frozenset(table["programs"]),
        calls=frozenset(table["calls"]),
        program_options=frozenset(table["program_options"]),
        model=tuple(table["model"]),
        config=tuple(table["config"]),
        logged_batch=tuple(table["logged_batch"]),
        logged_running=tuple(table["logged_running"]),
        logged_graph=tuple(table["logged_graph"]),
        logged_rank=tuple(table["logged_rank"]),
    )


def _launch_words(table: dict[str, list[str]]) -> LaunchWords:
    return LaunchWords(
        resolve=tuple(table["resolve"]),
        check=tuple(table["check"]),
        adjust=tuple(table["adjust"]),
        registries=tuple(table["registries"]),
        ignored=frozenset(table["ignored"]),
        views=frozenset(table["views"]),
        replaced=_pairs(table["replaced"]),
        platforms=_pairs(table["platforms"]),
        constants=frozenset(table["constants"]),
        stash=frozenset(table["stash"]),
        model_path=table["model_path"][0],
        draft_path=table["draft_path"][0],
        config_path=table["config_path"][0],
        config_file=table["config_file"][0],
        config_kind=table["config_kind"][0],
        config_class=table["config_class"][0],
        models=table["models"][0],
        renamed_in=table["renamed_in"][0],
        config_classes=frozenset(table["config_classes"]),
        plain_configs=frozenset(table["plain_configs"]),
        algorithm=_pairs(table["algorithm"]),
        algorithm_names=frozenset(table["algorithm_names"]),
        model_names=frozenset(table["model_names"]),
        model=tuple(table["model"]),
        bags=frozenset(table["bags"]),
        bag_modules=tuple(table["bag_modules"]),
        published=_pairs(table["published"]),
        derived=dict(item.split(" := ", 1) for item in table["derived"]),
        moving=_pairs(table["moving"]),
        names_in=tuple(table["names_in"]),
        outside=frozenset(table["outside"]),
        pool=_pairs(table["pool"]),
        draft_marks=frozenset(table["draft_marks"]),
        capture=tuple(table["capture"]),
        capture_width=table["capture_width"][0],
        pool_size=tuple(table["pool_size"]),
        of_model=_pairs(table["of_model"]),
        built=_pairs(table["built"]),
        bare=tuple(table["bare"]),
        started=tuple(table["started"]),
        counts={name: int(least) for name, least in _pairs(table["counts"]).items()},
    )


def _pairs(items: list[str]) -> dict[str, str]:
    return dict(item.split("=", 1) for item in items)
