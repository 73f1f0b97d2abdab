"""The comparisons themselves: a right record has no difference, each wrong one has its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specmap.codemap.condition import TRUE
from specmap.codemap.graph import (
    Assignment,
    Attribute,
    CallEdge,
    ClassRecord,
    CodeMap,
    Decision,
    EdgeStatus,
    Entry,
    Flag,
    FlagStatus,
    Function,
    Guard,
    HostSync,
    SyncKind,
    Term,
    Worker,
)
from specmap.codemap.source import Span, symbol_id
from specmap.codemap.verdict import PhaseName
from tests.releases.answer_key import Fact, differences, load_facts
from tests.releases.lookup import SRT, normal

FACTS = load_facts()
V1 = SRT + "speculative/eagle_worker.py"
MODEL_RUNNER = SRT + "model_executor/model_runner.py"
RUNNER = SRT + "model_executor/cuda_graph_runner.py"
RAW = symbol_id(MODEL_RUNNER, "ModelRunner._forward_raw")
REPLAY = symbol_id(RUNNER, "CudaGraphRunner.replay")
ENTRY = symbol_id(V1, "EAGLEWorker.forward_batch_generation")
VERIFY = symbol_id(V1, "EAGLEWorker.verify")

EMPTY = CodeMap(
    "hand-made", None, None, "cuda", (), (), (), (), (), (), (), (), (), (), (), ()
)  # fmt: skip


def span(file: str, line: int, end_line: int | None = None) -> Span:
    return Span(file, line, end_line or line)


def fact(identifier: str) -> Fact:
    return next(f for f in FACTS if f["id"] == identifier)


def found(identifier: str, code_map: CodeMap) -> str:
    return "\n".join(differences(fact(identifier), code_map, FACTS))


REPLAY_EDGE = CallEdge(
    RAW,
    span(MODEL_RUNNER, 2463, 2467),
    "self.graph_runner.replay(...)",
    (REPLAY,),
    EdgeStatus.STATIC,
    guards=(Guard("can_run_graph", span(MODEL_RUNNER, 2462), True, RAW),),
)
EDGE_MAP = replace(
    EMPTY,
    functions=(Function(REPLAY, "CudaGraphRunner.replay", span(RUNNER, 846, 900)),),
    edges=(REPLAY_EDGE,),
)


def test_right_edge() -> None:
    assert found("0.5.9-edge-replay", EDGE_MAP) == ""


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"callees": ()}, "missing"),
        ({"span": span(MODEL_RUNNER, 2464)}, "starts at"),
        ({"caller": symbol_id(MODEL_RUNNER, "ModelRunner.forward")}, "starts at"),
        ({"guards": ()}, "guard"),
        ({"guards": (replace(REPLAY_EDGE.guards[0], branch=False),)}, "guard"),
        ({"guards": (replace(REPLAY_EDGE.guards[0], text="x"),)}, "guard"),
        ({"status": EdgeStatus.UNRESOLVED}, "status"),
    ],
)
def test_wrong_edge(change: dict[str, Any], word: str) -> None:
    wrong = replace(EDGE_MAP, edges=(replace(REPLAY_EDGE, **change),))
    assert word in found("0.5.9-edge-replay", wrong)


def test_one_callee_too_many() -> None:
    other = symbol_id(SRT + "model_executor/cpu_graph_runner.py", "CPUGraphRunner.replay")
    extra = Function(other, "CPUGraphRunner.replay", span("x.py", 589))
    edge = replace(REPLAY_EDGE, callees=(REPLAY, other))
    wrong = replace(EDGE_MAP, functions=(*EDGE_MAP.functions, extra), edges=(edge,))
    assert "wrong" in found("0.5.9-edge-replay", wrong)


def test_definition_on_another_line() -> None:
    moved = (Function(REPLAY, "CudaGraphRunner.replay", span(RUNNER, 847)),)
    assert "missing" in found("0.5.9-edge-replay", replace(EDGE_MAP, functions=moved))


TEST = "batch.forward_mode.is_extend() or batch.is_extend_in_batch"
FLAG = Flag(
    "can_run_cuda_graph",
    span(V1, 308),
    ENTRY,
    FlagStatus.CONSTANT,
    "target_prefill",
    decides=False,
    value=False,
    guards=(Guard(TEST, span(V1, 290), True, ENTRY),),
)


def test_right_flag() -> None:
    assert found("0.5.9-flag-308", replace(EMPTY, flags=(FLAG,))) == ""
    assert found("0.5.9-line-322", replace(EMPTY, flags=(FLAG,))) == ""


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"status": FlagStatus.COMPUTED}, "status"),
        ({"phase": "verify"}, "phase"),
        ({"value": True}, "value"),
        ({"value": None}, "value"),
        ({"guards": ()}, "guard"),
        ({"name": "can_run_graph"}, "must be one"),
        ({"span": span(V1, 336)}, "must be one"),
    ],
)
def test_wrong_flag(change: dict[str, Any], word: str) -> None:
    assert word in found("0.5.9-flag-308", replace(EMPTY, flags=(replace(FLAG, **change),)))


def test_a_line_without_a_flag() -> None:
    invented = replace(FLAG, span=span(V1, 322))
    assert found("0.5.9-line-322", replace(EMPTY, flags=(FLAG, invented)))
    assert "offer" in found("0.5.9-line-322", EMPTY)


def test_guards_of_a_flag_are_all_compared() -> None:
    more = (*FLAG.guards, Guard("self.other", span(V1, 300), True, ENTRY))
    changed = replace(FLAG, guards=more)
    assert "guards in the holder" in found("0.5.9-flag-308", replace(EMPTY, flags=(changed,)))


NAMES = fact("0.5.9-cond-canrun-return")["expect"]["terms"]
WHOLE = " and\n ".join(NAMES)
SPELT_OUT = Term("graph_key in self.graphs", span(RUNNER, 402), True, NAMES[0])
CAN_RUN = Decision(
    "d",
    "can_run",
    symbol_id(RUNNER, "CudaGraphRunner.can_run"),
    span(RUNNER, 444, 450),
    WHOLE,
    (
        *(Term(name, span(RUNNER, 445 + i), True, WHOLE) for i, name in enumerate(NAMES)),
        SPELT_OUT,
    ),
    phases=(PhaseName.VERIFY,),
)


def test_right_decision() -> None:
    assert found("0.5.9-cond-canrun-return", replace(EMPTY, decisions=(CAN_RUN,))) == ""


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"terms": CAN_RUN.terms[1:]}, "terms in order"),
        ({"terms": CAN_RUN.terms[::-1]}, "terms in order"),
        ({"text": "is_bs_supported"}, "no term"),
        ({"phases": ()}, "gates"),
        ({"terms": tuple(replace(t, graph_when=False) for t in CAN_RUN.terms)}, "graph when"),
    ],
)
def test_wrong_decision(change: dict[str, Any], word: str) -> None:
    wrong = replace(EMPTY, decisions=(replace(CAN_RUN, **change),))
    assert word in found("0.5.9-cond-canrun-return", wrong)


SYNC_FILE = SRT + "speculative/eagle_info.py"
SYNC = HostSync(
    span(SYNC_FILE, 490),
    symbol_id(SYNC_FILE, "EagleVerifyInput.verify"),
    SyncKind.IMPLICIT,
    "batch.out_cache_loc[evict_mask]",
    "cuda",
    "removable",
    "mask-index",
    "verify->draft_extend",
    captured=False,
    where="worker",
    guards=(Guard("page_size == 1", span(SYNC_FILE, 488), True, "x::y"),),
)


def test_right_sync() -> None:
    assert found("0.5.12-sync-v1-mask", replace(EMPTY, syncs=(SYNC,))) == ""


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kind": SyncKind.EXPLICIT}, "kind"),
        ({"label": "unavoidable"}, "label"),
        ({"phase_between": "draft->verify"}, "phase_between"),
        ({"operation": "evict_mask"}, "syncs"),
        ({"guards": ()}, "guard"),
    ],
)
def test_wrong_sync(change: dict[str, Any], word: str) -> None:
    assert word in found("0.5.12-sync-v1-mask", replace(EMPTY, syncs=(replace(SYNC, **change),)))


NGRAM_FILE = SRT + "speculative/ngram_worker.py"
NGRAM = ClassRecord(
    symbol_id(NGRAM_FILE, "NGRAMWorker"),
    "NGRAMWorker",
    span(NGRAM_FILE, 25, 300),
    (),
    (symbol_id(NGRAM_FILE, "NGRAMWorker"),),
    tuple(fact("0.5.9-cls-ngram")["expect"]["methods_defined"].items()),
    (),
)
NGRAM_WORKER = Worker(
    NGRAM.id,
    "NGRAMWorker",
    NGRAM.span,
    NGRAM.mro,
    Entry("forward_batch_generation", NGRAM.id, span(NGRAM_FILE, 216)),
    TRUE,
    None,
)
CLASS_MAP = replace(EMPTY, classes=(NGRAM,), workers=(NGRAM_WORKER,))


def test_right_class() -> None:
    assert found("0.5.9-cls-ngram", CLASS_MAP) == ""


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"bases": ("TpModelWorker",)}, "bases"),
        ({"mro": (*NGRAM.mro, "x.py::BaseTpWorker")}, "mro"),
        ({"methods": NGRAM.methods[1:]}, "method"),
        ({"methods": (*NGRAM.methods, ("verify", 3))}, "verify"),
        ({"overrides": ("draft",)}, "overrides"),
        ({"span": span(NGRAM_FILE, 26)}, "line"),
    ],
)
def test_wrong_class(change: dict[str, Any], word: str) -> None:
    wrong = replace(CLASS_MAP, classes=(replace(NGRAM, **change),))
    assert word in found("0.5.9-cls-ngram", wrong)


def test_class_that_is_not_driven() -> None:
    assert "entry" in found("0.5.9-cls-ngram", replace(CLASS_MAP, workers=()))


def test_store_to_an_attribute() -> None:
    """The stores are compared even where the calls through them are not there yet."""
    expect = fact("0.5.12-edge-rebind")["expect"]["attribute"]
    created = tuple(span(c["file"], c["line"]) for c in expect["created"])
    holder = symbol_id(V1, "EAGLEWorker.apply_runtime_state")
    types = (symbol_id(RUNNER, "CudaGraphRunner"), None)
    store = Assignment(span(V1, 336), holder, expect["value"], types, created=created)
    other = replace(store, span=span(SRT + "speculative/eagle_worker_v2.py", 918))
    attribute = Attribute("ModelRunner.graph_runner", (store, other))
    text = found("0.5.12-edge-rebind", replace(EMPTY, attributes=(attribute,)))
    assert "types of the store do not reach" in text
    assert not any(word in text for word in ("created:", "value:", "types:", "other store"))
    wrong = replace(attribute, assignments=(replace(store, types=types[:1], created=()), other))
    text = found("0.5.12-edge-rebind", replace(EMPTY, attributes=(wrong,)))
    assert "types: expected" in text
    assert "created: expected" in text


def test_white_space_means_nothing() -> None:
    assert normal("(a or b) and (\n  isinstance( x, Y )\n)") == normal(
        "(a or b) and isinstance(x, Y)"
    )
    assert normal("a and b") != normal("b and a")
