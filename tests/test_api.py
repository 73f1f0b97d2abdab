"""The public API: its names, its documentation, and what notebooks show."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import pytest

import specmap
from specmap import notebook
from specmap.codemap.launch import Refusal
from specmap.codemap.source import Span
from specmap.codemap.sweep import Axis
from tests.report.sample_outcome import outcome
from tests.report.sample_run import RUN
from tests.report.test_findings import FULL as REPORT
from tests.small_map import small_map
from tests.sweep.sample import cell, refused, sweep
from tests.sweep.tree import LAUNCH, sweepable
from tests.trace.recorded import MAX_BS_2

OUTCOME = outcome()
DOCS = Path(__file__).parent.parent / "docs" / "api.md"
SWEEP = sweep((Axis("page", ("1", "<64>")), Axis("bs", ("4",))), cell("1"), refused("<64>", "4"))
PUBLIC = {
    "CodeMap", "Explanation", "Finding", "Launch", "LintReport", "Outcome", "PhaseName", "Run",
    "SpecmapError", "Sweep", "Verdict", "__version__", "explain_place", "judge_launch",
    "lint_tree", "load_run", "scan_tree", "sweep_launch", "to_json",
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sweepable(tmp_path_factory.mktemp("api"))


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)


def test_the_public_names_are_these_and_documented() -> None:
    """A name that goes, or one that comes by accident, breaks somebody's script."""
    assert set(specmap.__all__) == PUBLIC
    assert specmap.__all__ == sorted(specmap.__all__)
    text = DOCS.read_text("utf-8")
    for name in PUBLIC - {"__version__"}:
        assert f"`{name}" in text, f"{name} is not in docs/api.md"
        assert getattr(specmap, name).__doc__, name


@pytest.mark.parametrize("code", blocks(), ids=lambda code: code.splitlines()[2][:40])
def test_the_examples_run(
    code: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """On a small tree and a recorded run, in the place of those that the page names."""
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "output" / "trace-1"
    run.mkdir(parents=True)
    MAX_BS_2.write(run)
    exec(compile(code.replace("sglang==0.5.9", str(root)), "api.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_the_page_has_an_example_for_each_function() -> None:
    functions = {name for name in PUBLIC if name[0].islower()}
    used = {name for name in functions for code in blocks() if f"specmap.{name}(" in code}
    assert used == functions


def test_a_launch_may_be_text(root: Path) -> None:
    found = specmap.judge_launch(root, f"{LAUNCH} --disable-cuda-graph", use_cache=False)
    assert found.findings
    with pytest.raises(specmap.SpecmapError, match="nearest"):
        specmap.judge_launch(root, f"{LAUNCH} --disable-cuda-graphs", use_cache=False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"text": None}, "text of a launch is None: expected a text"),
        ({"text": ["--model-path", "m"]}, "expected a text"),
        ({"gpu_memory": float("nan")}, "--gpu-memory must be above 0 and finite"),
        ({"gpu_memory": -3}, "--gpu-memory must be above 0"),
        ({"gpu_memory": "80"}, "gpu_memory of a launch is '80': expected a number"),
        ({"sm": 0}, "--sm must be above 0"),
        ({"sm": 9.0}, "expected a whole number"),
        ({"tp": True}, "expected a whole number"),
        ({"concurrency": 0}, "--concurrency must be above 0"),
        ({"batch": 4}, "batch of a launch is 4: expected a text such as 'bs=4'"),
        ({"batch": {"bs": 4}}, "expected a text such as 'bs=4'"),
        ({"expect": None}, "expected a text such as 'verify=GRAPH'"),
        ({"env": ["A=1"]}, "expected a mapping of names to texts"),
        ({"env": {"A": 1}}, "env of a launch has 'A': 1: expected two texts"),
        ({"model_config": 3}, "expected a path"),
    ],
)
def test_a_launch_refuses_what_the_command_line_does(
    wrong: dict[str, object], message: str
) -> None:
    stated: dict[str, object] = {"text": LAUNCH, **wrong}
    with pytest.raises(specmap.SpecmapError, match=re.escape(message)):
        specmap.Launch(**stated)  # type: ignore[arg-type]


def test_names_may_stand_alone(root: Path, tmp_path: Path) -> None:
    """One text is one name, not its letters."""
    one = specmap.lint_tree(root, select="SPM2", use_cache=False)
    assert one == specmap.lint_tree(root, select=["SPM2"], use_cache=False)
    for runs in (str(tmp_path), tmp_path, [tmp_path]):
        with pytest.raises(specmap.SpecmapError, match=f"'{tmp_path}' is no run"):
            specmap.sweep_launch(root, LAUNCH, runs=runs, use_cache=False)


def test_the_calls_refuse_what_they_cannot_mean(root: Path) -> None:
    with pytest.raises(specmap.SpecmapError, match="text of a launch is None"):
        specmap.judge_launch(root, None)  # type: ignore[arg-type]
    with pytest.raises(specmap.SpecmapError, match="no platform 'xx'; there are cuda, hip"):
        specmap.scan_tree(root, platform="xx", use_cache=False)
    with pytest.raises(specmap.SpecmapError, match="accept lengths are"):
        specmap.sweep_launch(root, LAUNCH, accept_lengths=[2.6])  # type: ignore[arg-type]


CALLS: dict[str, Callable[..., object]] = {
    "scan_tree": specmap.scan_tree,
    "judge_launch": partial(specmap.judge_launch, launch=LAUNCH),
    "explain_place": specmap.explain_place,
    "lint_tree": specmap.lint_tree,
    "load_run": specmap.load_run,
    "sweep_launch": partial(specmap.sweep_launch, launch=LAUNCH),
}
NOTHING = object()


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("scan_tree", {"target": NOTHING}),
        ("scan_tree", {"platform": None}),
        ("judge_launch", {"target": NOTHING}),
        ("judge_launch", {"launch": NOTHING}),
        ("explain_place", {"target": None, "place": "verify"}),
        ("explain_place", {"place": None}),
        ("explain_place", {"place": NOTHING}),
        ("explain_place", {"place": ""}),
        ("explain_place", {"place": "verify", "launch": NOTHING}),
        ("lint_tree", {"target": NOTHING}),
        ("lint_tree", {"base": NOTHING}),
        ("lint_tree", {"select": None}),
        ("lint_tree", {"ignore": [NOTHING]}),
        ("lint_tree", {"platform": NOTHING}),
        ("load_run", {"folder": None}),
        ("load_run", {"folder": NOTHING}),
        ("load_run", {"other": NOTHING}),
        ("load_run", {"baseline_tps": "100"}),
        ("load_run", {"baseline_tps": float("nan")}),
        ("load_run", {"baseline_tps": -1}),
        ("load_run", {"target": NOTHING}),
        ("sweep_launch", {"target": NOTHING}),
        ("sweep_launch", {"launch": NOTHING}),
        ("sweep_launch", {"vary": NOTHING}),
        ("sweep_launch", {"runs": None}),
        ("sweep_launch", {"runs": [NOTHING]}),
        ("sweep_launch", {"accept_lengths": NOTHING}),
        ("to_json", {"found": NOTHING}),
    ],
)
def test_every_failure_on_purpose_is_a_specmap_error(
    name: str, stated: dict[str, object], root: Path, tmp_path: Path
) -> None:
    """Whatever the value: one line that says what was given and what is expected."""
    MAX_BS_2.write(tmp_path)
    first = {"load_run": {"folder": tmp_path}, "to_json": {}}.get(name, {"target": root})
    call = {**CALLS, "to_json": specmap.to_json}[name]
    with pytest.raises(specmap.SpecmapError) as raised:
        call(**{**first, **stated})
    assert str(raised.value).count("\n") == 0


def test_a_run_that_does_not_say_its_tree_is_compared_with_its_release(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no run.json; the plan names the release that was traced, or nobody knows."""
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "cache"))
    MAX_BS_2.write(tmp_path)
    asked: list[str | None] = []
    monkeypatch.setattr(
        "specmap.recorded.scan_tree",
        lambda target, **_: asked.append(target) or small_map(),  # type: ignore[func-returns-value]
    )
    with pytest.raises(specmap.SpecmapError, match=r"the run is of SGLang 0\.5\.12"):
        specmap.load_run(tmp_path, against_source=True)
    assert asked == ["sglang==0.5.12"]
    plan = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "release": None}), "utf-8")
    with pytest.raises(specmap.SpecmapError, match="does not say which tree it is of"):
        specmap.load_run(tmp_path, against_source=True)


def test_a_grid_takes_python_s_own_values(root: Path) -> None:
    vary: dict[str, list[object]] = {
        "disable-cuda-graph": [True, False],
        "cuda-graph-bs": [None, [1, 2]],
    }
    found = specmap.sweep_launch(root, LAUNCH, vary, use_cache=False)
    assert [axis.values for axis in found.axes] == [("yes", "no"), ("unset", "[1,2]"), ("1",)]
    assert len(found.cells) == 4


def test_a_run_is_compared_with_its_source_on_request(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(tmp_path / "cache"))
    MAX_BS_2.write(tmp_path)
    assert specmap.load_run(str(tmp_path)).joined == ()
    found = specmap.load_run(tmp_path, target=root, against_source=True)
    assert {row.worker for row in found.joined} == {MAX_BS_2.worker}


def test_every_result_is_json(root: Path) -> None:
    why = specmap.explain_place(root, "EAGLEWorker.verify", use_cache=False)
    for found in (small_map(), OUTCOME, REPORT, RUN, SWEEP, why):
        assert isinstance(json.loads(specmap.to_json(found)), dict)
    with pytest.raises(specmap.SpecmapError, match="a str is nothing that specmap returns"):
        specmap.to_json("text")  # type: ignore[arg-type]


class Balanced(HTMLParser):
    """Fails on a tag that does not close the last one that was opened; collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(found: object) -> str:
    """Return the text of what a notebook shows, as the browser reads it."""
    notebook.register()
    parser = Balanced()
    parser.feed(found._repr_html_())  # type: ignore[attr-defined]
    assert parser.open == []
    return parser.text


def test_a_notebook_shows_the_records() -> None:
    assert "EAGLEWorkerverifyGRAPH" in shown(small_map())
    assert "EAGER" in shown(OUTCOME)
    assert "bs 4 > largest captured 2" in shown(RUN)
    assert REPORT.new[0].match.message in shown(REPORT)
    assert "2 cells: 1 refused at start, 1 kept every graph." in shown(SWEEP)


def test_what_the_source_says_is_shown_as_text() -> None:
    """Messages and names come from somebody's tree."""
    span = Span("sglang/srt/server_args.py", 7, 7)
    refusal = Refusal(True, "ValueError", "<script>alert(1)</script> & more", span, (), ())
    assert "<script>alert(1)</script> & more" in shown(replace(OUTCOME, refusal=refusal))
    assert "topk > 1 | page_size > 1 <is> unstable" in shown(SWEEP)
    assert "<64>" in shown(SWEEP)
    assert "<b>" in shown(replace(small_map(), target="<b>"))


def test_long_tables_are_cut() -> None:
    first = REPORT.new[0]
    many = replace(REPORT, findings=tuple([first] * 80))
    text = shown(many)
    assert "80 findings" in text
    assert "and 30 more rows" in text
    assert text.count(first.match.message) == 50


def test_the_model_knows_nothing_of_notebooks() -> None:
    code = (
        "import specmap.codemap.graph as g; assert not hasattr(g.CodeMap, '_repr_html_'); "
        "import specmap; specmap.CodeMap; assert hasattr(g.CodeMap, '_repr_html_'); import sys; "
        "assert not {'libcst', 'torch', 'rich', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
