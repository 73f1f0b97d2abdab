"""What holds for every renderer."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from specmap.codemap.graph import CodeMap, Problem
from specmap.report import RENDERERS, RenderOptions
from tests.report import golden

TEXTS = ["text", "json", "dot", "mermaid"]
VIEWS = {
    "all": RenderOptions(),
    "EAGLEWorker": RenderOptions(workers=("EAGLEWorker",)),
    "EAGLEWorker-verify": RenderOptions(workers=("EAGLEWorker",), phases=("verify",)),
}


def text_of(sample: CodeMap, name: str, options: RenderOptions) -> str:
    content = RENDERERS[name].render(sample, options)
    assert isinstance(content, str)
    return content


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("view", VIEWS)
def test_golden(sample: CodeMap, name: str, view: str) -> None:
    golden.check(f"{view}{RENDERERS[name].suffix}", text_of(sample, name, VIEWS[view]))


@pytest.mark.parametrize("name", TEXTS)
def test_same_bytes_under_another_hash_seed(sample: CodeMap, name: str) -> None:
    program = (
        "from specmap.report import RENDERERS, RenderOptions\n"
        "from tests.report.sample import sample_map\n"
        f"print(RENDERERS[{name!r}].render(sample_map(), RenderOptions(('EAGLEWorker',))), end='')"
    )
    done = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert done[0] == done[1] == text_of(sample, name, VIEWS["EAGLEWorker"]).encode()


@pytest.mark.parametrize("name", TEXTS)
def test_a_map_without_workers(sample: CodeMap, name: str) -> None:
    empty = replace(
        sample, workers=(), classes=(), functions=(), edges=(), decisions=(), sinks=(), flags=(),
        syncs=(), attributes=(), factories=(), shared=(), doubles=(), files=(),
    )  # fmt: skip
    assert "sglang==0.5.9" in text_of(empty, name, RenderOptions())


def test_a_partial_map_says_so(sample: CodeMap) -> None:
    problem = Problem("sglang/srt/a.py", 3, "invalid syntax")
    text = text_of(replace(sample, problems=(problem,)), "text", RenderOptions())
    assert "This map is partial" in text
    assert "sglang/srt/a.py:3: invalid syntax" in text
    assert "partial" not in text_of(sample, "text", RenderOptions())


def test_asking_for_json_loads_no_drawing_library() -> None:
    program = (
        "import sys\n"
        "from specmap.report import RENDERERS, as_json\n"
        "print(sorted({'rich', 'networkx', 'graphviz', 'libcst'} & set(sys.modules)))"
    )
    env = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, check=True, text=True
    )
    assert done.stdout == "[]\n"
