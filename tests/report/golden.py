"""Compares what a renderer wrote with a file under ``tests/golden/report``.

``UPDATE_GOLDEN=1 pytest tests/report`` writes the files anew; read the diff before you commit.
"""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "golden" / "report"


def check(name: str, content: str) -> None:
    """Assert that the golden file ``name`` holds exactly ``content``."""
    path = _FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(content, encoding="utf-8", newline="\n")
    assert content == path.read_bytes().decode("utf-8")
