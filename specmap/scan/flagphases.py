"""Which pass a graph flag speaks of: the one it came from, else the one that it is made for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from specmap.codemap.verdict import PhaseName
from specmap.scan.guards import Bound, Path
from specmap.scan.met import Met
from specmap.scan.module import last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.phases import Phases, is_idle
from specmap.scan.resolver import Resolver
from specmap.scan.values import Frame, FunctionRef, Instance, Scope, Value
from specmap.scan.walk import Walk
from specmap.scan.walked import Activation

_MAX_DEPTH = 6
_Expression = tuple[ast.expr, Scope]


@dataclass(frozen=True, slots=True, eq=False)
class FlagPlace:
    """A statement that carries a flag, at the point where a walk reached it."""

    name: str
    node: ast.AST
    value: ast.expr
    scope: Scope
    path: Path
    passes: int
    reported: bool
    position: int | None = None


class FlagPhases:
    """Names the phase of each flag on one worker's walks."""

    def __init__(self, resolver: Resolver, phases: Phases) -> None:
        self._resolver = resolver
        self._phases = phases

    def of(self, place: FlagPlace, walk: Walk, met: Met, decides: bool) -> str:
        """Return the phase of a flag, ``idle`` on a walk without a request.

        A constant that chooses nothing speaks of the pass before it in its function.
        """
        if is_idle(walk):
            return "idle"
        own = self._call_phase(place, walk, met.activation)
        if own is not None:
            return own
        first, last = met.span
        if place.reported and walk.kind != "prefill":
            if last > first:
                return self._last_result_phase(walk)
            if isinstance(place.value, ast.Constant):
                return PhaseName.VERIFY
        done = walk.hits[first : place.passes]
        constant = isinstance(place.value, ast.Constant) and not (place.reported or decides)
        before = self._phases.name_of(done[-1]) if done and constant else None
        return before or self._made_for(place, walk, met)

    def of_call(self, call: ast.Call, walk: Walk, met: Met, passes: int) -> str:
        """Return the phase of the passes below a call, else of the next pass after it."""
        if is_idle(walk):
            return "idle"
        below = self._phase_below(call, walk, met.activation)
        return below or self._next_phase(walk, passes, met) or PhaseName.VERIFY

    def _call_phase(self, place: FlagPlace, walk: Walk, activation: Activation) -> str | None:
        """The phase of the passes below the call that a flag came from."""
        node: ast.AST = place.value
        scope = place.scope
        for _ in range(_MAX_DEPTH):
            if isinstance(node, ast.Call):
                return self._phase_below(node, walk, activation)
            if isinstance(node, ast.Attribute):
                node = node.value
            elif isinstance(node, ast.Name):
                binding = scope.env.get(node.id)
                if not isinstance(binding, Bound):
                    return None
                node, scope = binding.node, binding.scope
            else:
                return None
        return None

    def _phase_below(self, call: ast.Call, walk: Walk, activation: Activation) -> str | None:
        for hit in walk.hits:
            for hop in hit.chain:
                if hop.node is call and hop.function is activation.function:
                    return self._phases.name_of(hit)
        return None

    def _next_phase(self, walk: Walk, passes: int, met: Met) -> PhaseName | None:
        """The phase of the next pass that starts inside the same function, else anywhere."""
        first, last = met.span
        inside = walk.hits[max(first, passes) : last] or walk.hits[passes:]
        return self._phases.name_of(inside[0]) if inside else None

    def _last_result_phase(self, walk: Walk) -> str:
        names = {self._phases.name_of(hit) for hit in walk.hits}
        return PhaseName.VERIFY if PhaseName.VERIFY in names else PhaseName.TARGET_PREFILL

    def _made_for(self, place: FlagPlace, walk: Walk, met: Met) -> PhaseName:
        """The next pass, unless the flag's batch was made for the other model.

        Then no pass of the worker asks the flag; it speaks of the one that stands there.
        """
        following = self._next_phase(walk, place.passes, met)
        role = self._batch_role(place)
        found = self._phases.by_name.get(following) if following is not None else None
        if role is None or (found is not None and found.role == role):
            prefill = walk.kind == "prefill"
            return following or (PhaseName.TARGET_PREFILL if prefill else PhaseName.VERIFY)
        if walk.kind == "prefill":
            return PhaseName.DRAFT_PREFILL if role == "draft" else PhaseName.TARGET_PREFILL
        if role == "target":
            return PhaseName.VERIFY
        before = {self._phases.name_of(hit) for hit in walk.hits[: place.passes]}
        return PhaseName.DRAFT_EXTEND if PhaseName.VERIFY in before else PhaseName.DRAFT

    def _batch_role(self, place: FlagPlace) -> str | None:
        """Whose runner the batch was made for that the flag is of; ``None`` is not known."""
        if isinstance(place.node, ast.Attribute):
            batches: Iterator[_Expression] = iter([(place.node.value, place.scope)])
        else:
            index = () if place.position is None or place.reported else (place.position,)
            batches = self._decided(place.value, place.scope, index, 0)
        roles = {role for node, scope in batches for role in self._roles(node, scope)}
        return roles.pop() if len(roles) == 1 else None

    def _decided(
        self, node: ast.expr, scope: Scope, index: tuple[int | None, ...], depth: int
    ) -> Iterator[_Expression]:
        """The batches that the decisions in an expression are asked about."""
        if depth > _MAX_DEPTH:
            return
        if isinstance(node, ast.Name):
            binding = scope.env.get(node.id)
            if isinstance(binding, Bound):
                yield from self._decided(binding.node, binding.scope, binding.index, depth + 1)
        elif isinstance(node, ast.Tuple) and index and isinstance(index[0], int):
            for item in node.elts[index[0] : index[0] + 1]:
                yield from self._decided(item, scope, index[1:], depth + 1)
        elif isinstance(node, ast.Call) and index:
            for arm in self._resolver.evaluate(node.func, scope):
                for value, inside in self._returned(arm.value, node, scope):
                    yield from self._decided(value, inside, index, depth + 1)
        else:
            names = self._resolver.vocabulary.decisions
            for call in nodes_in(node):
                if isinstance(call, ast.Call) and last_name(call.func) in names and call.args:
                    yield call.args[0], scope

    def _returned(self, target: Value, call: ast.Call, scope: Scope) -> Iterator[_Expression]:
        if isinstance(target, FunctionRef):
            function = target.function
            frame = Frame(function, function.module, target.self_value, call, scope, target.closure)
            for result in self._resolver.run(frame).returns:
                if result.value is not None:
                    yield result.value, result.scope

    def _roles(self, node: ast.expr, scope: Scope) -> Iterator[str]:
        """The roles of the model runners that the call was handed that made a batch."""
        binding = scope.env.get(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(binding, Bound) or not isinstance(binding.node, ast.Call):
            return
        for argument in binding.node.args:
            for arm in self._resolver.evaluate(argument, binding.scope):
                if isinstance(arm.value, Instance):
                    role = self._phases.runner_role(arm.value)
                    if role is not None:
                        yield role
