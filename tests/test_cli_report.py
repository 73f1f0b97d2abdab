"""The verb report on the command line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.report.page.shapes import wrong
from tests.report.page.subjects import unpacked
from tests.review_tree import Run, edit
from tests.sweep.tree import REFUSAL_LINE, sweepable
from tests.trace.recorded import DISABLED, MAX_BS_2, Case, write_pair


def recorded(folder: Path, case: Case = MAX_BS_2) -> Path:
    """Write a run that was recorded on a GPU."""
    folder.mkdir()
    case.write(folder)
    return folder


class Steps5(Case):
    """A run with two settings that no test of the small tree reads."""

    def write(self, folder: Path) -> str:
        """Write the run with five steps in its header."""
        rank = super().write(folder)
        header = json.loads((folder / f"{rank}.json").read_text("utf-8"))
        header["arguments"] |= {"speculative_num_steps": 5, "speculative_num_draft_tokens": 6}
        (folder / f"{rank}.json").write_text(json.dumps(header), "utf-8")
        return rank


STEPS_5 = Steps5(MAX_BS_2.name, MAX_BS_2.worker, MAX_BS_2.launch, MAX_BS_2.steps)


def test_a_tree_alone_is_exit_code_0(run: Run) -> None:
    code, out, err = run("report", "bad")
    assert (code, out, err) == (0, "wrote output/report.html\n", "")
    data, columns = unpacked(Path("output/report.html").read_bytes())
    assert list(wrong(data, "Page")) == []
    (side,) = data["sides"]
    assert side["headline"]["level"] == "unknown"
    assert [f["rule"] for f in side["findings"] if f["status"] == "new"] == ["SPM201"]
    assert "SPM201" in side["rules"]
    assert columns == b""


def test_the_same_tree_gives_the_same_bytes(run: Run) -> None:
    for name in ("one.html", "other.html"):
        assert run("report", "clean", "-q", "-o", name) == (0, "", "")
    assert Path("one.html").read_bytes() == Path("other.html").read_bytes()
    assert run("report", "clean", "-o", "-", "--no-cache")[1].encode() == (
        Path("one.html").read_bytes()
    )


def test_two_trees_stand_side_by_side(run: Run) -> None:
    code, _, err = run("report", "clean", "bad", "-o", "compared.html")
    assert (code, err) == (0, "")
    data, _ = unpacked(Path("compared.html").read_bytes())
    assert len(data["sides"]) == 2
    assert [len(side["findings"]) for side in data["sides"]] == [0, 1]
    labels = [side["label"] for side in data["sides"]]
    assert labels == ["path:sglang (clean)", "path:sglang (bad)"]


def test_two_trees_of_one_release_are_told_apart_and_compared(run: Run, tmp_path: Path) -> None:
    """A fork beside its base: both are path:sglang, in the map's words."""
    for name in ("clean", "bad"):
        (tmp_path / "trees" / name).mkdir(parents=True)
        (tmp_path / name).rename(tmp_path / "trees" / name / "sglang-tree")
    trees = [f"trees/{name}/sglang-tree" for name in ("clean", "bad")]
    assert run("report", *trees, "-o", "compared.html")[0] == 0
    data, _ = unpacked(Path("compared.html").read_bytes())
    ends = [side["label"].rpartition("(")[2] for side in data["sides"]]
    assert ends == ["clean)", "bad)"]
    assert any("item" in line for change in data["changes"] for line in change["lines"])
    run("report", trees[0], trees[0], "-o", "same.html")
    assert unpacked(Path("same.html").read_bytes())[0]["changes"] == []


def test_a_run_that_lost_its_graph_is_exit_code_1(run: Run, tmp_path: Path) -> None:
    recorded(tmp_path / "trace-1")
    code, _, err = run("report", "clean", "--run", "trace-1", "-o", "run.html")
    assert (code, err) == (1, "")
    data, _ = unpacked(Path("run.html").read_bytes())
    assert list(wrong(data, "Page")) == []
    (side,) = data["sides"]
    assert (side["label"], side["run"]["name"]) == ("trace-1", "trace-1")
    assert side["headline"]["level"] == "bad"
    assert "bs 4 > largest captured 2" in side["headline"]["text"]
    (rank,) = side["run"]["ranks"]
    assert rank["timeline"]["cycles"] == rank["cycles"]
    assert rank["timeline"]["passes"] == sum(phase["passes"] for phase in rank["phases"])


def test_a_server_that_ran_is_not_said_to_refuse_its_start(run: Run, tmp_path: Path) -> None:
    """The header of a run has a part of the settings; here the others would be needed."""
    old = "if self.speculative_eagle_topk > 1 and"
    edit(sweepable(tmp_path), "sglang/srt/server_args.py", (old, "if not self.model_path or"))
    recorded(tmp_path / "trace-1")
    code, _, err = run("report", "tree", "--run", "trace-1", "-o", "run.html")
    assert code == 1
    data, _ = unpacked(Path("run.html").read_bytes())
    (side,) = data["sides"]
    assert side["launch"] is None
    (note,) = side["run"]["notes"]
    assert f"server_args.py:{REFUSAL_LINE}: too deep a tree" in note
    assert "give the launch command" in note
    assert err == f"specmap: {note}\n"
    launch = "--model-path m --speculative-algorithm EAGLE --speculative-num-steps 5"
    _, _, err = run("report", "tree", "--run", "trace-1", "-o", "run.html", "--args", launch)
    told = f"it would be refused (sglang/srt/server_args.py:{REFUSAL_LINE}: too deep a tree)"
    assert err.startswith(
        f"specmap: the launch given is not that of the run and is left out: {told}\n"
    )
    assert unpacked(Path("run.html").read_bytes())[0]["sides"][0]["launch"] is None


@pytest.mark.parametrize("command", ["report", "trace read"])
@pytest.mark.parametrize("damaged", ["spool", "json"])
def test_what_of_a_run_cannot_be_read_is_said(
    run: Run, tmp_path: Path, command: str, damaged: str
) -> None:
    """Random bytes among the records, or a header that is cut: the same words as trace read."""
    file = recorded(tmp_path / "trace-1") / f"rank-0-0-0-1.{damaged}"
    content = file.read_bytes()
    broken = content[:4000] + random.Random(1).randbytes(5000) + content[9000:]
    file.write_bytes(broken if damaged == "spool" else b"{")
    name = "--target" if command == "trace read" else "--run"
    words = ["trace-1", name, "clean"] if command == "trace read" else ["clean", name, "trace-1"]
    code, _, err = run(*command.split(), *words)
    wanted = "records are of no kind" if damaged == "spool" else "no JSON object"
    assert code == 2
    assert wanted in err
    if command == "report":
        (side,) = unpacked(Path("output/report.html").read_bytes())[0]["sides"]
        said = [reason["text"] for reason in side["headline"]["because"]]
        assert any(wanted in text for text in said)
        assert any(wanted in text for text in side["run"]["notes"])
        assert side["headline"]["level"] != "ok"


@pytest.mark.parametrize(
    ("case", "more", "differs"),
    [
        (MAX_BS_2, "--cuda-graph-bs 1 2", ""),
        (MAX_BS_2, "--cuda-graph-bs 1 2 4", "cuda_graph_bs [1, 2, 4], the run [1, 2]"),
        (MAX_BS_2, "--disable-cuda-graph", "disable_cuda_graph True, the run False"),
        (DISABLED, "", "disable_cuda_graph False, the run True"),
        (
            STEPS_5,
            "",
            "speculative_num_draft_tokens 4, the run 6; speculative_num_steps 3, the run 5",
        ),
    ],
)
def test_a_launch_that_is_not_the_run_s_is_left_out(
    run: Run, tmp_path: Path, case: Case, more: str, differs: str
) -> None:
    """Given or a default: the verdicts beside the run are those of its own launch."""
    sweepable(tmp_path)
    recorded(tmp_path / "trace-1", case)
    launch = f"--model-path m --speculative-algorithm EAGLE3 {more}"
    _, _, err = run("report", "tree", "--run", "trace-1", "-o", "run.html", "--args", launch)
    (side,) = unpacked(Path("run.html").read_bytes())[0]["sides"]
    own = launch.split() == side["launch"]["command"]
    assert own == (differs == "")
    told = f"the launch given is not that of the run and is left out: {differs}"
    assert err == (f"specmap: {told}\n" if differs else "")
    assert (told in [reason["text"] for reason in side["headline"]["because"]]) == bool(differs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "b", "c"), "one target, or two to compare; 3 were given"),
        (("nowhere",), "'nowhere': no such folder; a target is a folder of a SGLang tree"),
        (("clean", "--run", "nowhere"), "'nowhere' is no run: it has no plan.json; name the"),
        (("trace-1", "--run", "trace-2"), "'trace-1' is a run, and --run names another; to"),
        (("clean", "bad", "--run", "x"), "--run belongs to one target; name the run's folder as"),
        (("clean", "-o", "bad"), "--output 'bad' is a folder; name a file in it"),
        (("clean", "-o", "clean/sglang/__init__.py/x.html"), "cannot write "),
        (("clean", "--args", " "), "the launch command is empty; --args or --args-file state it"),
        (("clean", "--args-file", "/dev/null"), "the launch command is empty; --args or --args-"),
        (("clean", "--batch", "bs=4"), "these options need a launch: --args or --args-file, or a"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    recorded(tmp_path / "trace-1")
    code, out, err = run("report", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("specmap: ") and err.count("\n") == 1
    assert message in err
    assert not Path("output").exists()


def test_a_folder_that_is_a_run_is_shown_as_one(run: Run, tmp_path: Path) -> None:
    """The run says which tree it is of; this one's is not there any more."""
    write_pair(_made(tmp_path / "pair"))
    (tmp_path / "pair/run.json").write_text('{"tree": "gone", "platform": "cuda"}', "utf-8")
    code, _, err = run("report", "pair")
    assert code == 2
    assert "'gone': no such folder" in err
    code, _, err = run("report", "clean", "--run", "pair", "-q")
    assert (code, err) == (0, "")
    data, _ = unpacked(Path("output/report.html").read_bytes())
    assert [rank["tp"] for rank in data["sides"][0]["run"]["ranks"]] == [0, 1]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
