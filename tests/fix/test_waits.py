"""Rewrites of waits: what keeps a list or a mask from being what the host takes it for."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.fix.catalogue import pinned
from specmap.fix.names import load_names
from specmap.fix.tree import Tree
from tests.fix.forks import whole
from tests.review_tree import LAST_LINE, VERIFY, edit, scan

FILLED = (
    "        rows = []\n        for i, request in enumerate(batch.reqs):\n"
    "            rows.append(i)\n"
)
UPLOAD = "        index = torch.tensor(rows, dtype=torch.int64, device=batch.seq_lens.device)\n"


def refusals(folder: Path, code: str) -> list[str]:
    """What pinned-upload says of code in verify; empty text where it applies."""
    whole(folder)
    edit(
        folder, VERIFY, (LAST_LINE, f"{code}{LAST_LINE}"),
        ("from sglang.srt.managers.utils", "import torch\nfrom sglang.srt.managers.utils"),
    )  # fmt: skip
    return [p.refused for p in pinned.find(Tree(folder, scan(folder), load_names()))]


def test_a_list_of_counters_goes_from_pinned_memory(tmp_path: Path) -> None:
    assert refusals(tmp_path / "t", FILLED + UPLOAD) == [""]


def test_a_list_that_was_copied_to_the_host_goes_from_pinned_memory(tmp_path: Path) -> None:
    code = f"        rows = batch.seq_lens.tolist()\n{UPLOAD}"
    assert refusals(tmp_path / "t", code) == [""]


@pytest.mark.parametrize(
    "change",
    [
        "rows.extend(batch.seq_lens[:1])",
        "rows.insert(0, batch.seq_lens[0])",
        "rows += [batch.seq_lens[0]]",
        "rows[0] = batch.seq_lens[0]",
        "rows.append(batch.seq_lens[0])",
        "rows = [batch.seq_lens[0]]",
        "rows, other = other, rows",
    ],
)
def test_a_list_that_may_hold_device_scalars_is_refused(change: str, tmp_path: Path) -> None:
    code = f"{FILLED}        {change}\n{UPLOAD}"
    assert refusals(tmp_path / "t", code) == ["the type of the elements of rows is not known"]
