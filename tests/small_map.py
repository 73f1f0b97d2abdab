"""A code map with two workers and nothing else, for tests of what surrounds a map."""

from __future__ import annotations

from specmap.codemap.condition import TRUE
from specmap.codemap.graph import CodeMap, Entry, Phase, Problem, Worker
from specmap.codemap.source import Span, symbol_id
from specmap.codemap.verdict import PhaseName, Verdict

_HOMES = {
    "EAGLEWorker": "sglang/srt/speculative/eagle_worker.py",
    "NGRAMWorker": "sglang/srt/speculative/ngram_worker.py",
}


def small_map(*problems: Problem) -> CodeMap:
    """Return a map where EAGLEWorker drafts and verifies and NGRAMWorker only verifies."""
    return CodeMap(
        target="sglang==0.5.9",
        release="0.5.9",
        commit=None,
        platform="cuda",
        workers=(
            _worker("EAGLEWorker", PhaseName.DRAFT, PhaseName.VERIFY),
            _worker("NGRAMWorker", PhaseName.VERIFY),
        ),
        classes=(), functions=(), edges=(), decisions=(), sinks=(), flags=(), syncs=(),
        attributes=(), factories=(), shared=(), doubles=(),
        problems=problems,
    )  # fmt: skip


def _worker(name: str, *phases: PhaseName) -> Worker:
    span = Span(_HOMES[name], 1, 2)
    return Worker(
        id=symbol_id(span.file, name),
        name=name,
        span=span,
        mro=(),
        entry=Entry("forward_batch_generation", symbol_id(span.file, name), span),
        selected_when=TRUE,
        selected_at=None,
        phases=tuple(_phase(phase, name, span) for phase in phases),
    )


def _phase(name: PhaseName, worker: str, span: Span) -> Phase:
    role = "draft" if name is PhaseName.DRAFT else "target"
    holder = symbol_id(span.file, f"{worker}.{name}")
    return Phase(name, role, (), span, holder, (), TRUE, Verdict.GRAPH)
