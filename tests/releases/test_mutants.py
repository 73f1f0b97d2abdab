"""A small share of the mutation score: one mutant of every rule that 0.5.9 has a place for."""

from __future__ import annotations

import pytest

from tests.mutations.score import run

pytestmark = pytest.mark.releases


def test_mutants_are_caught_and_harmless_edits_are_silent() -> None:
    score = run(["0.5.9"], seed=11, each=1)
    assert score.alarms == []
    assert len(score.caught) >= 0.95 * (len(score.caught) + len(score.missed)), score.missed
    assert len({mutant.rule for mutant in score.caught}) >= 15
