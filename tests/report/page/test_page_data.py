from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specmap.codemap.event import LaunchCount, Launches, State
from specmap.codemap.launch import Fact, FactOrigin, OriginKind, Plain
from specmap.codemap.remedy import (
    Attempt,
    FixReport,
    Layer,
    LayerStatus,
    ProofStep,
    Proposal,
)
from specmap.codemap.remedy import Outcome as FixOutcome
from specmap.fix.catalogue import CATALOGUE
from specmap.report.page.data import page
from specmap.report.page.subject import Subject
from tests.report.page.shapes import wrong
from tests.report.page.subjects import EVIL, SOURCE, lint, subject
from tests.report.sample_outcome import REFUSAL, outcome
from tests.report.sample_run import RUN


def side(**changes: Any) -> dict[str, Any]:
    data, _ = page([subject(**changes)])
    only: dict[str, Any] = data["sides"][0]
    return only


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"outcome": outcome()},
        {"outcome": outcome(refusal=REFUSAL)},
        {"run": RUN, "run_name": "trace-1"},
        {"lint": lint(), "run": RUN, "outcome": outcome()},
    ],
)
def test_the_data_has_the_shapes_that_the_front_end_reads(changes: dict[str, Any]) -> None:
    from specmap.report.page.timeline import Recording

    if "run" in changes:
        names = [rank.name for rank in RUN.ranks]
        changes = changes | {"recordings": {name: Recording() for name in names}}
    one = subject(**changes)
    data, _ = page([one, one], [("workers", ["+ X"])])
    assert list(wrong(data, "Page")) == []


def test_the_check_of_shapes_finds_what_is_wrong() -> None:
    data, _ = page([subject()])
    data["sides"][0]["workers"][0]["phases"][0]["verdict"] = "MAYBE"
    data["sides"][0]["atoms"][0]["place"] = 3
    del data["specmap"]
    found = list(wrong(data, "Page"))
    assert len(found) == 3
    assert any("verdict" in line for line in found)


def test_workers_and_phases_are_those_of_the_map() -> None:
    codemap, shown = subject().codemap, side()["workers"]
    assert [(w["name"], [p["name"] for p in w["phases"]]) for w in shown] == [
        (worker.name, [phase.name.value for phase in worker.phases]) for worker in codemap.workers
    ]
    assert {w["selection"] for w in shown} == {"open"}
    for worker, known in zip(shown, codemap.workers, strict=True):
        for phase, source in zip(worker["phases"], known.phases, strict=True):
            expected = "depends" if source.verdict is None else source.verdict.value
            assert phase["verdict"] == expected
            assert (phase["ends"] is None) == (not source.arms)
            assert len(phase["arms"]) == len(source.arms)
            sinks = [side()["graph"]["nodes"][arm["sink"]]["id"] for arm in phase["arms"]]
            assert sinks == [f"sink:{arm.sink}" for arm in source.arms]


def test_a_launch_selects_one_worker_and_says_why() -> None:
    known = subject().codemap
    eagle = next(w for w in known.workers if w.name == "EAGLEWorker")
    judged = replace(outcome().workers[0], id=eagle.id, name=eagle.name)
    shown = side(outcome=replace(outcome(), workers=(judged,)))
    by_name = {worker["name"]: worker for worker in shown["workers"]}
    assert by_name["EAGLEWorker"]["selection"] == "runs"
    assert by_name["NGRAMWorker"]["selection"] == "not run"
    phases = {phase["name"]: phase for phase in by_name["EAGLEWorker"]["phases"]}
    verify = phases["verify"]
    assert verify["verdict"] == "EAGER"
    assert verify["reason"] == "cuda_graph_bs <= self.max_bs is false, bs 4 > largest captured 2"
    assert (verify["evidence"]["file"], verify["evidence"]["line"]) == (
        "sglang/srt/model_executor/cuda_graph_runner.py", 787,
    )  # fmt: skip
    assert [r["last"] for r in verify["ranges"]] == [2, 48]
    extend = phases["draft_extend"]
    assert extend["verdict"] == "UNKNOWN"
    assert extend["reason"].endswith("is not known (needs model config)")
    assert extend["open"][0]["settings"][0]["value"] == "fa3"
    assert shown["launch"]["captured"]["sizes"] == [1, 2]
    names = [worker["name"] for worker in shown["workers"]]
    drawn = {
        (names[n["phase"][0]], n["lines"][0]): (n["verdict"], n["lines"][-1])
        for n in shown["graph"]["nodes"]
        if n["phase"] is not None
    }
    assert drawn["EAGLEWorker", "verify"] == ("EAGER", "EAGER")
    assert drawn["NGRAMWorker", "verify"][0] == "depends"


def test_a_run_says_what_each_phase_did() -> None:
    shown = side(run=RUN, run_name="trace-1")
    eagle = next(worker for worker in shown["workers"] if worker["name"] == "EAGLEWorker")
    verify = next(phase for phase in eagle["phases"] if phase["name"] == "verify")["observed"]
    assert verify["word"] == "mixed"
    assert verify["counts"] == {"GRAPH": 106, "EAGER": 74}
    assert verify["agreement"] == "contradict"
    assert verify["reasons"][0]["text"] == "bs 4 > largest captured 2"
    assert verify["reasons"][0]["firstCycle"] == 17
    ngram = next(worker for worker in shown["workers"] if worker["name"] == "NGRAMWorker")
    assert {phase["observed"]["word"] for phase in ngram["phases"]} == {"not exercised"}
    run = shown["run"]
    assert [rank["title"] for rank in run["ranks"]] == ["TP 0", "TP 1"]
    assert run["findings"][0]["ranks"] == [1]
    assert run["budget"]["cycleNs"] == 4_700_000


def test_launches_of_a_usual_pass_are_in_the_table_of_the_run() -> None:
    each = Launches(0, 412, 32)
    counted = LaunchCount(State.EAGER, 9, Launches(0, 9 * 412, 9 * 32), each, 8)
    first = RUN.ranks[0]
    phase = replace(first.phases[0], launches=(counted,))
    shown = side(run=replace(RUN, ranks=(replace(first, phases=(phase,)),)), run_name="trace-1")
    [line] = shown["run"]["ranks"][0]["phases"]
    assert line["launches"] == ["412 kernels (32 collectives), 8 of 9"]


def test_shared_conditions_are_stored_once() -> None:
    shown = side()
    terms = shown["terms"]
    assert len({repr(term) for term in terms}) == len(terms)
    for number, term in enumerate(terms):
        below = [] if isinstance(term, int) else term[1:]
        assert all(inner < number for inner in below)
    assert all(item["same"] <= number for number, item in enumerate(shown["atoms"]))


def test_every_place_has_its_source() -> None:
    shown, lines = side(lint=lint()), SOURCE.splitlines()

    def places(value: Any) -> list[dict[str, Any]]:
        if isinstance(value, dict):
            own = [value] if set(value) == {"file", "line", "end"} else []
            return own + [p for item in value.values() for p in places(item)]
        return [p for item in value for p in places(item)] if isinstance(value, list) else []

    sources = shown.pop("sources")
    seen = places(shown)
    assert len(seen) > 20
    for place in seen:
        chunks = sources[place["file"]]
        (chunk,) = [c for c in chunks if c["line"] <= place["line"] < c["line"] + len(c["lines"])]
        assert chunk["lines"][place["line"] - chunk["line"]] == lines[place["line"] - 1]
    for chunks in sources.values():
        ends = [chunk["line"] + len(chunk["lines"]) for chunk in chunks]
        assert all(end < chunk["line"] for end, chunk in zip(ends, chunks[1:], strict=False))


def test_the_graph_knows_whose_each_node_is() -> None:
    shown = side()
    names = [worker["name"] for worker in shown["workers"]]
    nodes = {node["id"]: node for node in shown["graph"]["nodes"]}
    eagle = names.index("EAGLEWorker")
    draft = next(n for i, n in nodes.items() if i.endswith("::EAGLEWorker.draft"))
    assert [worker for worker, _ in draft["on"]] == [eagle]
    (mask,) = [mask for _, mask in draft["on"]]
    assert [name for bit, name in enumerate(PHASES) if mask >> bit & 1] == ["draft"]
    run = next(n for i, n in nodes.items() if i.endswith("::ModelRunner._forward_raw"))
    assert {worker for worker, _ in run["on"]} == set(range(len(names)))
    for edge in shown["graph"]["edges"]:
        assert {edge["from"], edge["to"]} <= set(range(len(nodes)))
        assert {w for w, _ in edge["on"]} <= {
            w for w, _ in shown["graph"]["nodes"][edge["from"]]["on"]
        }


PHASES = ("target_prefill", "draft_prefill", "draft", "verify", "draft_extend")


def test_findings_keep_their_status_and_rules_their_page() -> None:
    shown = side(lint=lint())
    assert [f["status"] for f in shown["findings"]] == ["new", "suppressed"]
    assert shown["findings"][1]["reason"] == "known"
    assert set(shown["rules"]) == {"SPM901"}
    assert shown["crashes"] == ["rule SPM902 failed, rules/x.py:1: division by zero"]


def test_a_rewrite_that_is_not_proven_is_only_proposed() -> None:
    rewrite = next(r for r in CATALOGUE if r.id == "SPF207")
    layers = dict.fromkeys(rewrite.layers, LayerStatus.HELD)
    span = subject().codemap.workers[0].span
    proposal = Proposal(rewrite.id, span, "f.py::W.verify", "what it does", facts=("a", ""))

    def attempt(**changes: LayerStatus) -> Attempt:
        statuses = layers | {Layer(name): status for name, status in changes.items()}
        proof = tuple(ProofStep(layer, status, "why") for layer, status in statuses.items())
        return Attempt(rewrite, proposal, FixOutcome.APPLIED, "", proof)

    attempts = (attempt(), attempt(equality=LayerStatus.NOT_RUN))
    report = FixReport("sglang==0.5.9", "0.5.9", attempts, {}, {})
    shown = side(fix=report, rewrites=CATALOGUE, diff=lambda a: "--- a/f.py\n")
    first, second = shown["remedies"]
    assert (first["outcome"], first["proven"], first["reason"]) == ("applied", True, "")
    assert (second["outcome"], second["proven"]) == ("proposed", False)
    assert second["reason"] == "not proven: equality: why"
    assert (first["facts"], first["diff"], first["holder"]) == (["a"], "--- a/f.py\n", "W.verify")
    assert set(shown["rewrites"]) == {"SPF207"}


def test_what_two_sides_differ_in_stands_first() -> None:
    left = subject(run=RUN, run_name="a")
    rank = replace(
        RUN.ranks[0],
        environment={"NCCL_NVLS_ENABLE": "1"},
        arguments={**RUN.ranks[0].arguments, "tp_size": 4},
        versions={"sglang": "0.5.9", "torch": "2.9.2"},
    )
    right = subject(run=replace(RUN, ranks=(rank,)), run_name="b")
    data, _ = page([left, right])
    assert [(d["group"], d["name"], d["left"], d["right"]) for d in data["differences"]] == [
        ("arguments", "tp_size", "2", "4"),
        ("versions", "torch", "2.9.1", "2.9.2"),
        ("environment", "NCCL_NVLS_ENABLE", "0", "1"),
        ("machine", "ranks", "2", "1"),
    ]
    assert page([left, left])[0]["differences"] == []


def fact(name: str, value: Plain, origin: OriginKind, *, known: bool = True) -> Fact:
    return Fact(name, known, value if known else None, (), (), (FactOrigin(origin, None),))


def launched(*facts: Fact, deciding: tuple[Fact, ...] = (), **changes: Any) -> Subject:
    judged = replace(outcome(), settings=deciding)
    return subject(outcome=judged, facts={one.name: one for one in facts}, **changes)


def test_arguments_are_compared_whether_or_not_they_decided() -> None:
    """One launch for two releases: what both sides got differs in nothing."""
    given, default = OriginKind.GIVEN, OriginKind.DEFAULT
    shared = (fact("topk", 1, given), fact("page_size", 1, default))
    backend = fact("attention_backend", "fa3", OriginKind.ASSIGNED)
    left = launched(*shared, backend, fact("stream", False, default), fact("tp", 0, given))
    right = launched(
        *shared, replace(backend, value="triton"), fact("fresh", True, default),
        fact("open", 0, default, known=False), deciding=shared,
    )  # fmt: skip
    shown = [d for d in page([left, right])[0]["differences"] if d["group"] == "arguments"]
    assert [(d["name"], d["left"], d["right"]) for d in shown] == [
        ("attention_backend", "fa3", "triton"), ("tp", "0", None),
    ]  # fmt: skip
    refused = launched(*(fact(one.name, 0, default, known=False) for one in (*shared, backend)))
    shown = [d for d in page([left, refused])[0]["differences"] if d["group"] == "arguments"]
    assert {(d["name"], d["right"]) for d in shown} == {("topk", "not known"), ("tp", None)}


def test_what_one_side_alone_can_have_is_no_difference() -> None:
    """A tree has no variables and no arguments beside a run; a header lacks arguments."""
    ran = subject(run=RUN, run_name="a")
    groups = {d["group"] for d in page([subject(), ran])[0]["differences"]}
    assert groups <= {"target", "launch"}
    given = launched(fact("topk", 1, OriginKind.GIVEN), fact("tp_size", 4, OriginKind.DEFAULT))
    shown = [d for d in page([given, ran])[0]["differences"] if d["group"] == "arguments"]
    assert [(d["name"], d["left"], d["right"]) for d in shown] == [("tp_size", "4", "2")]


def test_secrets_stand_nowhere() -> None:
    command = ("--api-key", "s3cr3t-1", "--hf-token=s3cr3t-2", "--note", "about s3cr3t-1")
    rank = replace(
        RUN.ranks[0],
        arguments={"admin_api_key": "s3cr3t-3"},
        environment={"SGLANG_AUTH_TOKEN": "s3cr3t-4"},
    )
    run = replace(RUN, ranks=(rank,), command=("serve", "--password", "s3cr3t-5"))
    noted = replace(outcome(), command=command, notes=("s3cr3t-2 was read",))
    data, _ = page([subject(outcome=noted, run=run), subject()])
    assert "s3cr3t" not in repr(data)
    assert data["sides"][0]["launch"]["command"] == [
        "--api-key", "***", "--hf-token=***", "--note", "about ***",
    ]  # fmt: skip
    assert data["sides"][0]["launch"]["notes"] == ["*** was read"]


def test_source_text_is_data_as_it_stands() -> None:
    shown = side(source=lambda file: f"{EVIL}\n" * 3000, lint=lint(EVIL))
    assert shown["findings"][0]["message"] == EVIL
    chunk = next(iter(shown["sources"].values()))[0]
    assert chunk["lines"][0] == EVIL.splitlines()[0]
