"""What the configuration of a job makes of every cycle; neither SGLang nor a tracer is asked.

A phase replays when its batch fits the largest captured size, and then in the smallest graph
that holds it. The draft extend of a v1 worker carries only the requests that go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.live.jobs import DRAFT_LAYERS, STEPS, TARGET_LAYERS, Job
from tests.live.serving import Served

OWNERS = {"draft": "draft", "verify": "target", "draft_extend": "draft_extend"}
"""Which runner of SGLang serves a phase."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One phase in one cycle: its batch, and the captured size it replays, None if eager."""

    phase: str
    size: int
    graph_size: int | None


def cycles(job: Job, sizes: Sequence[int]) -> list[list[Expected]]:
    """Return the phases of every decode cycle; ``sizes`` are the batches that SGLang ran."""
    found = []
    for number, size in enumerate(sizes):
        going_on = sizes[number + 1] if number + 1 < len(sizes) else 0
        extended = size if job.overlap else going_on
        batches = {"draft": size, "verify": size, "draft_extend": extended}
        found.append([Expected(p, n, graph_size(job, n)) for p, n in batches.items() if n])
    return found


def graph_size(job: Job, size: int) -> int | None:
    """Return the captured size that a batch replays, or None where none holds it."""
    return min((captured for captured in job.graphs if captured >= size), default=None)


def layers(phases: Sequence[Expected]) -> dict[str, int]:
    """Return how many decoder layers run their Python in a cycle: those of eager phases."""
    eager = {one.phase for one in phases if one.graph_size is None}
    draft = DRAFT_LAYERS * ((STEPS - 1) * ("draft" in eager) + ("draft_extend" in eager))
    return {"target": TARGET_LAYERS * ("verify" in eager), "draft": draft}


def check_tokens(served: Served, plain: Served) -> None:
    """Compare with plain greedy decoding of the same prompts."""
    for answer, reference in zip(served.answers, plain.answers, strict=False):
        assert answer.tokens == reference.tokens[: len(answer.tokens)]


def check_cycles(job: Job, served: Served) -> None:
    """Compare what SGLang and the tapes counted in every cycle with the configuration."""
    sizes = [batch.size for batch in served.decoded]
    for batch, phases in zip(served.decoded, cycles(job, sizes), strict=True):
        replays = [(OWNERS[p.phase], p.graph_size) for p in phases if p.graph_size is not None]
        eager = {p.phase for p in phases if p.graph_size is None}
        assert list(batch.replays) == replays
        assert batch.can_run_cuda_graph == ("verify" not in eager)
        assert batch.layers == layers(phases)
        assert batch.draft_forwards == ("draft" in eager)
