"""What is true of every verify batch, and what is not known."""

from __future__ import annotations

import pytest

from specmap.fix.facts import Facts
from specmap.fix.names import load_names
from specmap.fix.tree import Tree
from tests.fix.forks import whole
from tests.review_tree import scan


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    folder = whole(tmp_path_factory.mktemp("facts") / "tree")
    return Facts(Tree(folder, scan(folder), load_names()))


@pytest.mark.parametrize(
    ("test", "value"),
    [
        ("b.forward_mode.is_target_verify()", True),
        ("not b.forward_mode.is_decode()", True),
        ("b.spec_info is None", False),
        ("b.spec_info is not None", True),
        ("self.model_runner.is_draft_worker", False),
        ("flag == self.model_runner.is_draft_worker", None),
        ("b.input_ids.numel() == b.batch_size", False),
        ("b.input_ids.numel() % b.batch_size == 0", True),
        ("len(b.input_ids) // b.batch_size > 1", True),
        ("b.batch_size * 1 == b.batch_size", True),
        ("2 * b.batch_size > b.input_ids.numel()", False),
        ("3 * b.batch_size > b.input_ids.numel()", None),
        ("unknown + b.batch_size == b.batch_size", None),
        ("b.batch_size <= self.max_bs", None),
        ("b.capture_hidden_mode is None", None),
        ("b.forward_mode.is_target_verify() or b.unknown", True),
        ("b.forward_mode.is_target_verify() and b.unknown", None),
    ],
)
def test_the_truth_of_a_test(test: str, value: bool | None, facts: Facts) -> None:
    assert facts.truth(test) is value
