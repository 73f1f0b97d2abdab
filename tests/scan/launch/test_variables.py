"""Variables that nothing in a tree reads: told where the name is of the package's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.scan.launch.variables import unread


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("SGLANG_SPEC_V2", ""),
        ("SGL_OLD", ""),
        (
            "SGLANG_SPEC_V3",
            "nothing in this tree reads SGLANG_SPEC_V3; did you mean SGLANG_SPEC_V2?",
        ),
        ("SGLANG_SPEC", "nothing in this tree reads SGLANG_SPEC; did you mean SGLANG_SPEC_V2?"),
        ("NCCL_DEBUGG", ""),  # a library's: nobody knows here which there are
        ("SINGLE", ""),
    ],
)
def test_a_variable_that_nothing_reads(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "sglang").mkdir()
    text = 'SGLANG_SPEC_V2 = EnvBool(True)\nold = get_bool_env_var("SGL_OLD")\n'
    (tmp_path / "sglang/environ.py").write_text(text, "utf-8")
    assert unread(tmp_path, "sglang", [name]) == ({name: told} if told else {})
