"""Wrap plans of real releases: what they name is there, and every phase can be told apart."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from specmap.trace.plan import Role, Target, WrapPlan, from_json, to_json
from specmap.trace.planning import plan_of
from specmap.traced import trace_names
from tests.releases.trees import checkout_of, map_of

pytestmark = [
    pytest.mark.releases,
    pytest.mark.parametrize("release", ["0.5.9", "0.5.12", "0.5.17", "0.5.23"]),
]


@cache
def plan_for(release: str) -> WrapPlan:
    return plan_of(map_of(release), trace_names())


@cache
def functions_in(release: str, file: str) -> dict[str, ast.FunctionDef]:
    """Return the functions of a file by dotted name, as Python's own parser reads it."""
    path = checkout_of(release).root / file
    found: dict[str, ast.FunctionDef] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                name = f"{prefix}{child.name}"
                if isinstance(child, ast.FunctionDef):
                    found[name] = child
                visit(child, f"{name}.")
            elif not isinstance(child, ast.expr):
                visit(child, prefix)

    if path.is_file():
        visit(ast.parse(path.read_text("utf-8")), "")
    return found


def parameters(function: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}


def test_every_target_is_a_function_at_its_line(release: str) -> None:
    for target in plan_for(release).targets:
        function = functions_in(release, target.file).get(target.qualname)
        assert function is not None, target.qualname
        assert target.line in {function.lineno, *(d.lineno for d in function.decorator_list)}


def test_every_phase_of_every_worker_has_entry_holder_and_sinks(release: str) -> None:
    plan = plan_for(release)
    targets = {target.id: target for target in plan.targets}
    running = [w for w in map_of(release).workers if w.reachable and w.entry is not None]
    assert [worker.name for worker in plan.workers] == [worker.name for worker in running]
    for worker, known in zip(plan.workers, running, strict=True):
        assert Role.ENTRY in targets[worker.entry].roles
        assert [p.name for p in worker.phases] == [p.name for p in known.phases if p.arms]
        for phase in worker.phases:
            assert targets[phase.holder].timed
            assert phase.chains
            for chain in phase.chains:
                assert chain[0] == worker.entry
                assert Role.SINK in targets[chain[-1]].roles
                assert all(targets[number].timed for number in chain)


def test_every_decision_of_every_phase_is_rewritten(release: str) -> None:
    found = {(t.symbol, *span) for t in plan_for(release).targets for span in t.expressions}
    symbols = {t.symbol for t in plan_for(release).targets if Role.DECISION in t.roles}
    for decision in map_of(release).decisions:
        if decision.workers and decision.phases and decision.kind != "capture":
            assert decision.holder in symbols
            place = (decision.holder, decision.span.line, decision.span.end_line)
            assert (place in found) == (decision.kind == "route")


def test_a_batch_reaches_every_sink(release: str) -> None:
    """A sink without a batch gets mode and size from a forward around it; phases do not look."""
    names = set(plan_for(release).batch.parameters)
    targets = {target.id: target for target in plan_for(release).targets}

    def has_batch(target: Target) -> bool:
        given = parameters(functions_in(release, target.file)[target.qualname]) & names
        return bool(given) and not {Role.PASS, Role.SINK}.isdisjoint(target.roles)

    for worker in plan_for(release).workers:
        for phase in worker.phases:
            for chain in phase.chains:
                assert any(has_batch(targets[number]) for number in chain[-2:])


def test_phases_of_a_worker_differ_in_holder_mode_or_way(release: str) -> None:
    for worker in plan_for(release).workers:
        for index, phase in enumerate(worker.phases):
            for other in worker.phases[index + 1 :]:
                alike = phase.holder == other.holder and set(phase.modes) & set(other.modes)
                assert not (alike and set(phase.chains) & set(other.chains)), worker.name


def test_phases_of_the_decode_cycle_are_timed_apart(release: str) -> None:
    """The draft of EAGLEWorkerV2 is `EagleDraftWorker.draft`, also where the entry holds it."""
    targets = {target.id: target for target in plan_for(release).targets}
    worker = next(w for w in plan_for(release).workers if w.name == "EAGLEWorkerV2")
    scopes = {phase.name: targets[phase.scope].qualname for phase in worker.phases}
    assert scopes["draft"] == "EagleDraftWorker.draft"
    assert scopes["verify"] == "EAGLEWorkerV2.verify"
    assert scopes["draft_extend"] == "EagleDraftWorker._draft_extend_for_decode"
    assert all(Role.PHASE in targets[p.scope].roles for p in worker.phases)


def test_one_call_hands_over_the_accepted_tokens(release: str) -> None:
    found = []
    for call in plan_for(release).accept:
        functions = functions_in(release, call.module.replace(".", "/") + ".py")
        if call.qualname in functions:
            given = parameters(functions[call.qualname])
            assert call.requests in given
            found += [t for t in call.tokens if set(t.split(" + ")) <= given][:1]
    # scheduler_metrics_mixin.py:147, :332; metrics_reporter.py:357, :543
    assert found == [{
        "0.5.9": "num_accepted_tokens + bs",
        "0.5.12": "num_correct_drafts + bs",
        "0.5.17": "num_correct_drafts + bs",
        "0.5.23": "num_accept_tokens",
    }[release]]  # fmt: skip


def test_the_process_of_a_rank_is_told_its_ranks(release: str) -> None:
    plan = plan_for(release)
    module, _, name = plan.rank.process[0].partition(":")
    given = parameters(functions_in(release, module.replace(".", "/") + ".py")[name])
    assert {name for (name,) in plan.rank.names.values()} <= given


def test_the_plan_survives_its_json(release: str) -> None:
    assert from_json(to_json(plan_for(release))) == plan_for(release)
