"""Host synchronisations on a worker's cycle, with their place between the passes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from specmap.codemap.condition import FALSE, TRUE
from specmap.codemap.graph import HostSync, SyncKind
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.scan.devices import Devices
from specmap.scan.guards import Path, Test, Unseen
from specmap.scan.idioms import Idiom, Idioms
from specmap.scan.module import FunctionInfo, last_name
from specmap.scan.nodes import expressions_below
from specmap.scan.reached import Impossible, Reached
from specmap.scan.records import guards_of
from specmap.scan.resolver import Resolver
from specmap.scan.synclabels import Body, Labels
from specmap.scan.tensortypes import UNKNOWN, comprehension_scope
from specmap.scan.values import Scope
from specmap.scan.walk import Walk
from specmap.scan.walked import Activation, Hit

_BEFORE_DRAFT = f"{PhaseName.DRAFT_EXTEND}->{PhaseName.DRAFT}"
# The place that the record of an operation met at several places keeps.
_RANKS = {
    f"{PhaseName.DRAFT}->{PhaseName.VERIFY}": 0,
    f"{PhaseName.VERIFY}->{PhaseName.DRAFT_EXTEND}": 1,
    f"{PhaseName.VERIFY}->{PhaseName.DRAFT}": 2,
    _BEFORE_DRAFT: 3,
}
# On the CPU these are plain Python: nobody would take them for a synchronisation.
_ORDINARY_ON_CPU = frozenset(
    {"truth-test", "tensor-size", "tensor-bound", "contains", "mask-store", "text"}
)


@dataclass(frozen=True, slots=True, eq=False)
class FoundSync:
    """One operation as one walk met it; see :class:`specmap.codemap.graph.HostSync`."""

    function: FunctionInfo
    node: ast.expr
    kind: SyncKind
    operation: str
    device: str
    label: str
    rule: str
    path: Path
    passes: int
    consumer: str = ""
    phase_between: str = ""
    captured: bool = False
    where: str = "worker"
    own: bool = False
    host_draft: bool = False

    @property
    def span(self) -> Span:
        """The lines of the operation."""
        return self.function.module.span(self.node)


class SyncFinder:
    """Finds the synchronisations of walks over one tree; shared code is read once."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._idioms = Idioms(Devices(resolver))
        self._labels = Labels(resolver)
        self._bodies: dict[FunctionInfo, Body] = {}
        # The activations are held, so that an id stays the id of one object.
        self._found: dict[int, tuple[Activation, list[FoundSync]]] = {}
        self._reached = Reached(resolver, lambda activation: bool(self._in(activation)))

    def find(
        self,
        walk: Walk,
        phase_of: Callable[[Hit], PhaseName | None],
        captured: Callable[[Activation], bool],
        impossible: Impossible = lambda condition: False,
    ) -> list[FoundSync]:
        """Return the synchronisations of a walk, placed between its passes.

        ``phase_of`` names the phase of a sink, ``captured`` tells code that a graph runner
        captures, ``impossible`` what cannot hold where the worker runs. A walk of kind
        ``scheduler`` stands before the draft of the next cycle.
        """
        places = _Places(walk, phase_of)
        made: set[str] = set()
        met: dict[tuple[int, int | None], tuple[Activation, int | None]] = {}
        for activation in walk.activations:
            met[id(activation), None] = (activation, None)
        for activation, passes in self._reached.of(walk, impossible):
            met.setdefault((id(activation), passes), (activation, passes))
        for function in dict.fromkeys(activation.function for activation, _ in met.values()):
            made.update(_made(function))
        line = self._resolver.types.mro(walk.worker.cls)
        found: list[FoundSync] = []
        for activation, at in met.values():
            inside = captured(activation)
            owner = activation.function.owner
            own = owner is not None and (owner in line or owner.name in made)
            for sync in self._in(activation):
                if self._reached.excludes(sync.path, impossible):
                    continue
                place = places.between(sync.passes if at is None else at)
                found.append(
                    replace(
                        sync,
                        phase_between=place,
                        captured=inside,
                        where=places.where,
                        own=own,
                        host_draft=places.host_draft,
                    )
                )
        return found

    def _in(self, activation: Activation) -> list[FoundSync]:
        key = id(activation)
        if key not in self._found:
            self._found[key] = (activation, list(self._detect(activation)))
        return self._found[key][1]

    def _detect(self, activation: Activation) -> Iterator[FoundSync]:
        function = activation.function
        if function not in self._bodies:
            self._bodies[function] = Body(function)
        body = self._bodies[function]
        module = function.module
        earlier: list[ast.expr] = []
        for seen in activation.seen:
            for idiom, scope, path in self._visit(seen.node, seen.scope, seen.path, body):
                if idiom.kind is SyncKind.NONE and idiom.rule in _ORDINARY_ON_CPU:
                    continue
                if idiom.rule == "text" and (id(seen.node) in body.raised or _is_caught(path)):
                    continue  # what an error says is made when there is one
                label = self._labels.label(idiom, scope, path, body, activation.chain, earlier)
                consumer = "" if idiom.consumer is None else module.text(idiom.consumer)
                yield FoundSync(
                    function,
                    idiom.node,
                    idiom.kind,
                    module.text(idiom.node),
                    idiom.device,
                    label,
                    idiom.rule,
                    path,
                    seen.passes,
                    consumer,
                )
                if idiom.reads_back and idiom.kind is SyncKind.EXPLICIT and idiom.operand:
                    earlier.append(idiom.operand)

    def _visit(
        self, node: ast.expr, scope: Scope, path: Path, body: Body
    ) -> Iterator[tuple[Idiom, Scope, Path]]:
        if id(node) in body.masked:
            target, value = body.masked[id(node)]
            for idiom in self._idioms.masked_store(target, value, scope):
                yield idiom, scope, path
        yield from self._expression(node, scope, path, id(node) in body.tests)

    def _expression(
        self, node: ast.expr, scope: Scope, path: Path, tested: bool
    ) -> Iterator[tuple[Idiom, Scope, Path]]:
        """Visit in the order Python evaluates; arms that a constant cuts are left out."""
        if isinstance(node, ast.BoolOp):
            yield from self._boolean(node, scope, path, tested)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self._expression(node.operand, scope, path, True)
        elif isinstance(node, ast.IfExp):
            yield from self._choice(node, scope, path, tested)
        elif isinstance(node, ast.Lambda):
            return
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            yield from self._comprehension(node, scope, path)
        else:
            for child in expressions_below(node):
                yield from self._expression(child, scope, path, False)
            for idiom in self._idioms.at(node, scope):
                yield idiom, scope, path
            if tested:
                for idiom in self._idioms.truth(node, scope):
                    yield idiom, scope, path

    def _boolean(
        self, node: ast.BoolOp, scope: Scope, path: Path, tested: bool
    ) -> Iterator[tuple[Idiom, Scope, Path]]:
        goes_on = isinstance(node.op, ast.And)
        for value in node.values:
            last = value is node.values[-1]
            yield from self._expression(value, scope, path, tested or not last)
            if self._resolver.truth(value, scope) == (FALSE if goes_on else TRUE):
                return
            path = (*path, Test(value, scope, goes_on))

    def _choice(
        self, node: ast.IfExp, scope: Scope, path: Path, tested: bool
    ) -> Iterator[tuple[Idiom, Scope, Path]]:
        yield from self._expression(node.test, scope, path, True)
        truth = self._resolver.truth(node.test, scope)
        for arm, branch, cut in ((node.body, True, FALSE), (node.orelse, False, TRUE)):
            if truth != cut:
                inner = (*path, Test(node.test, scope, branch))
                yield from self._expression(arm, scope, inner, tested)

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        scope: Scope,
        path: Path,
    ) -> Iterator[tuple[Idiom, Scope, Path]]:
        inner = comprehension_scope(node, scope)
        for index, generator in enumerate(node.generators):
            outer = inner if index else scope
            yield from self._expression(generator.iter, outer, path, False)
            for test in generator.ifs:
                yield from self._expression(test, inner, path, True)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in parts:
            yield from self._expression(part, inner, path, False)


def _is_caught(path: Path) -> bool:
    """Whether a place is only reached after an exception."""
    return any(isinstance(i, Unseen) and isinstance(i.node, ast.ExceptHandler) for i in path)


class _Places:
    """Turns "so many sinks before" into "after this phase, before that one"."""

    def __init__(self, walk: Walk, phase_of: Callable[[Hit], PhaseName | None]) -> None:
        self.where = "scheduler" if walk.kind == "scheduler" else "worker"
        named = [(index, phase_of(hit)) for index, hit in enumerate(walk.hits)]
        self._hits = [(index, phase) for index, phase in named if phase is not None]
        phases = {phase for _, phase in self._hits}
        self.host_draft = PhaseName.VERIFY in phases and PhaseName.DRAFT not in phases
        if self.host_draft:
            # A worker that drafts without a model pass drafts on the host, first.
            self._hits.insert(0, (-1, PhaseName.DRAFT))

    def between(self, passes: int) -> str:
        """Return ``before->after``; two hits of one phase in a row are its two arms."""
        if self.where == "scheduler":
            return _BEFORE_DRAFT
        if not self._hits:
            return ""
        behind = [phase for index, phase in self._hits if index < passes]
        ahead = [phase for index, phase in self._hits if index >= passes]
        after = (ahead or behind)[0]
        cycle = [*ahead, *behind]
        before = next((phase for phase in reversed(cycle) if phase is not after), after)
        return f"{before}->{after}"


def _made(function: FunctionInfo) -> Iterator[str]:
    """Names that a function calls or calls something of: the classes it makes are among them."""
    for call in function.facts.calls:
        yield last_name(call.func)
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            yield call.func.value.id


def merge(found: Mapping[str, list[FoundSync]]) -> tuple[HostSync, ...]:
    """Join what the walks of all workers found: one record per place and operation.

    ``found`` is keyed by worker class id. An operation met at several places of the cycle
    keeps one, draft to verify first; a device that any walk knows beats ``unknown``.
    """
    groups: dict[tuple[str, int, int, str], list[tuple[str, FoundSync]]] = {}
    for worker, syncs in found.items():
        for sync in syncs:
            key = (sync.span.file, sync.span.line, sync.span.end_line, sync.operation)
            groups.setdefault(key, []).append((worker, sync))
    return tuple(_record(groups[key]) for key in sorted(groups))


def _record(group: list[tuple[str, FoundSync]]) -> HostSync:
    # An annotation may stand for every subclass; who makes the object is who runs its code.
    group = [item for item in group if item[1].own] or group
    waits = [item for item in group if item[1].kind is not SyncKind.NONE] or group
    best = min((sync for _, sync in waits), key=_preference)
    devices = sorted({sync.device for _, sync in waits} - {UNKNOWN})
    return HostSync(
        span=best.span,
        holder=best.function.id,
        kind=best.kind,
        operation=best.operation,
        device=devices[0] if best.device == UNKNOWN and devices else best.device,
        label=best.label,
        rule=best.rule,
        phase_between=best.phase_between,
        captured=any(sync.captured for _, sync in waits),
        where=best.where,
        guards=guards_of(best.path, best.function, best.node),
        consumer=best.consumer,
        workers=tuple(sorted({worker for worker, _ in waits})),
    )


def _preference(sync: FoundSync) -> tuple[bool, int, str, bool, str, str]:
    rank = _RANKS.get(sync.phase_between, len(_RANKS) + (not sync.phase_between))
    unknown = sync.device == UNKNOWN
    return sync.host_draft, rank, sync.phase_between, unknown, sync.label, sync.rule
