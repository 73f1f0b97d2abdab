"""The tail of a greedy verify: where it gets one wait, and what keeps it as it was."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from specmap.codemap.remedy import Proposal
from specmap.fix.apply import applied
from specmap.fix.catalogue import verify_tail
from specmap.fix.names import load_names
from specmap.fix.tree import Tree
from tests.fix.forks import whole
from tests.review_tree import LAST_LINE, VERIFY, edit, scan

GUARD = """        if (
            page_size == 1
            and sampling_info.is_all_greedy
            and vocab_mask is None
            and not batch.return_logprob
            and not sampling_info.has_custom_logit_processor
            and not sampling_info.penalizer_orchestrator.is_required
            and sampling_info.logit_bias is None
            and SIMULATE_ACC_LEN <= 0.0
            and batch.device in ("cuda", "cpu")
        ):
"""
ASKED = """        sampling_info = batch.sampling_info
        page_size = self.page_size
        vocab_mask = None
        if (
            SIMULATE_ACC_LEN > 0.0
            or sampling_info.has_custom_logit_processor
            or sampling_info.penalizer_orchestrator.is_required
            or sampling_info.logit_bias is not None
            or batch.return_logprob
            or sampling_info.is_all_greedy
        ):
            page_size = page_size
"""
TAIL = """        predict = torch.empty((9,), dtype=torch.int32, device=batch.device)
        rows = torch.full((2, 4), -1, dtype=torch.int32, device=batch.device)
        counts = torch.empty((2,), dtype=torch.int32, device=batch.device)
        rows_cpu = rows.tolist()
        predict_cpu = predict.tolist()
        ended = False
        for i, (req, row) in enumerate(zip(batch.reqs, rows_cpu)):
            for j, index in enumerate(row):
                req.output_ids.append(predict_cpu[index])
                if req.finished():
                    ended = True
                    rows[i, j + 1 :] = -1
                    break
        if ended:
            counts = (rows != -1).sum(dim=1) - 1

        # What was not accepted is freed.
        rows = rows[rows != -1]
        tokens = predict[rows]
        rejected = torch.full_like(draft_tokens, True, dtype=torch.bool)
        rejected[rows] = False
        counts_cpu = counts.cpu()
        counts_list = counts_cpu.tolist()
        if page_size == 1:
            # Waits.
            self.allocator.free(batch.out_cache_loc[rejected])
        else:
            self.allocator.free_pages(rejected)
"""


def found(folder: Path, *changes: tuple[str, str], asked: str = ASKED) -> tuple[Tree, Proposal]:
    """What the rewrite says of a verify with such a tail, changed."""
    whole(folder)
    edit(
        folder, VERIFY, (LAST_LINE, f"{asked}{TAIL}{LAST_LINE}"),
        ("from sglang.srt.managers.utils",
         "import torch\nSIMULATE_ACC_LEN = 0.0\nfrom sglang.srt.managers.utils"),
        *changes,
    )  # fmt: skip
    tree = Tree(folder, scan(folder), load_names())
    (proposal,) = verify_tail.find(tree)
    return tree, proposal


def test_the_greedy_way_waits_once_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    tree, proposal = found(tmp_path / "t")
    assert proposal.refused == ""
    after = applied(tree.text(VERIFY), proposal.changes, VERIFY)
    ast.parse(after)
    assert GUARD in after
    assert after.count("VerifyTail(rows, predict, batch.out_cache_loc)") == 1
    for line in TAIL.splitlines():
        assert line.strip() in after
    assert (
        "        # What was not accepted is freed.\n        if verify_tail is not None:\n" in after
    )
    assert "            rows, tokens, left_slots, counts_cpu = verify_tail.kept()\n" in after
    assert (
        "            counts = (rows != -1).sum(dim=1) - 1\n            verify_tail = None\n"
        in after
    )
    freed = "            self.allocator.free(left_slots)\n        elif page_size == 1:\n"
    assert freed in after


def test_what_was_rewritten_is_not_found_again(tmp_path: Path) -> None:
    tree, proposal = found(tmp_path / "t")
    text = applied(tree.text(VERIFY), proposal.changes, VERIFY)
    (tmp_path / "t" / VERIFY).write_text(text, "utf-8")
    again = Tree(tmp_path / "t", scan(tmp_path / "t"), load_names())
    assert list(verify_tail.find(again)) == []


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("                    ended = True\n", "", "rows changes where ended is not set"),
        ("        ended = False\n", "        ended = False\n        rows = rows[:1]\n",
         "rows changes where ended is not set"),
        ("        ended = False\n", "        ended = False\n        predict.add_(1)\n",
         "predict changes where ended is not set"),
        ("        ended = False\n", "        ended = False\n        counts[0] = 1\n",
         "counts changes where ended is not set"),
        ("        if ended:\n", "        if not ended:\n", "the lengths are not counted again"),
        ("(rows != -1).sum(dim=1) - 1", "(rows != -1).sum(dim=1)", "the lengths are not counted"),
        ("tokens = predict[rows]", "tokens = other[rows]", "is not what follows an accept"),
        ("rejected[rows] = False", "rejected[counts] = False", "is not what follows an accept"),
        ("counts_cpu = counts.cpu()", "counts_cpu = tokens.cpu()", "not counted again"),
        ("if page_size == 1:", "if page_size:", "not used to free slots under a test"),
        ("            # Waits.\n", "            rejected[0] = False\n", "not used to free slots"),
        ("        vocab_mask = None\n", "        left_slots = vocab_mask = None\n", "is taken"),
    ],
)  # fmt: skip
def test_a_tail_that_is_another_one_is_refused(
    old: str, new: str, reason: str, tmp_path: Path
) -> None:
    _, proposal = found(tmp_path / "t", (old, new))
    assert reason in proposal.refused
    assert proposal.changes == ()


def test_a_flag_that_the_tree_never_reads_is_not_asked(tmp_path: Path) -> None:
    asked = ASKED.replace("            or batch.return_logprob\n", "")
    _, proposal = found(tmp_path / "t", asked=asked)
    assert proposal.refused == (
        "nothing in the tree reads batch.return_logprob, which the guard has to ask"
    )
