"""The wrap plan: which functions a rank wraps, and what the reader knows of each worker.

The agent reads only this, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from specmap.codemap.source import symbol_id
from specmap.codemap.verdict import SinkKind
from specmap.errors import TraceError

SCHEMA = 1


class Role(StrEnum):
    """Why a place is in the plan.

    ``entry`` the scheduler calls it, once a cycle; ``phase`` one phase runs in it; ``pass`` it
    carries the batch to a sink, or tells two phases apart; ``sink`` a pass ends in it;
    ``decision`` graph or eager is chosen in it.
    """

    ENTRY = "entry"
    PHASE = "phase"
    PASS = "pass"
    SINK = "sink"
    DECISION = "decision"


@dataclass(frozen=True, slots=True)
class BatchNames:
    """How a batch is read: its mode, and what holds its size, or one item a request."""

    attribute: str
    size: tuple[str, ...]
    enum: str
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphNames:
    """Graph classes (``module:class``), their methods, and where a runner keeps the size.

    ``collectives`` are parts of the names of kernels that are collectives.
    """

    classes: tuple[str, ...]
    replay: tuple[str, ...]
    capture: tuple[str, ...]
    size: tuple[str, ...]
    collectives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanTerm:
    """One conjunct of a decision, at its line; ``graph_when`` is the value that replay needs."""

    line: int
    text: str
    graph_when: bool


@dataclass(frozen=True, slots=True)
class Target:
    """One function to wrap, at its own lines.

    ``expressions`` are the ``(line, end_line)`` of tests that choose a way inside the
    function; ``terms`` what the decision asks.
    """

    id: int
    module: str
    qualname: str
    file: str
    line: int
    end_line: int
    roles: tuple[Role, ...]
    sink: SinkKind | None = None
    expressions: tuple[tuple[int, int], ...] = ()
    terms: tuple[PlanTerm, ...] = ()

    @property
    def timed(self) -> bool:
        """Whether its calls are recorded; of a decision alone only the answers are."""
        return bool({Role.ENTRY, Role.PHASE, Role.PASS, Role.SINK} & set(self.roles))

    @property
    def symbol(self) -> str:
        """The id of the function in the code map."""
        return symbol_id(self.file, self.qualname)


@dataclass(frozen=True, slots=True)
class Accept:
    """A call that hands over what a verify step accepted, in plain numbers.

    ``tokens`` are alternatives; each is the sum of named parameters (``"a + b"``), and the
    first whose parameters all exist counts.
    """

    id: int
    module: str
    qualname: str
    requests: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankNames:
    """Where a rank learns who it is: functions, and the parameters that say it, by meaning."""

    process: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]] = field(hash=False)


@dataclass(frozen=True, slots=True)
class SyncSite:
    """A place where the host waits for the device, and what it does."""

    file: str
    line: int
    end_line: int
    label: str


@dataclass(frozen=True, slots=True)
class PlanPhase:
    """One phase of a worker; ``chains`` are timed targets from the entry to a sink.

    ``scope`` is the method in which only this phase runs: its holder, or a method below where
    that is the entry; the entry itself where there is none.
    """

    name: str
    role: str
    holder: int
    scope: int
    modes: tuple[str, ...]
    chains: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class PlanWorker:
    """One worker: the class that the scheduler builds, its entry, and the phases that run."""

    name: str
    entry: int
    phases: tuple[PlanPhase, ...]


@dataclass(frozen=True, slots=True)
class WrapPlan:
    """Everything that the agent and the reader know about a release."""

    schema: int
    release: str | None
    package: str
    batch: BatchNames
    graph: GraphNames
    accept: tuple[Accept, ...]
    rank: RankNames
    targets: tuple[Target, ...]
    workers: tuple[PlanWorker, ...]
    syncs: tuple[SyncSite, ...] = ()


def to_json(plan: WrapPlan) -> str:
    """Return the plan as JSON, the same text for the same plan."""
    return json.dumps(asdict(plan), indent=1) + "\n"


def from_json(text: str | bytes, name: str = "plan.json") -> WrapPlan:
    """Read what :func:`to_json` wrote; ``name`` is the file in messages.

    Raises:
        TraceError: it is no plan, or of another schema.
    """
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise TraceError(f"{name}: schema {data['schema']}, this specmap reads {SCHEMA}")
        return _plan(data)
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{name}: not a wrap plan: {error}; trace again") from None


def _plan(data: Mapping[str, Any]) -> WrapPlan:
    return WrapPlan(
        schema=data["schema"],
        release=data["release"],
        package=data["package"],
        batch=_made(BatchNames, data["batch"]),
        graph=_made(GraphNames, {"collectives": (), **data["graph"]}),  # plans before them
        accept=tuple(_made(Accept, item) for item in data["accept"]),
        rank=_made(RankNames, data["rank"]),
        targets=tuple(_target(item) for item in data["targets"]),
        workers=tuple(
            PlanWorker(
                worker["name"],
                worker["entry"],
                tuple(
                    # Plans that were written before scopes: the holder.
                    _made(PlanPhase, {"scope": phase["holder"], **phase})
                    for phase in worker["phases"]
                ),
            )
            for worker in data["workers"]
        ),
        syncs=tuple(_made(SyncSite, item) for item in data["syncs"]),
    )


def _target(item: Mapping[str, Any]) -> Target:
    made = _made(
        Target,
        {
            **item,
            "roles": tuple(map(Role, item["roles"])),
            "sink": None if item["sink"] is None else SinkKind(item["sink"]),
            "terms": tuple(_made(PlanTerm, term) for term in item["terms"]),
        },
    )
    assert isinstance(made, Target)
    return made


def _made(kind: type[Any], item: Mapping[str, Any]) -> Any:
    return kind(**{each.name: _tuples(item[each.name]) for each in fields(kind)})


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
