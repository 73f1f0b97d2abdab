from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specmap.codemap.condition import TRUE
from specmap.codemap.graph import Arm, ClassRecord, CodeMap, Function, Phase
from specmap.codemap.source import Span, symbol_id
from specmap.codemap.verdict import PhaseName, SinkKind
from specmap.errors import RulesError, TraceError
from specmap.pipeline import scan_tree
from specmap.trace.names import names_of
from specmap.trace.plan import Role, Target, WrapPlan, from_json, to_json
from specmap.trace.planning import plan_of
from specmap.traced import trace_names
from tests.review_tree import plant
from tests.small_map import small_map

NAMES = trace_names()
FILE = "sglang/srt/speculative/eagle_worker.py"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> WrapPlan:
    """The plan of the rules' small tree, which is read here like a release."""
    folder = plant(tmp_path_factory.mktemp("plan") / "tree")
    return plan_of(scan_tree(folder, use_cache=False), NAMES)


def named(plan: WrapPlan, qualname: str) -> Target:
    return next(target for target in plan.targets if target.qualname == qualname)


def test_entries_phases_sinks_and_decisions_are_targets(plan: WrapPlan) -> None:
    roles = {target.qualname: set(target.roles) for target in plan.targets}
    assert roles["EAGLEWorker.forward_batch_generation"] >= {Role.ENTRY}
    assert roles["EagleDraft.draft"] >= {Role.PHASE}
    assert roles["CudaGraphRunner.replay"] == {Role.PASS, Role.SINK}
    assert roles["CudaGraphRunner.can_run"] == {Role.DECISION}
    assert named(plan, "CudaGraphRunner.replay").sink is SinkKind.GRAPH
    assert named(plan, "ModelRunner.forward").sink is SinkKind.EAGER


def test_a_target_stands_where_its_function_is_defined(plan: WrapPlan, tmp_path: Path) -> None:
    folder = plant(tmp_path / "tree")
    for target in plan.targets:
        line = (folder / target.file).read_text("utf-8").splitlines()[target.line - 1]
        assert line.strip().startswith(f"def {target.qualname.rpartition('.')[2]}(")
        assert target.module == target.file.removesuffix(".py").replace("/", ".")


def test_every_chain_leads_from_the_entry_over_timed_targets_to_a_sink(plan: WrapPlan) -> None:
    targets = {target.id: target for target in plan.targets}
    assert {worker.name for worker in plan.workers} == {"EAGLEWorker", "NGRAMWorker"}
    for worker in plan.workers:
        assert worker.phases
        for phase in worker.phases:
            assert targets[phase.holder].timed
            for chain in phase.chains:
                assert chain[0] == worker.entry
                assert targets[chain[-1]].sink is not None
                assert all(targets[number].timed for number in chain)


def test_the_plan_survives_its_json_and_says_the_package_first(plan: WrapPlan) -> None:
    text = to_json(plan)
    assert from_json(text) == plan
    assert text.index('"package"') < text.index('"batch"')
    assert to_json(from_json(text)) == text


def test_a_plan_that_was_written_before_scopes_is_read(plan: WrapPlan) -> None:
    data = json.loads(to_json(plan))
    for worker in data["workers"]:
        for known in worker["phases"]:
            del known["scope"]
    phases = [p for worker in from_json(json.dumps(data)).workers for p in worker.phases]
    assert {p.scope - p.holder for p in phases} == {0}


def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(TraceError, match=r"^p\.json: not a wrap plan"):
        from_json('{"schema": 1}', "p.json")


def test_a_vocabulary_without_the_table_is_refused() -> None:
    with pytest.raises(RulesError, match=r"table \[trace\]: missing or wrong key 'trace'"):
        names_of({})


def chain(*names: str) -> tuple[tuple[str, int], ...]:
    return tuple((symbol_id(FILE, name), 5) for name in names)


def phase(name: PhaseName, holder: str, modes: tuple[str, ...], *arms: tuple[str, ...]) -> Phase:
    found = tuple(Arm(f"s{i}", SinkKind.EAGER, TRUE, chain(*arm)) for i, arm in enumerate(arms))
    return Phase(name, "draft", modes, Span(FILE, 1, 2), symbol_id(FILE, holder), found, TRUE, None)


def with_phases(*phases: Phase, classes: tuple[ClassRecord, ...] = ()) -> CodeMap:
    base = small_map()
    worker = replace(base.workers[0], phases=phases)
    names = sorted({symbol for p in phases for arm in p.arms for symbol, _ in arm.chain})
    functions = tuple(Function(s, s.partition("::")[2], Span(FILE, 9, 12)) for s in names)
    return replace(base, workers=(worker,), functions=functions, classes=classes)


ENTRY = "EAGLEWorker.forward_batch_generation"


def test_a_subclass_that_overrides_is_wrapped_too_and_a_base_only_once() -> None:
    drafting = phase(PhaseName.DRAFT, "Draft.draft", ("DECODE",), (ENTRY, "Draft.draft", "M.run"))
    base, special = symbol_id(FILE, "M"), symbol_id(FILE, "SpecialM")
    classes = tuple(
        ClassRecord(own, own.partition("::")[2], Span(FILE, 1, 9), (), mro, methods, ())
        for own, mro, methods in (
            (base, (base,), (("run", 2),)),
            (special, (special, base), (("run", 3), ("other", 4))),
            (symbol_id(FILE, "PlainM"), (symbol_id(FILE, "PlainM"), base), (("other", 5),)),
        )
    )
    found = plan_of(with_phases(drafting, classes=classes), NAMES)
    names = [target.qualname for target in found.targets]
    assert names == ["Draft.draft", ENTRY, "M.run", "SpecialM.run"]
    assert set(named(found, "SpecialM.run").roles) == {Role.SINK}


def test_two_phases_of_one_method_and_mode_are_told_apart_by_who_calls_it() -> None:
    """FrozenKVMTPWorker of 0.5.12 seeds its draft and extends it in `_run_assistant_seed_step`."""
    one, two = (
        phase(name, "W.seed", ("DECODE",), (ENTRY, caller, "W.seed", "M.run"))
        for name, caller in (
            (PhaseName.DRAFT_PREFILL, "W.draft_extend"),
            (PhaseName.DRAFT_EXTEND, "W.after_decode"),
        )
    )
    found = plan_of(with_phases(one, two), NAMES)
    assert named(found, "W.draft_extend").roles == (Role.PASS,)
    (worker,) = found.workers
    assert len({p.chains for p in worker.phases}) == 2


def test_a_phase_that_the_entry_holds_is_timed_in_a_method_of_its_own() -> None:
    """EAGLEWorkerV2 of 0.5.17: the map holds `draft` in the entry, all but one way go over one."""
    draft = phase(
        PhaseName.DRAFT, ENTRY, ("DECODE",),
        (ENTRY, "Draft.draft", "M.run"), (ENTRY, "Draft.draft", "R.replay", "M.run"),
        (ENTRY, "Draft.extend", "M.run"),
    )  # fmt: skip
    extend = phase(
        PhaseName.DRAFT_EXTEND, "Draft.extend", ("EXTEND",), (ENTRY, "Draft.extend", "M.run")
    )
    found = plan_of(with_phases(draft, extend), NAMES)
    (worker,) = found.workers
    ids = {target.qualname: target.id for target in found.targets}
    assert [(p.holder, p.scope) for p in worker.phases] == [
        (ids[ENTRY], ids["Draft.draft"]), (ids["Draft.extend"], ids["Draft.extend"]),
    ]  # fmt: skip
    assert named(found, "Draft.draft").roles == (Role.PHASE,)
    assert named(found, ENTRY).roles == (Role.ENTRY,)
    # Where nothing below is its own, the entry stays.
    bare = phase(PhaseName.VERIFY, ENTRY, ("EXTEND",), (ENTRY, "Draft.extend", "M.run"))
    (worker,) = plan_of(with_phases(bare, extend), NAMES).workers
    assert worker.phases[0].scope == worker.entry


def test_workers_that_cannot_run_are_left_out() -> None:
    base = small_map()
    broken = replace(base.workers[1], reachable=False)
    found = plan_of(replace(base, workers=(base.workers[0], broken)), NAMES)
    assert [worker.name for worker in found.workers] == ["EAGLEWorker"]
