"""Faults that take verify out of its graph at a place that no finding of another rule names."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator

from specmap.codemap.graph import Arm, Decision
from specmap.codemap.verdict import PhaseName, SinkKind
from tests.mutations.edits import Edit, normal
from tests.mutations.faults import BATCHES, Fault, Mutant, Release, source_of

_REFUSED = "{0}.forward_mode.is_target_verify()"


def refused(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """The runner's own test refuses verify, by the mode or by an attribute of its own."""
    for decision in _of_verify(release, "can_run"):
        node = release.function(decision.holder)
        start = release.function(f"{decision.holder.rpartition('.')[0]}.__init__")
        batch = _batch(node) if node is not None else ""
        if node is None or start is None or not batch:
            continue
        file = decision.span.file
        test = _REFUSED.format(batch)
        by_mode = Edit("insert", node.body[0].lineno, "", f"if {test}:\n    return False\n")
        by_self = Edit("insert", node.body[0].lineno, "", "if self.probe_off:\n    return False\n")
        stored = Edit("insert", start.body[0].lineno, "", "self.probe_off = True\n")
        ways = [((by_mode,), test), ((by_self, stored), "self.probe_off = True")]
        edits, what = rng.choice(ways)
        yield Mutant("SPM113", file, edits, "", what)


def asked_for_less(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """The decision about verify has one more test, which no verify batch passes."""
    for decision in _of_verify(release, "route"):
        node = release.function(decision.holder)
        batch = _batch(node) if node is not None else ""
        # A later one of the function chooses among what is left without a graph.
        first = all(
            other.span >= decision.span
            for other in release.codemap.decisions
            if other.kind == "route" and other.holder == decision.holder
        )
        if batch and first and "can_run" in decision.text:
            code = f"({decision.text}) and not {_REFUSED.format(batch)}"
            edit = Edit("expression", decision.span.line, decision.text, code)
            yield Mutant("SPM113", decision.span.file, (edit,), "", f"not {_REFUSED.format(batch)}")


def another_mode(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """The predicate that says which modes have graphs forgets verify."""
    for function in release.codemap.functions:
        node = release.function(function.id)
        if node is None or not function.qualname.endswith(".is_cuda_graph"):
            continue
        for test in ast.walk(node):
            if isinstance(test, ast.Compare) and "TARGET_VERIFY" in ast.unparse(test):
                source = source_of(release, function.span.file)
                text = normal(ast.get_source_segment(source, test) or "")
                edit = Edit("expression", test.lineno, text, "False")
                yield Mutant("SPM113", function.span.file, (edit,), "", f"without {text}")


def looked_up(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A call on the way of verify looks its method up by a name that nobody knows."""
    sites = {site for arm in _replayed(release) for site in arm.chain[:-1]}
    for edge in release.codemap.edges:
        receiver = edge.text.rpartition(".")[0]
        if (edge.caller, edge.span.line) in sites and receiver.startswith("self.") and edge.callees:
            code = f"getattr({receiver}, self.probe_way)"
            edit = Edit("expression", edge.span.line, edge.text, code)
            what = f"{edge.text} by a name of an attribute"
            yield Mutant("SPM115", edge.span.file, (edit,), "", what)


def _replayed(release: Release) -> Iterator[Arm]:
    """The ways of verify to its graph."""
    phases = (phase for worker in release.codemap.workers for phase in worker.phases)
    verify = (phase for phase in phases if phase.name is PhaseName.VERIFY)
    return (arm for phase in verify for arm in phase.arms if arm.kind is SinkKind.GRAPH)


def _of_verify(release: Release, kind: str) -> Iterator[Decision]:
    """The decisions of a kind on the way of verify to its graph, outside the workers' files."""
    way = {holder for arm in _replayed(release) for holder, _ in arm.chain}
    runners = {holder.rpartition(".")[0] for holder in way}
    for decision in release.codemap.decisions:
        asked = kind == "can_run" and decision.holder.rpartition(".")[0] in runners
        outside = "/speculative/" not in decision.holder
        if decision.kind == kind and outside and PhaseName.VERIFY in decision.phases:
            if asked or decision.holder in way:
                yield decision


def _batch(node: ast.FunctionDef) -> str:
    named = [a for a in node.args.args if a.annotation is not None]
    return next((a.arg for a in named if ast.unparse(a.annotation or a) in BATCHES), "")


LOSS_FAULTS: tuple[Fault, ...] = (refused, asked_for_less, another_mode, looked_up)
