"""What is said when pip fails, in the words of real pip."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from specmap.errors import TargetError
from specmap.scan.fetch import PipIndex

FULL_DISK = """ERROR: Exception:
Traceback (most recent call last):
  File "pip/_internal/network/download.py", line 148, in __call__
    content_file.write(chunk)
OSError: [Errno 28] No space left on device
"""
HASH = """ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.
    unknown package:
        Expected sha256 0
"""


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (FULL_DISK, "OSError: [Errno 28] No space left on device"),
        (HASH, "THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."),
        ("", "pip said nothing"),
    ],
)
def test_the_reason_of_pip_is_told(
    stderr: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = subprocess.CompletedProcess([], 2, "", stderr)
    monkeypatch.setattr(subprocess, "run", lambda *args, **keywords: failed)
    with pytest.raises(TargetError) as caught:
        PipIndex().download("0.5.9", tmp_path)
    assert str(caught.value) == f"sglang==0.5.9: pip could not download it: {said}"
