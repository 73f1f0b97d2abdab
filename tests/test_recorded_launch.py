"""What a recorded run says of its own launch, and what is said where that is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from specmap import recorded
from specmap.codemap.event import Agreement, Joined, Run, State
from specmap.codemap.verdict import Verdict
from specmap.errors import SpecmapError
from specmap.launched import Launch
from specmap.recorded import Question, compared, launches, usual_batch
from specmap.traced import read_run
from tests.trace.recorded import MAX_BS_2, write_pair

GB = 2**30
QUESTION = Question(target="tree")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the recorded run of two ranks; the tree declares two arguments and is not read."""

    @contextmanager
    def tree(*_: object, **__: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(checkout=SimpleNamespace(root=tmp_path))

    fields = {"tp_size": None, "cuda_graph_max_bs": None}
    monkeypatch.setattr(recorded, "resolved", tree)
    monkeypatch.setattr(
        "specmap.scan.launch.declared.read", lambda *_: SimpleNamespace(fields=fields)
    )
    monkeypatch.setattr(
        recorded, "scan_tree", lambda *_, **__: SimpleNamespace(release="0.5.12", workers=())
    )
    write_pair(tmp_path)
    return read_run(tmp_path)


def with_cards(run: Run, *cards: tuple[int | None, int | None]) -> Run:
    ranks = (
        replace(rank, gpu_memory_bytes=memory, gpu_sm=sm)
        for rank, (memory, sm) in zip(run.ranks, cards, strict=True)
    )
    return replace(run, ranks=tuple(ranks))


@pytest.mark.parametrize(
    ("cards", "memory", "sm"),
    [
        (((140 * GB, 90), (140 * GB, 90)), 140, 90),
        (((140 * GB, 90), (80 * GB, 90)), 80, 90),  # SGLang takes the smallest
        (((140 * GB, 90), (140 * GB, 80)), 140, None),
        (((140 * GB, 90), (None, None)), None, None),
        (((None, None), (None, None)), None, None),
    ],
)
def test_the_cards_of_the_ranks_are_part_of_the_launch(
    run: Run,
    cards: tuple[tuple[int | None, int | None], ...],
    memory: float | None,
    sm: int | None,
) -> None:
    (launch,) = launches(with_cards(run, *cards), "tree", True)
    assert launch.text.endswith("(cuda_graph_max_bs=8, tp_size=2)")
    assert (launch.gpu_memory, launch.sm) == (memory, sm)


def test_the_usual_batch_is_that_of_most_verify_passes(run: Run, tmp_path: Path) -> None:
    """Of the H200's 60 verify passes 36 had four requests; a run without a pass has none."""
    folder = tmp_path / "other"
    folder.mkdir()
    MAX_BS_2.write(folder)
    assert usual_batch(read_run(folder)) == 4
    assert usual_batch(replace(run, ranks=())) is None


def test_models_that_are_named_stand_for_those_of_the_ranks(run: Run, tmp_path: Path) -> None:
    (launch,) = launches(run, "tree", True, (tmp_path / "a.json", None))
    assert (launch.model_config, launch.draft_config) == (tmp_path / "a.json", None)


def test_a_launch_that_cannot_be_judged_is_no_silent_gap(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise SpecmapError("no model path")

    monkeypatch.setattr(recorded, "judge_launch", refused)
    monkeypatch.setattr(recorded, "joined", lambda run, *_: run)
    found = compared(tmp_path, run, QUESTION, None)
    assert found.notes == ("the launch could not be judged: no model path",)


@pytest.mark.parametrize("word", [Agreement.OPEN, Agreement.AGREE])
@pytest.mark.parametrize("model", [None, Path("config.json")])
def test_an_open_row_without_a_model_says_what_may_settle_it(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    word: Agreement,
    model: Path | None,
) -> None:
    row = Joined("W", "verify", Verdict.GRAPH, {State.GRAPH: 1}, word)
    seen: list[Launch] = []
    monkeypatch.setattr(recorded, "judge_launch", lambda _, launch, **__: seen.append(launch))
    monkeypatch.setattr(recorded, "joined", lambda run, *_: replace(run, joined=(row,)))
    found = compared(tmp_path, run, replace(QUESTION, model_config=model), None)
    assert [launch.model_config for launch in seen] == [model]
    said = any("--model-config may settle" in note for note in found.notes)
    assert said is (word is Agreement.OPEN and model is None)
