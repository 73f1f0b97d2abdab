"""Forks of 0.5.12, written by someone who had not seen the fixer, get verify's graph back."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gpu.trees import copy_tree
from specmap.codemap.source import qualname_of
from specmap.fixed import Request, fix_tree
from tests.releases.trees import checkout_of

pytestmark = pytest.mark.releases
BROKEN = Path(__file__).parents[2] / "benchmarks" / "gpu" / "broken"
NEW = {"EAGLEWorkerV2", "StandaloneWorkerV2"}
REWRITES = {
    "bypass": {"SPF105"},
    "constant": {"SPF101"},
    "disabled": {"SPF106"},
    "mode": {"SPF104"},
    "width": {"SPF101"},
}


@pytest.mark.parametrize("fork", REWRITES)
def test_verify_of_a_broken_fork_can_replay_again(fork: str, tmp_path: Path) -> None:
    stock = Path(checkout_of("0.5.12").root)
    root = copy_tree(stock, tmp_path, [BROKEN / f"{fork}.patch"])
    report = fix_tree(Request(str(root / "sglang"), ("SPF1",))).report
    assert {attempt.rewrite.id for attempt in report.applied} == REWRITES[fork]
    proven = {qualname_of(w) for a in report.applied for w in a.proposal.workers}
    assert proven >= NEW
