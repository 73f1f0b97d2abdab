from __future__ import annotations

from specmap.codemap.graph import CodeMap
from specmap.codemap.source import qualname_of
from specmap.report.select import entry_symbol, narrow


def callers(codemap: CodeMap) -> set[str]:
    return {qualname_of(edge.caller) for edge in codemap.edges}


def test_nothing_asked_keeps_everything(sample: CodeMap) -> None:
    assert narrow(sample, (), ()) is sample


def test_one_worker(sample: CodeMap) -> None:
    found = narrow(sample, ("NGRAMWorker",), ())
    assert [worker.name for worker in found.workers] == ["NGRAMWorker"]
    assert [sink.id for sink in found.sinks] == ["replay", "extend"]
    assert [decision.id for decision in found.decisions] == ["raw", "can_run", "capture_mode"]
    assert (found.flags, found.syncs, found.doubles) == ((), (), ())
    assert callers(found) == {
        "NGRAMWorker.forward_batch_generation",
        "TpModelWorker.forward_batch_generation",
        "ModelRunner.forward",
        "ModelRunner._forward_raw",
        "ModelRunner.forward_extend",
        "ModelRunner.forward_decode",
        "CudaGraphRunner.replay",
        "PiecewiseCudaGraphRunner.replay",
    } & callers(sample)
    assert "EAGLEWorker" not in {record.name for record in found.classes}
    assert found.files == sample.files


def test_one_phase_of_one_worker(sample: CodeMap) -> None:
    found = narrow(sample, ("EAGLEWorker",), ("draft",))
    assert [phase.name for phase in found.workers[0].phases] == ["draft"]
    assert [flag.span.line for flag in found.flags] == [561]
    assert [sync.span.line for sync in found.syncs] == [518]
    assert [decision.id for decision in found.decisions] == ["draft"]
    assert {sink.id for sink in found.sinks} == {"draft_replay", "decode"}
    names = {function.qualname for function in found.functions}
    assert "EAGLEWorker.draft_forward" in names
    assert "EAGLEWorker.verify" not in names


def test_a_sync_belongs_to_the_phases_on_both_sides(sample: CodeMap) -> None:
    for phase in ("verify", "draft_extend"):
        found = narrow(sample, (), (phase,))
        assert 390 in [sync.span.line for sync in found.syncs]
    assert narrow(sample, (), ("target_prefill",)).syncs == ()


def test_a_worker_can_be_named_by_its_id(sample: CodeMap) -> None:
    by_id = narrow(sample, (sample.workers[0].id,), ())
    assert by_id == narrow(sample, ("EAGLEWorker",), ())


def test_narrowing_again_changes_nothing(sample: CodeMap) -> None:
    for phases in ((), ("verify",)):
        once = narrow(sample, ("EAGLEWorker",), phases)
        assert narrow(once, ("EAGLEWorker",), phases) == once


def test_entry_symbol(sample: CodeMap) -> None:
    assert entry_symbol(sample.workers[0]) == (
        "sglang/srt/speculative/eagle_worker.py::EAGLEWorker.forward_batch_generation"
    )
