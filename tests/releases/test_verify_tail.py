"""The tail of v1's verify in real releases: found by its data flow, whatever the names."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.fix.apply import applied
from specmap.fix.catalogue import verify_tail
from specmap.fix.names import load_names
from specmap.fix.tree import Tree
from specmap.pipeline import scan_tree
from tests.releases.trees import checkout_of

pytestmark = pytest.mark.releases
INFO = "sglang/srt/speculative/eagle_info.py"


def tree_of(release: str) -> Tree:
    root = Path(checkout_of(release).root)
    return Tree(root, scan_tree(f"sglang=={release}"), load_names())


@pytest.mark.parametrize(
    ("release", "line", "names"),
    [
        ("0.5.9", 390, "accept_index, verified_id, left_slots, accept_length_cpu"),
        ("0.5.12", 424, "accept_index, accept_tokens, left_slots, num_correct_drafts_cpu"),
    ],
)
def test_verify_of_the_first_workers_gets_one_wait(release: str, line: int, names: str) -> None:
    tree = tree_of(release)
    (proposal,) = verify_tail.find(tree)
    assert (proposal.span.file, proposal.span.line, proposal.refused) == (INFO, line, "")
    after = applied(tree.text(INFO), proposal.changes, INFO)
    flat = " ".join(after.split()).replace("( ", "(").replace(", )", ")")
    assert f"{names} = verify_tail.kept()" in flat or f"({names}) = verify_tail.kept()" in flat
    # What asks the guard's names and where the pages differ stays as it was, line by line.
    kept = {text.strip() for text in after.splitlines()}
    assert {text.strip().replace("if page_size == 1:", "elif page_size == 1:")
            for text in tree.text(INFO).splitlines()} - kept == set()  # fmt: skip


def test_a_release_without_the_first_workers_has_no_such_tail() -> None:
    assert list(verify_tail.find(tree_of("0.5.23"))) == []
