"""Trees that are broken, cut out of a real one: one clear line, exit 2, nothing half-written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.releases.trees import checkout_of
from tests.shown import complaints

pytestmark = pytest.mark.releases

RELEASE = "0.5.9"
SPEC = "sglang/srt/speculative/"
FOLDERS = ("speculative", "managers", "model_executor", "mem_cache", "configs", "layers/attention")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scan from outside did; ``written`` is empty when no map was left."""

    code: int
    errors: str
    out: str
    written: dict[str, Any]
    left_over: tuple[str, ...]


@pytest.fixture(scope="session")
def slice_of_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of a release that the cycle needs, and the modules beside them."""
    root = checkout_of(RELEASE).root / "sglang"
    tree = tmp_path_factory.mktemp("slice") / "sglang"
    only_python = shutil.ignore_patterns("*.json", "*.so", "*.cu", "*.cpp", "*.h", "*.md")
    for folder in FOLDERS:
        shutil.copytree(root / "srt" / folder, tree / "srt" / folder, ignore=only_python)
    for module in [*root.glob("*.py"), *(root / "srt").glob("*.py")]:
        shutil.copy(module, tree / module.relative_to(root))
    return tree.parent


@pytest.fixture
def tree(slice_of_release: Path, tmp_path: Path) -> Path:
    """A copy of the slice that a test may break."""
    copy = tmp_path / "fork"
    shutil.copytree(slice_of_release, copy)
    return copy


def scan(target: Path, tmp_path: Path) -> Outcome:
    """Run the command on a tree with an empty cache, writing a map."""
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-m", "specmap", "scan", str(target), "--format", "json"]
    command += ["--output", str(out / "map.json")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "SPECMAP_CACHE_DIR": str(tmp_path / "cache")},
        timeout=300,
    )
    path = out / "map.json"
    return Outcome(
        code=done.returncode,
        errors=complaints(done.stderr),
        out=done.stdout,
        written=json.loads(path.read_text(encoding="utf-8")) if path.exists() else {},
        left_over=tuple(sorted(p.name for p in out.iterdir() if p != path)),
    )


def workers(outcome: Outcome) -> set[str]:
    return {worker["name"] for worker in outcome.written["workers"]}


def verify_arms(outcome: Outcome, worker: str) -> set[str]:
    """Return the kinds of sink that the worker's verify phase reaches."""
    (found,) = [w for w in outcome.written["workers"] if w["name"] == worker]
    return {
        arm["kind"]
        for phase in found["phases"]
        if phase["name"] == "verify"
        for arm in phase["arms"]
    }


def assert_one_line(outcome: Outcome, *words: str) -> None:
    assert outcome.code == 2
    lines = outcome.errors.strip().splitlines()
    assert len(lines) == 1, outcome.errors
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in outcome.errors
    assert outcome.left_over == ()


def assert_mapped_in_full(outcome: Outcome) -> None:
    assert (outcome.code, outcome.errors) == (0, "")
    assert not outcome.written["partial"]
    assert {"graph", "eager"} <= verify_arms(outcome, "EAGLEWorker")


def test_the_slice_itself_is_whole(tree: Path, tmp_path: Path) -> None:
    assert_mapped_in_full(scan(tree, tmp_path))


def test_syntax_error_in_one_module(tree: Path, tmp_path: Path) -> None:
    broken = tree / SPEC / "ngram_worker.py"
    broken.write_text(broken.read_text(encoding="utf-8") + "\ndef broken(:\n", encoding="utf-8")
    outcome = scan(tree, tmp_path)
    assert_one_line(outcome, "ngram_worker.py", "partial")
    assert outcome.written["partial"]
    assert [p["file"] for p in outcome.written["problems"] if p["partial"]] == [
        f"{SPEC}ngram_worker.py"
    ]
    assert {"graph", "eager"} <= verify_arms(outcome, "EAGLEWorker")


def test_byte_order_mark(tree: Path, tmp_path: Path) -> None:
    marked = tree / SPEC / "eagle_worker.py"
    marked.write_bytes(b"\xef\xbb\xbf" + marked.read_bytes())
    outcome = scan(tree, tmp_path)
    assert_mapped_in_full(outcome)
    (worker,) = [w for w in outcome.written["workers"] if w["name"] == "EAGLEWorker"]
    assert worker["span"]["line"] == 78


def test_latin_1_with_a_coding_line(tree: Path, tmp_path: Path) -> None:
    module = tree / SPEC / "eagle_worker.py"
    head = "# -*- coding: latin-1 -*-\n# Prüfung\n".encode("latin-1")
    module.write_bytes(head + module.read_bytes())
    outcome = scan(tree, tmp_path)
    assert_mapped_in_full(outcome)
    (worker,) = [w for w in outcome.written["workers"] if w["name"] == "EAGLEWorker"]
    assert worker["span"]["line"] == 80


def test_latin_1_without_a_coding_line(tree: Path, tmp_path: Path) -> None:
    """Python itself refuses such a module, so the map is partial and names it."""
    module = tree / SPEC / "ngram_worker.py"
    module.write_bytes("# Prüfung\n".encode("latin-1") + module.read_bytes())
    outcome = scan(tree, tmp_path)
    assert_one_line(outcome, "ngram_worker.py", "partial")
    assert {"graph", "eager"} <= verify_arms(outcome, "EAGLEWorker")


def test_cyclic_import(tree: Path, tmp_path: Path) -> None:
    for name, other in [("ring_a", "ring_b"), ("ring_b", "ring_a")]:
        text = f"from sglang.srt.speculative.{other} import EagleVerifyInput\n"
        (tree / SPEC / f"{name}.py").write_text(text, encoding="utf-8")
    worker = tree / SPEC / "eagle_worker.py"
    text = worker.read_text(encoding="utf-8")
    ring = "from sglang.srt.speculative.ring_a import EagleVerifyInput as Ring\n"
    text = text.replace("import logging\n", f"import logging\n{ring}", 1)
    text = text.replace("spec_info: EagleVerifyInput)", "spec_info: Ring)", 1)
    assert text.count("Ring") == 2
    worker.write_text(text, encoding="utf-8")
    outcome = scan(tree, tmp_path)
    assert_mapped_in_full(outcome)
    (call,) = [
        edge
        for edge in outcome.written["edges"]
        if edge["caller"].endswith("EAGLEWorker.verify") and edge["text"] == "spec_info.verify"
    ]
    # The annotation leads nowhere; the argument at the call site may still tell.
    names = {callee.rpartition("::")[2] for callee in call["callees"]}
    assert names <= {"EagleVerifyInput.verify"}
    assert names or (call["status"] == "unresolved" and call["reason"])


def test_expression_of_ten_thousand_terms(tree: Path, tmp_path: Path) -> None:
    worker = tree / SPEC / "eagle_worker.py"
    text = worker.read_text(encoding="utf-8")
    deep = f"        total = {' + '.join(['batch.a'] * 10_000)}\n"
    anchor = "        seq_lens_pre_verify = batch.seq_lens.clone()\n"
    assert text.count(anchor) == 1
    worker.write_text(text.replace(anchor, anchor + deep), encoding="utf-8")
    outcome = scan(tree, tmp_path)
    if outcome.code == 0:
        assert_mapped_in_full(outcome)
    else:
        assert_one_line(outcome, "eagle_worker.py", "partial")
        assert "NGRAMWorker" in workers(outcome)


def test_empty_speculative_folder(tree: Path, tmp_path: Path) -> None:
    shutil.rmtree(tree / SPEC)
    (tree / SPEC).mkdir()
    outcome = scan(tree, tmp_path)
    assert_one_line(outcome, "sglang/srt/speculative")
    assert outcome.written == {}


def test_half_a_tree(tree: Path, tmp_path: Path) -> None:
    shutil.rmtree(tree / SPEC)
    outcome = scan(tree, tmp_path)
    assert_one_line(outcome, "sglang/srt/speculative", "missing")
    assert outcome.written == {}


def test_no_tree(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    outcome = scan(folder, tmp_path)
    assert_one_line(outcome, "not a SGLang tree")
    assert outcome.written == {}


def test_symlink_loop_inside_the_tree(tree: Path, tmp_path: Path) -> None:
    (tree / SPEC / "again").symlink_to(tree / SPEC, target_is_directory=True)
    (tree / SPEC / "round.py").symlink_to(tree / SPEC / "round.py")
    outcome = scan(tree, tmp_path)
    if outcome.code == 0:
        assert_mapped_in_full(outcome)
    else:
        assert_one_line(outcome, "round.py", "partial")
        assert {"graph", "eager"} <= verify_arms(outcome, "EAGLEWorker")


def test_target_that_is_a_symlink_loop(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    outcome = scan(tmp_path / "a", tmp_path)
    assert_one_line(outcome)
    assert outcome.written == {}


def test_a_worker_module_is_missing(tree: Path, tmp_path: Path) -> None:
    """A fork that removed a worker: the scheduler's table names it, the rest is mapped."""
    (tree / SPEC / "ngram_worker.py").unlink()
    outcome = scan(tree, tmp_path)
    assert outcome.code in (0, 2)
    assert "Traceback" not in outcome.errors
    assert {"graph", "eager"} <= verify_arms(outcome, "EAGLEWorker")
    assert "NGRAMWorker" not in workers(outcome)


def test_an_unwritable_output(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    command = [sys.executable, "-m", "specmap", "scan", str(tree), "--format", "json"]
    command += ["--output", str(tmp_path / "file" / "map.json")]
    environment = {**os.environ, "SPECMAP_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert len(complaints(done.stderr).strip().splitlines()) == 1
    assert (tmp_path / "file").read_text(encoding="utf-8") == ""
