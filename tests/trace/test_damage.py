"""Files that are not as they should be: named, never read in silence, and nothing else lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specmap.codemap.event import Run, RunProblem
from specmap.errors import TraceError
from specmap.report.options import RenderOptions
from specmap.report.run_text import render_run
from specmap.trace.eventlog import convert
from specmap.trace.spool import Kind
from specmap.traced import read_run, trace_names
from tests.trace.spools import FILE_HEAD, PLAN, Rank

CYCLES = 5
RECORDS = CYCLES * 19


def written(folder: Path) -> tuple[str, str]:
    """Write two ranks; return their names."""
    names = []
    for tp in (0, 1):
        rank = Rank(tp, 7 + tp)
        for _ in range(CYCLES):
            rank.cycle(eager=("verify",))
        names.append(rank.write(folder))
    return names[0], names[1]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


Break = Callable[[Path, str], object]


def half(folder: Path, name: str) -> None:
    cut(folder / f"{name}.json")


def odd_keys(folder: Path, name: str) -> None:
    (folder / f"{name}.json").write_text('{"modes": {"x": 5}}')


def a_list(folder: Path, name: str) -> None:
    (folder / f"{name}.json").write_text("[]", "utf-8")


def changed(folder: Path, name: str, **facts: object) -> None:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **facts}), "utf-8")


def no_table(folder: Path, name: str) -> None:
    changed(folder, name, arguments=[1])


def no_names_of_modes(folder: Path, name: str) -> None:
    changed(folder, name, modes="DECODE")


def other_schema(folder: Path, name: str) -> None:
    changed(folder, name, schema=99)


def no_schema(folder: Path, name: str) -> None:
    changed(folder, name, schema="one")


def no_header(folder: Path, name: str) -> None:
    (folder / f"{name}.json").unlink()


def no_names(folder: Path, name: str) -> None:
    (folder / f"{name}.names").unlink()


def bad_names(folder: Path, name: str) -> None:
    (folder / f"{name}.names").write_text("{half\nno json\n", "utf-8")


def empty(folder: Path, name: str) -> None:
    (folder / f"{name}.spool").write_bytes(b"")


def foreign(folder: Path, name: str) -> None:
    (folder / f"{name}.spool").write_bytes(b"x" * 640)


def newer(folder: Path, name: str) -> None:
    (folder / f"{name}.spool").write_bytes(FILE_HEAD[:12] + b"\2" + FILE_HEAD[13:])


def zeros(folder: Path, name: str) -> None:
    """Write what a machine that lost its power leaves."""
    with (folder / f"{name}.spool").open("ab") as file:
        file.write(b"\0" * 32 * 3)


def no_end(folder: Path, name: str) -> None:
    path = folder / f"{name}.spool"
    path.write_bytes(path.read_bytes()[:-32])


def half_a_record(folder: Path, name: str) -> None:
    path = folder / f"{name}.spool"
    path.write_bytes(path.read_bytes()[: -32 - 19])


def refused(folder: Path, name: str) -> None:
    with (folder / f"{name}.spool").open("r+b") as file:
        file.seek(16)
        file.write((28).to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("broken", "said", "left"),
    [
        (half, ".json: no JSON object of a rank; the rank's versions", (5, 5)),
        (a_list, ".json: no JSON object of a rank; the rank's versions", (5, 5)),
        (odd_keys, ".json: no JSON object of a rank; the rank's versions", (5, 5)),
        (no_table, ".json: no JSON object of a rank; the rank's versions", (5, 5)),
        (no_names_of_modes, ".json: no JSON object of a rank; the rank's versions", (5, 5)),
        (other_schema, ".json: schema 99, this specmap reads 1; read it with the specmap", (5,)),
        (no_schema, ".json: schema 'one', this specmap reads 1; read it with the specmap", (5,)),
        (no_header, ".json: missing; the rank's versions", (5, 5)),
        (no_names, ".names: missing; reasons and places have no text", (5, 5)),
        (bad_names, ".names: 2 lines are no JSON; reasons are missing", (5, 5)),
        (zeros, ".spool: 3 records are of no kind that there is and were left out", (5, 5)),
        (no_end, f".spool: cut off behind its record {RECORDS}; the rank wrote more", (5, 5)),
        (half_a_record, f".spool: cut off behind its record {RECORDS - 1}; the rank wr", (5, 4)),
        (refused, ".spool: the disk refused more (No space left on device)", (5, 5)),
        (empty, ".spool: empty; this rank left no record", (5, 0)),
        (foreign, ".spool: not a spool of specmap; name the folder of a run; the rank is", (5,)),
        (newer, ".spool: version 2, this specmap reads 1; read it with the specmap", (5,)),
    ],
)
def test_a_broken_file_is_one_line_and_the_rest_is_read(
    tmp_path: Path, broken: Break, said: str, left: tuple[int, ...]
) -> None:
    _, name = written(tmp_path)
    assert read_run(tmp_path).damage == ()
    broken(tmp_path, name)
    run = read_run(tmp_path)
    (line,) = run.damage
    assert line.startswith(f"{name}{said}")
    assert sorted((rank.cycles for rank in run.ranks), reverse=True) == list(left)
    assert line in " ".join(render_run(run, RenderOptions(width=400)).split())


def test_a_closed_log_cut_behind_a_mark_in_its_middle_is_not_whole(tmp_path: Path) -> None:
    """The header counts the records: a mark that looks like the last one proves nothing."""
    rank = Rank()
    rank.cycle()
    rank.put(Kind.DISARM)
    kept = len(rank.records)
    rank.cycle()
    rank.header["records"] = len(rank.records) + 1
    path = tmp_path / f"{rank.write(tmp_path)}.spool"
    assert read_run(tmp_path).damage == ()
    path.write_bytes(path.read_bytes()[: 64 + 32 * kept])
    (line,) = read_run(tmp_path).damage
    assert f"cut off behind its record {kept}; the rank wrote more" in line


@pytest.mark.parametrize("broken", [no_header, no_names, bad_names, refused, half_a_record])
def test_damage_outlives_the_spool_it_was_found_in(tmp_path: Path, broken: Break) -> None:
    """Parquet files are made of what can be read; what could not is still told from them alone."""
    rank = Rank(0, 7)
    rank.cycle()
    rank.header["records"] = len(rank.records) + 1
    name = rank.write(tmp_path)
    broken(tmp_path, name)
    before = read_run(tmp_path)
    assert before.damage
    convert(tmp_path, name, PLAN, trace_names())
    for suffix in (".spool", ".names", ".json"):
        (tmp_path / (name + suffix)).unlink(missing_ok=True)
    after = read_run(tmp_path)
    assert after.damage == before.damage
    assert after.ranks[0].cut_short == before.ranks[0].cut_short


def test_a_rank_whose_disk_is_full_was_not_killed(tmp_path: Path) -> None:
    """Its log ends long before that of the other, and no cycle is in it."""
    ranks = Rank(0, 7), Rank(1, 8)
    ranks[1].header["finished"] = False
    for rank in ranks:
        rank.header["arguments"] = {"tp_size": 2, "pp_size": 1}
        rank.cycle()
    for _ in range(40):
        ranks[0].cycle()
        ranks[0].now += 100_000_000
    for rank in ranks:
        rank.write(tmp_path)
    refused(tmp_path, ranks[1].name)
    run = read_run(tmp_path)
    text = render_run(run, RenderOptions(width=400))
    assert "killed" not in text
    assert "without a last flush" not in text
    assert run.ranks[1].cut_short == "the disk refused more (No space left on device)"
    (tmp_path / f"{ranks[0].name}.spool").unlink()
    (tmp_path / f"{ranks[0].name}.json").unlink()
    path = tmp_path / f"{ranks[1].name}.spool"
    path.write_bytes(path.read_bytes()[:64])
    (finding,) = [f for f in read_run(tmp_path).findings if f.problem is RunProblem.NO_CYCLE]
    assert finding.message == (
        "no speculative cycle was seen; the disk refused more (No space left on device)"
    )


def test_reading_changes_nothing(tmp_path: Path) -> None:
    _, name = written(tmp_path)
    for broken in (half, bad_names, zeros):
        broken(tmp_path, name)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    read_run(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_where_no_rank_can_be_read_there_is_no_run(tmp_path: Path) -> None:
    for name in written(tmp_path):
        foreign(tmp_path, name)
    with pytest.raises(TraceError, match=r"^rank-0-0-0-7\.spool: not .*; rank-1-0-0-8\.spool: "):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{half", "run.json: no JSON; command and"),
        ("[1]", "run.json: no JSON object; command"),
        ('{"schema": 2}', "run.json: schema 2, this specmap reads 1; read it with the specmap"),
        ('{"command": "python x.py"}', "run.json: command is 'python x.py'; command and tree"),
        ('{"tree": 3}', "run.json: tree is 3; command and tree of the run are not known"),
    ],
)
def test_a_broken_run_file_is_told_and_a_missing_one_is_not(
    tmp_path: Path, text: str, said: str
) -> None:
    written(tmp_path)
    assert read_run(tmp_path).damage == ()
    (tmp_path / "run.json").write_text(text, "utf-8")
    (line,) = read_run(tmp_path).damage
    assert line.startswith(said)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    _, name = written(tmp_path)
    (tmp_path / f"{name}.spool").unlink()
    (tmp_path / f"{name}.spool").mkdir()
    assert read_run(tmp_path).damage == (f"{name}.spool: Is a directory; the rank is left out",)


def test_the_healthy_rank_keeps_its_finding(tmp_path: Path) -> None:
    _, name = written(tmp_path)
    foreign(tmp_path, name)
    run: Run = read_run(tmp_path)
    assert any("verify ran eager" in finding.message for finding in run.findings)
