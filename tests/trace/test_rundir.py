from __future__ import annotations

import json
from pathlib import Path

import pytest

from specmap.errors import OutputError
from specmap.trace import rundir
from specmap.trace.agent.identity import _without_secret


def test_runs_are_numbered_under_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "output" / "trace-7").mkdir(parents=True)
    (tmp_path / "output" / "trace-x").mkdir()
    assert rundir.make(None) == tmp_path / "output" / "trace-8"
    assert rundir.make(None) == tmp_path / "output" / "trace-9"


def test_a_folder_that_holds_a_run_is_refused(tmp_path: Path) -> None:
    folder = rundir.make(tmp_path / "run")
    rundir.describe(folder, {"command": ["python"]}, "{}")
    with pytest.raises(OutputError, match=r"already holds a run \(run.json\); name another --dir$"):
        rundir.make(folder)


def test_a_folder_with_other_files_is_taken_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    assert rundir.make(tmp_path) == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_run_says_what_it_is_of(tmp_path: Path) -> None:
    facts = {"command": ["python", "-m", "x"], "release": "0.5.12", "target": "t", "specmap": "1"}
    rundir.describe(tmp_path, facts, '{"schema": 1}')
    assert json.loads((tmp_path / "run.json").read_text("utf-8")) == {"schema": 1, **facts}
    assert (tmp_path / "plan.json").read_text("utf-8") == '{"schema": 1}'


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null/run", "/proc"])
def test_a_folder_that_cannot_be_written_is_one_line(place: str) -> None:
    with pytest.raises(OutputError, match=f"cannot write a run to '{place}': .*; name another"):
        rundir.make(Path(place))


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """``/dev/full`` refuses every write as a full disk does."""
    (tmp_path / "plan.json").symlink_to("/dev/full")
    with pytest.raises(OutputError, match="No space left on device; name another --dir"):
        rundir.describe(tmp_path, {}, "{}")


def test_a_run_holds_no_secret() -> None:
    command = [
        "env", "HF_TOKEN=hf_abc", "python", "-m", "x", "--api-key", "sk-1", "--admin-api-key=sk-2",
        "--speculative-num-draft-tokens", "4", "--tokenizer-path", "t", "--port", "1",
    ]  # fmt: skip
    assert rundir.without_secrets(command) == [
        "env", "HF_TOKEN=***", "python", "-m", "x", "--api-key", "***", "--admin-api-key=***",
        "--speculative-num-draft-tokens", "4", "--tokenizer-path", "t", "--port", "1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "word",
    ["key", "keys", "token", "password", "passphrase", "secret", "credential", "credentials"],
)
def test_the_command_and_the_rank_hide_the_same_words(word: str) -> None:
    assert rundir.without_secrets([f"--some-{word}", "hush"]) == [f"--some-{word}", "***"]
    assert _without_secret(f"some_{word}", "hush") == "<hidden>"
