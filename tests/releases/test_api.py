"""The examples of docs/api.md as they stand, on the release that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_api import blocks
from tests.trace.recorded import MAX_BS_2

pytestmark = pytest.mark.releases


@pytest.mark.parametrize("code", blocks(), ids=lambda code: code.splitlines()[2][:40])
def test_the_examples_run(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "output" / "trace-1"
    run.mkdir(parents=True)
    MAX_BS_2.write(run)
    exec(compile(code, "api.md", "exec"), {})
    out = capsys.readouterr().out
    # What an H200 and the source say of these settings.
    if "judge_launch" in code:
        assert "verify runs eager: ['server_args.disable_cuda_graph']" in out
    if "sweep_launch" in code:
        assert "('3', 'no', '4') kept" in out
        assert "('3', 'yes', '4') lost draft verify draft_extend" in out
    assert out.strip()
