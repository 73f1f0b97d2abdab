"""The hand-written map, built once."""

from __future__ import annotations

import pytest

from specmap.codemap.graph import CodeMap
from tests.report.sample import sample_map


@pytest.fixture(scope="session")
def sample() -> CodeMap:
    return sample_map()
