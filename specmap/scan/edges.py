"""Call edges: the call sites that the walks met, with what they can call and why."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

from specmap.codemap.condition import AtomKind
from specmap.codemap.graph import CallEdge, EdgeStatus
from specmap.codemap.verdict import PhaseName
from specmap.scan.module import FunctionInfo, passes_self
from specmap.scan.phases import Phases, is_idle
from specmap.scan.records import guards_of
from specmap.scan.resolver import Resolver
from specmap.scan.values import (
    ClassRef,
    External,
    FunctionRef,
    Instance,
    Opaque,
    Sequence,
    Table,
    Value,
)
from specmap.scan.walk import Walk
from specmap.scan.walked import Site


class Edges:
    """Builds the edges; phases come from the chains of the sinks below a site."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._phases: dict[tuple[str, int, int], dict[PhaseName, None]] = defaultdict(dict)
        self._modes: dict[tuple[str, int, int], dict[str, None]] = defaultdict(dict)

    def note_hits(self, walk: Walk, phases: Phases) -> None:
        """Remember which phases and forward modes pass through which call site."""
        if is_idle(walk):
            return
        for hit in walk.hits:
            name = phases.name_of(hit)
            for hop in hit.chain:
                key = site_key(hop.function, hop.node)
                if name is not None:
                    self._phases[key][name] = None
                if hit.mode is not None:
                    self._modes[key][hit.mode.name] = None

    def record(self, site: Site) -> CallEdge:
        """Return the edge of one call site."""
        function, node = site.function, site.node
        key = site_key(function, node)
        callees = callee_ids(site.targets, self._resolver)
        status, reason = self._status(site, callees)
        return CallEdge(
            caller=function.id,
            span=function.module.span(node),
            text=function.module.text(node.func),
            callees=callees,
            status=status,
            guards=guards_of(site.path, function, node),
            rules=_rules(site),
            phases=tuple(p for p in PhaseName if p in self._phases.get(key, {})),
            forward_modes=tuple(sorted(self._modes.get(key, {}))),
            also_unknown=unknown_callees(site.targets),
            rejects=rejected(site.targets, node),
            self_types=self._self_types(site),
            reason=reason,
        )

    def _self_types(self, site: Site) -> tuple[str, ...]:
        """The object that an unbound call ``Class.method(obj, ...)`` runs on."""
        if not passes_self(site.node):
            return ()
        frames = [v.self_value for v in site.targets if isinstance(v, FunctionRef)]
        if any(isinstance(value, Instance) for value in frames):
            return ()
        found = set()
        for scope in site.scopes:
            for arm in self._resolver.evaluate(site.node.args[0], scope):
                if isinstance(arm.value, Instance):
                    found.add(arm.value.cls.id)
        return tuple(sorted(found))

    def _status(self, site: Site, callees: tuple[str, ...]) -> tuple[EdgeStatus, str]:
        if site.is_sink:
            return EdgeStatus.EXTERNAL, ""
        if callees:
            functions = [f for f in site.targets.values() if f is not None]
            followed = any(not self._resolver.is_boundary(f.module.name) for f in functions)
            return (EdgeStatus.STATIC if followed or not functions else EdgeStatus.BOUNDARY), ""
        for value in site.targets:
            if isinstance(value, External) and value.name.startswith("typing.Callable"):
                return EdgeStatus.UNRESOLVED, (
                    "annotated as a callable, and nothing in the tree supplies one: a plugin may"
                )
        package = f"{self._resolver.vocabulary.package}."
        if any(isinstance(v, External) and v.name.startswith(package) for v in site.targets):
            return EdgeStatus.BOUNDARY, ""
        if any(_is_builtin(v) or _is_setting(v) for v in site.targets):
            return EdgeStatus.EXTERNAL, ""
        return EdgeStatus.UNRESOLVED, _reason(site.targets)


def _is_builtin(value: Value) -> bool:
    """Whether a value comes from outside the tree; a method of a list or dict does too."""
    return isinstance(value, External | Sequence | Table)


def _is_setting(value: Value) -> bool:
    return isinstance(value, Opaque) and value.kind is AtomKind.LAUNCH


def _reason(targets: Iterable[Value]) -> str:
    for value in targets:
        if isinstance(value, Opaque):
            if value.reason:
                return value.reason
            return f"the type of {value.text.rpartition('.')[0] or value.text} is not known"
    return "nothing is known about what is called"


def site_key(function: FunctionInfo, node: ast.Call) -> tuple[str, int, int]:
    """Return what tells call sites apart."""
    return function.id, node.lineno, node.col_offset


def callee_ids(targets: dict[Value, FunctionInfo | None], resolver: Resolver) -> tuple[str, ...]:
    """Return the ids of the functions, or classes without a constructor, of a site."""
    found = set()
    for value, function in targets.items():
        if function is not None:
            found.add(function.id)
        elif isinstance(value, ClassRef):
            found.add(value.cls.id)
    return tuple(sorted(found))


def unknown_callees(targets: Iterable[Value]) -> tuple[str, ...]:
    """Return what only code outside the tree can add to a site's callees."""
    plugins = {v.reason for v in targets if isinstance(v, Opaque) and v.plugin}
    return tuple(sorted(p for p in plugins if p))


def rejected(
    targets: dict[Value, FunctionInfo | None], node: ast.Call
) -> tuple[tuple[str, str], ...]:
    """Return ``(callee, keyword)`` for keywords that a callee does not accept."""
    found = set()
    for value, function in targets.items():
        if function is None or isinstance(function.node, ast.Lambda) or isinstance(value, ClassRef):
            continue
        if function.node.args.kwarg is not None:
            continue
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in function.positions:
                found.add((function.id, keyword.arg))
    return tuple(sorted(found))


def _rules(site: Site) -> tuple[str, ...]:
    """What was needed to resolve a site."""
    rules = set()
    for value in site.targets:
        if isinstance(value, FunctionRef):
            this = value.self_value
            if isinstance(this, Instance):
                rules.add(this.rule)
            elif value.function.owner is not None:
                rules.add("class attribute")
            else:
                rules.add("nested function" if value.closure else "module name")
        elif isinstance(value, ClassRef):
            rules.add("class")
        elif isinstance(value, Instance):
            rules.add("callable object")
    if len(site.targets) > 1:
        rules.add("several arms")
    return tuple(sorted(rules))
