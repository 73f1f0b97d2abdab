"""What every test starts with."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def garbage_collection() -> Iterator[None]:
    """The command line switches the collector off for its one run; here it comes back."""
    yield
    gc.enable()
