"""What a sweep varies, as it is written and as a release's own parser takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.sweep import Axis
from specmap.errors import SpecmapError
from specmap.scan.launch.arguments import Declarations
from specmap.scan.launch.argv import no_history
from specmap.scan.launch.declared import read
from specmap.scan.launch.tables import Inputs
from specmap.scan.vocabulary import load_vocabulary
from specmap.sweep.grid import Grid, Setting, axes_of, changed, grid_of, read_axes, read_sizes
from tests.sweep.tree import sweepable


@pytest.fixture
def declarations(tmp_path: Path) -> Declarations:
    return read(sweepable(tmp_path), load_vocabulary())


def grid(declarations: Declarations, *vary: str) -> Grid:
    return grid_of(read_axes(vary), (1,), declarations, no_history)


def test_values_are_listed_or_a_range_and_add_up() -> None:
    axes = read_axes(["--num_steps=1..3,5", "num-steps=3,7", "SGLANG_X=0,1"])
    assert axes == (Axis("num-steps", ("1", "2", "3", "5", "7")), Axis("SGLANG_X", ("0", "1")))


def test_commas_in_brackets_part_nothing() -> None:
    [axis] = read_axes(['config={"a": [1, 2], "b": 3},unset'])
    assert axis.values == ('{"a": [1, 2], "b": 3}', "unset")


def test_a_script_s_values_are_taken_as_they_stand() -> None:
    """A comma in an item parts nothing, a text alone is that of the command line."""
    values = {
        "model_path": ["a,b", "c"], "steps": "1..3", "topk": 2, "--overlap": [True, None],
        "bs": ((1, 2), [4]), "config": {"a": [1]}, "names": [["x y"]], "SGLANG_X": range(2),
    }  # fmt: skip
    assert axes_of(values) == (
        Axis("model-path", ("a,b", "c")),
        Axis("steps", ("1", "2", "3")),
        Axis("topk", ("2",)),
        Axis("overlap", ("yes", "unset")),
        Axis("bs", ("[1,2]", "[4]")),
        Axis("config", ('{"a":[1]}',)),
        Axis("names", ('["x y"]',)),
        Axis("SGLANG_X", ("0", "1")),
    )
    nothing: tuple[dict[str, object], ...] = ({"steps": []}, {"": [1]}, {"steps": ""})
    for wrong in nothing:
        with pytest.raises(SpecmapError, match="expected NAME=VALUE,VALUE"):
            axes_of(wrong)
    with pytest.raises(SpecmapError, match="expected a mapping"):
        axes_of(["steps=1"])  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["steps", "steps=", "=1", "--=1", "steps=, ,"])
def test_an_axis_needs_a_name_and_values(text: str) -> None:
    with pytest.raises(SpecmapError, match="expected NAME=VALUE,VALUE"):
        read_axes([text])


def test_a_range_that_runs_backwards_or_for_ever() -> None:
    with pytest.raises(SpecmapError, match=r"5\.\.1 runs backwards"):
        read_axes(["steps=5..1"])
    with pytest.raises(SpecmapError, match="more than 5000 values"):
        read_axes(["steps=1..1000000000"])


def test_batch_sizes_stand_among_the_other_properties() -> None:
    assert read_sizes("bs=16,1,4..6,4,logprob=yes") == ((1, 4, 5, 6, 16), "logprob=yes")
    assert read_sizes("logprob=yes,bs=2") == ((2,), "logprob=yes")
    assert read_sizes("") == ((1,), "")
    for wrong in ("bs=0", "bs=1,x", "bs=-1", "bs=1.5"):
        with pytest.raises(SpecmapError, match="expected numbers of requests"):
            read_sizes(wrong)


def test_the_release_reads_the_values(declarations: Declarations) -> None:
    made = grid(
        declarations, "speculative-num-steps=2", "disable-cuda-graph=yes,no",
        "cuda-graph-bs=1 2 4,[8]", "attention-backend=unset,fa3", "SGLANG_X=unset,1",
    )  # fmt: skip
    assert made.count == 16
    steps, switch, sizes, backend, variable = made.settings
    assert [s.values for s in steps] == [{"speculative_num_steps": 2}]
    assert [s.values for s in switch] == [{"disable_cuda_graph": True}, {}]
    assert [s.values for s in sizes] == [{"cuda_graph_bs": (1, 2, 4)}, {"cuda_graph_bs": (8,)}]
    assert [(s.removed, s.values) for s in backend] == [
        (("attention_backend",), {}), ((), {"attention_backend": "fa3"}),
    ]  # fmt: skip
    assert [s.environment for s in variable] == [{"SGLANG_X": None}, {"SGLANG_X": "1"}]
    assert made.axes[1].fields == ("disable_cuda_graph",)


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("speculative-num-step=1", "did you mean --speculative-num-steps"),
        ("speculative-num=1", r"does not know --speculative-num; did you mean"),
        ("attention-backend=fa4", "--vary attention-backend=fa4: .*invalid choice"),
        ("speculative-num-steps=x", "--vary speculative-num-steps=x: .*invalid int"),
        ("disable-cuda-graph=true", "write yes or no"),
    ],
)
def test_what_the_release_would_not_take(
    vary: str, message: str, declarations: Declarations
) -> None:
    with pytest.raises(SpecmapError, match=message):
        grid(declarations, vary)


def test_too_many_cells(declarations: Declarations) -> None:
    axes = read_axes(["speculative-num-steps=1..100", "speculative-eagle-topk=1..100"])
    with pytest.raises(SpecmapError, match="10000 cells are too many"):
        grid_of(axes, (1,), declarations, no_history)


def test_a_cell_replaces_what_the_launch_gives() -> None:
    inputs = Inputs(
        values={"a": 1, "b": 2}, unknown_values={"c": "$C"}, environment={"X": "1", "Y": "1"}
    )
    settings = [
        Setting({"c": 3}), Setting({}, removed=("b",)), Setting({}, environment={"X": None}),
    ]  # fmt: skip
    found = changed(inputs, settings)
    assert found.values == {"a": 1, "c": 3}
    assert found.unknown_values == {}
    assert found.environment == {"X": None, "Y": "1"}
    assert inputs.values == {"a": 1, "b": 2}
