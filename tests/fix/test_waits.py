"""Rewrites of waits: what keeps a list or a mask from being what the host takes it for."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.fix.apply import applied
from specmap.fix.catalogue import packed, pinned, request_loop
from specmap.fix.dtypes import dtype_of
from specmap.fix.facts import facts_of
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


BATCH = "sglang/srt/managers/schedule_batch.py"
FIELD = "\n\nclass Lengths:\n    extend_lens: List[int] = None\n"
LOOP = (
    "        pt = 0\n"
    "        for i, extend_len in enumerate(batch.extend_lens):\n"
    "            input_ids = batch.input_ids[pt : pt + extend_len]\n"
    "            batch.input_ids[pt : pt + extend_len] = torch.cat(\n"
    "                (input_ids[1:], batch.verified[i].reshape(1))\n            )\n"
    "            pt += extend_len\n"
)
SHIFTED = "        rotate_segments_(batch.input_ids, batch.extend_lens, batch.verified)\n"


def shifts(folder: Path, code: str, field: str = FIELD) -> list[tuple[str, str]]:
    """What request-loop says of code in verify, and the file's text after it."""
    whole(folder)
    edit(folder, VERIFY, (LAST_LINE, f"{code}{LAST_LINE}"))
    (folder / BATCH).write_text((folder / BATCH).read_text("utf-8") + field, "utf-8")
    tree = Tree(folder, scan(folder), load_names())
    text = tree.text(VERIFY)
    return [(p.refused, applied(text, p.changes, VERIFY)) for p in request_loop.find(tree)]


def test_a_loop_over_requests_becomes_one_shift(tmp_path: Path) -> None:
    [(refused, text)] = shifts(tmp_path / "t", LOOP)
    assert refused == ""
    assert f"{SHIFTED}{LAST_LINE}" in text
    assert "pt" not in text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("        pt = 0\n", "        pt = 1\n", "pt = 0 does not lead to the loop"),
        ("        pt = 0\n", "        pt = 0\n        other = 1\n", "pt = 0 does not lead"),
        (
            "            pt += extend_len\n",
            "            pt += extend_len\n        end = pt\n",
            "pt is",
        ),
        ("            pt +=", "            # the next one\n            pt +=", "a comment stands"),
    ],
)
def test_a_loop_that_does_more_is_refused(old: str, new: str, reason: str, tmp_path: Path) -> None:
    [(refused, text)] = shifts(tmp_path / "t", LOOP.replace(old, new))
    assert refused.startswith(reason)
    assert "rotate_segments_" not in text


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("", "no class says that extend_lens is a list of numbers"),
        (
            "\n\nclass Other:\n    extend_lens: Optional[torch.Tensor] = None\n",
            "extend_lens may be",
        ),
    ],
)
def test_lengths_that_may_be_on_the_device_are_refused(
    field: str, reason: str, tmp_path: Path
) -> None:
    [(refused, _)] = shifts(tmp_path / "t", LOOP, field)
    assert refused.startswith(reason)


def test_another_loop_is_not_meant(tmp_path: Path) -> None:
    assert shifts(tmp_path / "t", LOOP.replace("input_ids[1:]", "input_ids[:-1]")) == []


MADE = (
    "        first = torch.empty(4, dtype=torch.int32, device=batch.seq_lens.device)\n"
    "        second = torch.full((4,), -1, dtype=torch.int32, device=batch.seq_lens.device)\n"
)
READ = "        one = first.tolist()\n        other = second.tolist()\n"
FUNCTIONS = (
    "def filled(into, beside):\n    fill(into, beside)\n    return into, beside\n\n\n"
    "def made(like):\n    fresh = torch.full((4,), -1, dtype=torch.int32)\n"
    "    fresh[:2] = like\n    return fresh\n\n\n"
    "def wide(like):\n    return torch.full((4,), -1, dtype=torch.int64)\n\n\n"
)


def dtypes(folder: Path, between: str) -> list[str]:
    """The dtypes of two names in verify, with code between where they are made and read."""
    whole(folder)
    edit(
        folder, VERIFY, (LAST_LINE, f"{MADE}{between}{LAST_LINE}"),
        ("class EagleVerify", f"{FUNCTIONS}class EagleVerify"),
    )  # fmt: skip
    tree = Tree(folder, scan(folder), load_names())
    facts = facts_of(tree)
    symbol = next(f.id for f in tree.codemap.functions if f.id.startswith(f"{VERIFY}::"))
    return [dtype_of(name, facts.scope(symbol), facts) for name in ("first", "second")]


def test_two_lists_in_a_row_come_with_one_copy(tmp_path: Path) -> None:
    folder = whole(tmp_path / "t")
    edit(
        folder, VERIFY, (LAST_LINE, f"{MADE}{READ}{LAST_LINE}"),
        ("from sglang.srt.managers.utils", "import torch\nfrom sglang.srt.managers.utils"),
    )  # fmt: skip
    assert [p.refused for p in packed.find(Tree(folder, scan(folder), load_names()))] == [""]


@pytest.mark.parametrize(
    "between",
    [
        "        first, second = filled(into=first, beside=second)\n",
        "        if batch.reqs:\n            first = made(first)\n",
        "        first = first[first != 0]\n",
    ],
)
def test_a_name_has_the_dtype_of_all_that_is_stored_under_it(between: str, tmp_path: Path) -> None:
    assert dtypes(tmp_path / "t", between) == ["torch.int32", "torch.int32"]


@pytest.mark.parametrize(
    "between",
    [
        "        first = wide(first)\n",
        "        first, other = filled(wide(first), second)\n",
        "        first, other = elsewhere(first, second)\n",
        "        for first in batch.rows:\n            pass\n",
        "        first += batch.seq_lens\n",
        "        first = torch.empty(4, dtype=batch.dtype)\n",
        "        first = batch.seq_lens\n",
    ],
)
def test_a_name_that_may_hold_another_dtype_has_none(between: str, tmp_path: Path) -> None:
    assert dtypes(tmp_path / "t", between) == ["", "torch.int32"]
