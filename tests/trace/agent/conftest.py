from __future__ import annotations

from pathlib import Path

import pytest

from specmap.trace.agent import build_ring
from tests.trace.agent.toy import Toy


@pytest.fixture(scope="session")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C ring of this Python, built as the command line builds it."""
    return Path(build_ring.build(str(tmp_path_factory.mktemp("ring")))).parent


@pytest.fixture(params=["python", "c"])
def toy(request: pytest.FixtureRequest, tmp_path: Path, extension: Path) -> Toy:
    """The traced package, once with each ring."""
    return Toy(tmp_path, request.param, extension)


@pytest.fixture
def plain_toy(tmp_path: Path) -> Toy:
    """The traced package, where the ring does not matter."""
    return Toy(tmp_path)
