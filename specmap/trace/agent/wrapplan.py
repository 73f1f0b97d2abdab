"""The wrap plan: what the pipeline asks the agent to watch, read from plan.json."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Target:
    """One function or method; ``expressions`` are (line, end line[, column]) to rewrite."""

    id: int
    module: str
    qualname: str
    file: str
    line: int
    roles: frozenset[str]
    sink: str | None
    expressions: tuple[tuple[int, ...], ...]

    @property
    def symbol(self) -> str:
        """Return the dotted name."""
        return f"{self.module}.{self.qualname}"

    @property
    def entered(self) -> bool:
        """Return whether calls are recorded, not only decisions inside."""
        return self.roles != {"decision"}


@dataclass(frozen=True)
class Accept:
    """A function whose integer arguments say how many tokens were accepted.

    ``tokens``: alternatives, each a sum of parameters; the first whose parameters all exist counts.
    """

    id: int
    module: str
    qualname: str
    requests: str
    tokens: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Graph:
    """Classes of captured graphs and the names of their methods; ``size``: a runner's key.

    ``collectives``: parts of the names of kernels that are collectives.
    """

    classes: tuple[tuple[str, str], ...] = ()
    replay: tuple[str, ...] = ()
    capture: tuple[str, ...] = ()
    size: tuple[str, ...] = ()
    driver_launch: tuple[tuple[str, str], ...] = ()
    collectives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All of plan.json that the agent reads."""

    package: str
    targets: tuple[Target, ...]
    graph: Graph
    accept: tuple[Accept, ...]
    batch_parameters: tuple[str, ...] = ()
    mode: str = ""
    sizes: tuple[str, ...] = ()
    enum: tuple[str, str] | None = None
    processes: tuple[tuple[str, str], ...] = ()
    rank_names: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def modules(self) -> frozenset[str]:
        """Return the modules whose loading matters."""
        named = {target.module for target in self.targets} | {one.module for one in self.accept}
        pairs = (*self.graph.classes, *self.graph.driver_launch, *self.processes)
        return frozenset(named | {module for module, _ in pairs})


def read(path: str) -> Plan:
    """Return the plan in a file.

    Raises:
        OSError, ValueError, KeyError, TypeError: there is none, or it cannot be read.
    """
    with open(path, encoding="utf-8") as file:
        return parse(json.load(file))


def parse(raw: dict[str, Any]) -> Plan:
    """Return the plan in a JSON object.

    Raises:
        KeyError, TypeError, ValueError: a key is missing or of another type.
    """
    batch, rank = raw.get("batch") or {}, raw.get("rank") or {}
    names = rank.get("names")
    return Plan(
        package=raw["package"],
        targets=tuple(map(_target, raw["targets"])),
        graph=_graph(raw.get("graph") or {}),
        accept=tuple(map(_accept, raw.get("accept") or ())),
        batch_parameters=_words(batch.get("parameters")),
        mode=batch.get("attribute", ""),
        sizes=_words(batch.get("size")),
        enum=_place(batch["enum"]) if batch.get("enum") else None,
        processes=tuple(map(_place, rank.get("process") or ())),
        rank_names={key: _words(value) for key, value in (names or {}).items()},
    )


def _target(raw: dict[str, Any]) -> Target:
    return Target(
        id=int(raw["id"]),
        module=raw["module"],
        qualname=raw["qualname"],
        file=raw.get("file", ""),
        line=int(raw.get("line") or 0),
        roles=frozenset(raw.get("roles") or ()),
        sink=raw.get("sink"),
        expressions=tuple(tuple(map(int, one)) for one in raw.get("expressions") or ()),
    )


def _graph(raw: dict[str, Any]) -> Graph:
    return Graph(
        classes=tuple(map(_place, raw.get("classes") or ())),
        replay=_words(raw.get("replay")),
        capture=_words(raw.get("capture")),
        size=_words(raw.get("size")),
        driver_launch=tuple(map(_place, raw.get("driver_launch") or ())),
        collectives=_words(raw.get("collectives")),
    )


def _accept(raw: dict[str, Any]) -> Accept:
    return Accept(
        id=int(raw.get("id") or 0),
        module=raw["module"],
        qualname=raw["qualname"],
        requests=raw.get("requests", ""),
        tokens=tuple(
            tuple(part.strip() for part in one.split("+")) for one in _words(raw.get("tokens"))
        ),
    )


def _place(raw: str | dict[str, str]) -> tuple[str, str]:
    """Return (module, qualified name) of ``"module:name"`` or of an object with both."""
    if isinstance(raw, dict):
        return raw["module"], raw["qualname"]
    module, _, name = raw.partition(":")
    return module, name


def _words(raw: str | list[str] | None) -> tuple[str, ...]:
    return (raw,) if isinstance(raw, str) else tuple(raw or ())
