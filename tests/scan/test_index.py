from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.graph import Problem
from specmap.scan.index import Tree
from tests.scan.trees import plant

WORKER = "sglang/srt/speculative/eagle_worker.py"


def test_a_dangling_link_is_a_problem_of_that_file(tmp_path: Path) -> None:
    plant(tmp_path)
    lost = "sglang/srt/speculative/lost.py"
    (tmp_path / lost).symlink_to(tmp_path / "gone.py")
    tree = Tree(tmp_path, "sglang")
    assert lost in tree.files
    assert tree.module_at(lost) is None
    assert [c.name for c in tree.classes_named("EAGLEWorker")] == ["EAGLEWorker"]
    assert tree.problems == [Problem(lost, None, "cannot read: No such file or directory")]
    assert [parsed.file for parsed in tree.parsed_files()] == [WORKER]


def test_an_empty_file_is_not_the_link_that_was_there(tmp_path: Path) -> None:
    plant(tmp_path)
    lost = tmp_path / "sglang/srt/speculative/lost.py"
    lost.symlink_to(tmp_path / "gone.py")
    dangling = Tree(tmp_path, "sglang").digest
    lost.unlink()
    lost.write_bytes(b"")
    assert Tree(tmp_path, "sglang").digest != dangling


def test_a_file_that_cannot_be_parsed_is_a_problem_at_its_line(tmp_path: Path) -> None:
    plant(tmp_path, {WORKER: "class EAGLEWorker:\n    def draft(self:\n"})
    tree = Tree(tmp_path, "sglang")
    assert tree.module_at(WORKER) is None
    assert tree.module_at(WORKER) is None
    assert [(problem.file, problem.line) for problem in tree.problems] == [(WORKER, 2)]


def test_a_linked_folder_is_not_followed(tmp_path: Path) -> None:
    plant(tmp_path)
    folder = tmp_path / "sglang/srt/speculative"
    (folder / "again").symlink_to(folder, target_is_directory=True)
    files = Tree(tmp_path, "sglang").files
    assert [file for file in files if file.endswith("eagle_worker.py")] == [WORKER]


def test_subclasses_are_found_by_the_head_of_their_class_statement(tmp_path: Path) -> None:
    plant(tmp_path)
    (tmp_path / "sglang/srt/speculative/heads.py").write_bytes(
        b"# a class Decoy(Base): not one\r\n"
        b"text = 'class Quoted(Base):'\n"
        b"class\tTabbed(Base):\n"
        b"    pass\n"
        b"class Long(  # of a class\n"
        b"    Mixin,\n"
        b"    other.Base,\n"
        b"):\n"
        b"    subclass = Base\n"
        b"if text:\n"
        b"    class Below(Base): pass\n"
    )
    tree = Tree(tmp_path, "sglang")
    found = [child.name for child in tree.subclasses("Base", lambda module: False)]
    assert found == ["Tabbed", "Long", "Below"]


def test_a_question_about_words_reads_each_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "sglang/srt/speculative/other.py"
    plant(tmp_path, {WORKER: "first = second = 1\n", other: "second = 2\n"})
    tree = Tree(tmp_path, "sglang")
    read: list[str] = []
    source = tree.source

    def noted(file: str) -> bytes:
        read.append(file)
        return source(file)

    monkeypatch.setattr(tree, "source", noted)
    assert tree.files_holding(("none", "first", "second"), ("sglang/",)) == [WORKER, other]
    assert read == [file for file in tree.files if file.startswith("sglang/")]
