"""Comments that SGLang's authors wrote at calls of the cycle, read from the releases."""

from __future__ import annotations

import pytest

from specmap.codemap.source import qualname_of
from tests.releases.trees import map_of

pytestmark = pytest.mark.releases


# Release, caller, line of the call, comment in the source around it.
COMMENTS = [
    (
        "0.5.9", "EAGLEWorker.forward_batch_generation", 329,
        "NOTE: We should use `check_forward_draft_extend_after_decode` when DP attention is "
        "enabled, but it is slow. Skip it for now. decode is not finished",
    ),
    ("0.5.9", "EAGLEWorker.verify", 716, "Forward"),
    (
        "0.5.9", "EAGLEWorker.draft", 567,
        "Skip attention backend init for idle mode or 1-step draft",
    ),
    (
        "0.5.23", "EAGLEWorkerV2.forward_batch_generation", 1472,
        "Drafting disabled (high batch size). _draft_extend below still runs, keeping draft KV "
        "warm for when the batch shrinks.",
    ),
    ("0.5.23", "EagleDraftWorker.draft", 695, "Run draft"),
]  # fmt: skip


@pytest.mark.parametrize(("release", "caller", "line", "comment"), COMMENTS)
def test_a_call_carries_its_comment(release: str, caller: str, line: int, comment: str) -> None:
    found = {
        edge.comment
        for edge in map_of(release).edges
        if qualname_of(edge.caller) == caller and edge.span.line == line
    }
    assert comment in found


@pytest.mark.parametrize("release", ["0.5.9", "0.5.23"])
def test_every_guard_on_the_cycle_is_a_test_in_the_source(release: str) -> None:
    code_map = map_of(release)
    assert sum(bool(edge.comment) for edge in code_map.edges) > 50
    assert [p for p in code_map.problems if "is no test" in p.message] == []
    assert [p for p in code_map.problems if "not read" in p.message] == []
