"""Where a host synchronisation stands on the cycle, and which workers come through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.graph import CodeMap, HostSync
from tests.review_tree import SYNC, edit, plant, scan

WORKER = "sglang/srt/speculative/eagle_worker.py"
DRAFTS = "        draft_tokens = self.draft(batch)\n"
PLAIN = """
        if batch.too_long:
            return self.target_worker.forward_batch_generation(batch)
"""
PLACES = {
    "draft_extend->draft": (DRAFTS, SYNC + DRAFTS),
    "draft->verify": (DRAFTS, DRAFTS + SYNC),
    "verify->draft_extend": ("        self.draft_extend(batch)\n", SYNC + "{}"),
}


def sync_in(codemap: CodeMap, file: str) -> HostSync:
    (sync,) = (s for s in codemap.syncs if s.span.file == file)
    return sync


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("plain", ["", PLAIN], ids=["always drafts", "may skip the cycle"])
def test_a_pass_that_stands_in_for_the_cycle_places_no_sync(
    tmp_path: Path, place: str, plain: str
) -> None:
    folder = plant(tmp_path / "tree")
    old, new = PLACES[place]
    edit(folder, WORKER, (old, new.format(old)), (DRAFTS, plain.lstrip("\n") + DRAFTS))
    assert sync_in(scan(folder), WORKER).phase_between == place


@pytest.mark.parametrize("plain", ["", PLAIN], ids=["always drafts", "may skip the cycle"])
def test_a_sync_after_the_last_pass_stands_before_the_next_draft(
    tmp_path: Path, plain: str
) -> None:
    folder = plant(tmp_path / "tree")
    last = "        self.draft_extend(batch)\n"
    edit(folder, WORKER, (last, last + SYNC), (DRAFTS, plain.lstrip("\n") + DRAFTS))
    assert sync_in(scan(folder), WORKER).phase_between == "draft_extend->draft"


BATCH = "sglang/srt/managers/schedule_batch.py"
MODES = "from sglang.srt.model_executor.forward_batch_info import ForwardMode\n"
ALGORITHM = "from sglang.srt.speculative.spec_info import SpeculativeAlgorithm\n"
NOTE = "\n    def note(self, wanted=False):\n        self.noted = self.seq_lens.cpu()\n"
ASKED = NOTE.replace("        ", "        if wanted:\n            ", 1)
NGRAM, EAGLE = "NGRAMWorker", "EAGLEWorker"
PREPARES = {
    "both": ("self.note()", NOTE, {EAGLE, NGRAM}),
    "one": ("if self.spec_algorithm.is_ngram():\n            self.note()", NOTE, {NGRAM}),
    "the other": (
        "if self.spec_algorithm.is_ngram():\n            return\n        self.note()",
        NOTE,
        {EAGLE},
    ),
    "neither": (
        "if not self.spec_algorithm.is_none():\n            return\n        self.note()",
        NOTE,
        set(),
    ),
    "one, in place": (
        "if self.spec_algorithm.is_ngram():\n            self.noted = self.seq_lens.cpu()",
        "",
        {NGRAM},
    ),
    "each for a reason of its own": (
        "self.note(self.spec_algorithm.is_ngram())\n"
        "        self.note(not self.spec_algorithm.is_ngram())",
        ASKED,
        {EAGLE, NGRAM},
    ),
}


@pytest.mark.parametrize("way", PREPARES)
def test_a_sync_is_of_the_workers_for_which_its_tests_can_hold(tmp_path: Path, way: str) -> None:
    folder = plant(tmp_path / "tree")
    body, method, expected = PREPARES[way]
    mode = "        self.forward_mode = ForwardMode.DECODE\n"
    edit(
        folder,
        BATCH,
        (MODES, MODES + ALGORITHM),
        ("    reqs: List", "    spec_algorithm: SpeculativeAlgorithm\n    reqs: List"),
        (mode, f"{mode}        {body}\n{method}"),
    )
    found = {w for s in scan(folder).syncs if s.span.file == BATCH for w in s.workers}
    assert {worker.rpartition("::")[2] for worker in found} == expected
