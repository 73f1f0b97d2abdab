from __future__ import annotations

from dataclasses import replace

from specmap.codemap.graph import CallEdge, EdgeStatus
from specmap.codemap.source import Span, symbol_id
from specmap.lint.flow import FlowFinder
from tests.lint.samples import FILE, match
from tests.small_map import small_map

SCHEDULER = "sglang/srt/managers/scheduler.py"
ENTRY = symbol_id(FILE, "EAGLEWorker.forward_batch_generation")
RUN = symbol_id(SCHEDULER, "Scheduler.run_batch")


def call(caller: str, line: int, text: str, *callees: str) -> CallEdge:
    span = Span(caller.partition("::")[0], line, line)
    return CallEdge(caller, span, text, callees, EdgeStatus.STATIC)


def named(name: str) -> str:
    return symbol_id(FILE, f"EAGLEWorker.{name}")


def steps(holder: str, *edges: CallEdge) -> list[tuple[int, str]]:
    finder = FlowFinder(replace(small_map(), edges=edges))
    found = replace(
        match(holder=f"EAGLEWorker.{holder}"), workers=(symbol_id(FILE, "EAGLEWorker"),)
    )
    return [(step.span.line, step.text) for step in finder.to(found)]


CALLS = (
    call(RUN, 70, "self.model_worker.forward_batch_generation", ENTRY),
    call(ENTRY, 10, "self.draft", named("draft")),
    call(ENTRY, 12, "self.verify", named("verify")),
    call(named("draft"), 30, "self.sample", named("sample")),
    call(named("sample"), 40, "self.verify", named("verify")),
)


def test_the_shortest_way_from_the_scheduler() -> None:
    assert steps("verify", *CALLS) == [
        (70, "Scheduler.run_batch calls self.model_worker.forward_batch_generation"),
        (12, "EAGLEWorker.forward_batch_generation calls self.verify"),
    ]
    assert [line for line, _ in steps("sample", *CALLS)] == [70, 10, 30]


def test_the_entry_itself() -> None:
    assert [line for line, _ in steps("forward_batch_generation", *CALLS)] == [70]


def test_no_way_is_no_flow() -> None:
    assert steps("other", *CALLS) == []


def test_calls_in_a_circle() -> None:
    circle = (*CALLS, call(named("verify"), 50, "self.draft", named("draft"), ENTRY))
    assert [line for line, _ in steps("sample", *circle)] == [70, 10, 30]
