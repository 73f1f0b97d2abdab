from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specmap.errors import OutputError, TraceError
from specmap.trace.database import open_database
from specmap.trace.eventlog import convert
from specmap.trace.read import passes_of, read_run
from specmap.trace.spool import Kind
from specmap.traced import trace_names
from tests.trace.spools import CHECK, DECODE, PLAN, RUNNER, STEP, VERIFY, Rank, records_of

NAMES = trace_names()


def recorded(folder: Path, tp: int = 0) -> str:
    rank = Rank(tp, 7 + tp)
    rank.header["finished"] = False
    rank.prefill()
    for number in range(20):
        rank.cycle(eager=("verify",) if number < 4 else ())
        rank.accept(4, 9)
    rank.put(Kind.GPU_SPAN, CHECK, value=4000, object=3)
    rank.put(Kind.DROPS, value=6)
    rank.cycle()
    rank.records.append(b"half")
    return rank.write(folder)


def test_the_event_log_gives_the_same_run_as_the_spool(tmp_path: Path) -> None:
    name = recorded(tmp_path)
    before = read_run(tmp_path, NAMES)
    passes, records = list(passes_of(tmp_path, name, PLAN, NAMES)), list(records_of(tmp_path, name))
    convert(tmp_path, name, PLAN, NAMES)
    for suffix in (".spool", ".names", ".json"):
        (tmp_path / (name + suffix)).unlink()
    assert read_run(tmp_path, NAMES) == before
    assert list(passes_of(tmp_path, name, PLAN, NAMES)) == passes
    assert list(records_of(tmp_path, name)) == records


def test_a_raw_record_has_its_names(tmp_path: Path) -> None:
    path, _ = convert(tmp_path, recorded(tmp_path), PLAN, NAMES)
    rows = pq.read_table(path).to_pylist()
    reason = next(row for row in rows if row["kind"] == "REASON")
    assert (reason["symbol"], reason["reason"], reason["phase"], reason["cycle"]) == (
        "sglang/srt/model_executor/runner.py::Runner.can_run",
        "cuda_graph_bs <= self.max_bs", "verify", 1,
    )  # fmt: skip
    entered = next(row for row in rows if row["symbol"] == PLAN.targets[2].symbol)
    assert (entered["kind"], entered["mode"], entered["size"], entered["phase"]) == (
        "ENTER", "DECODE", 4, "verify",
    )  # fmt: skip
    assert {row["cycle"] for row in rows if row["kind"] == "ACCEPT"} == {-1}


def test_the_footer_holds_header_losses_and_version(tmp_path: Path) -> None:
    for path in convert(tmp_path, recorded(tmp_path), PLAN, NAMES):
        about = pq.read_metadata(path).metadata
        assert (about[b"specmap.schema"], about[b"specmap.lost"]) == (b"1", b"6")
        assert (about[b"specmap.first_loss"], about[b"specmap.cut_bytes"]) == (b"21", b"4")
        assert b'"tp_rank": 0' in about[b"specmap.header"]


def test_files_are_compressed_and_the_same_for_the_same_run(tmp_path: Path) -> None:
    name = recorded(tmp_path)
    first = [path.read_bytes() for path in convert(tmp_path, name, PLAN, NAMES)]
    second = [path.read_bytes() for path in convert(tmp_path, name, PLAN, NAMES)]
    assert first == second
    column = pq.ParquetFile(tmp_path / f"{name}.parquet").metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_the_log_of_a_rank_that_closed_it_is_whole_as_parquet_too(tmp_path: Path) -> None:
    rank = Rank()
    rank.cycle()
    name = rank.write(tmp_path)
    convert(tmp_path, name, PLAN, NAMES)
    for suffix in (".spool", ".names", ".json"):
        (tmp_path / (name + suffix)).unlink()
    assert read_run(tmp_path, NAMES).damage == ()


def test_a_run_without_records_gives_empty_tables(tmp_path: Path) -> None:
    rank = Rank()
    rank.header["finished"] = False
    records, passes = convert(tmp_path, rank.write(tmp_path), PLAN, NAMES)
    assert pq.read_table(records).num_rows == pq.read_table(passes).num_rows == 0
    assert "cpu_ns" in pq.read_schema(passes).names


def test_many_ranks_are_queried_together(tmp_path: Path) -> None:
    for run in ("a", "b"):
        (tmp_path / run).mkdir()
        for tp in (0, 1):
            convert(tmp_path / run, recorded(tmp_path / run, tp), PLAN, NAMES)
    database = open_database([tmp_path / "a", tmp_path / "b"])
    counted = database.execute(
        "select run, rank, count(*) from passes where phase = 'verify' and state = 'EAGER' "
        "group by all order by all"
    ).fetchall()
    assert counted == [
        ("a", "rank-0-0-0-7", 4), ("a", "rank-1-0-0-8", 4),
        ("b", "rank-0-0-0-7", 4), ("b", "rank-1-0-0-8", 4),
    ]  # fmt: skip
    assert database.execute("select sum(gpu_ns) from passes").fetchone() == (16000,)
    kinds = database.execute("select count(*) from records where kind = 'DROPS'").fetchone()
    assert kinds == (4,)


def test_launches_are_columns_where_they_were_counted(tmp_path: Path) -> None:
    rank = Rank()
    rank.cycle()
    rank.put(Kind.COUNTING, value=1)
    with rank.call(STEP, DECODE, 4), rank.call(CHECK, DECODE, 4), rank.call(RUNNER, VERIFY, 4, 4):
        rank.put(Kind.LAUNCHES, size=1, value=7, object=2)
    _, made = convert(tmp_path, rank.write(tmp_path), PLAN, NAMES)
    columns = ["phase", "graph_launches", "kernels", "collectives"]
    rows = [tuple(row.values()) for row in pq.read_table(made, columns=columns).to_pylist()]
    assert rows[-1] == ("verify", 1, 7, 2)
    assert {row[1:] for row in rows[:-1]} == {(None, None, None)}


def test_a_folder_without_event_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no event log in .*: read the run first"):
        open_database([tmp_path])


@pytest.mark.parametrize(("module", "called"), [("pyarrow", "convert"), ("duckdb", "database")])
def test_a_missing_library_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, called: str
) -> None:
    name = recorded(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    said = rf"{module}, which is not installed: pip install 'specmap\[trace\]'"
    with pytest.raises(TraceError, match=said):
        if called == "convert":
            convert(tmp_path, name, PLAN, NAMES)
        else:
            open_database([tmp_path])
    assert not list(tmp_path.glob("*.parquet")) + list(tmp_path.glob(".*"))


def test_reading_spools_loads_neither_library() -> None:
    code = "import sys, specmap.trace.read; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert {"pyarrow", "duckdb", "libcst", "rich"}.isdisjoint(result.stdout.split())


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    name = recorded(tmp_path)
    (tmp_path / f"{name}.passes.parquet").mkdir()
    (tmp_path / f"{name}.passes.parquet" / "kept").touch()
    with pytest.raises(OutputError, match=r"cannot write .*passes\.parquet"):
        convert(tmp_path, name, PLAN, NAMES)
    assert not list(tmp_path.glob(".*"))


def lost(path: Path, column: str) -> None:
    about = pq.ParquetFile(path).metadata.metadata
    table = pq.read_table(path).drop([column])
    pq.write_table(table.replace_schema_metadata(about), path)


def texts(path: Path, column: str) -> None:
    table, about = pq.read_table(path), pq.ParquetFile(path).metadata.metadata
    words = pa.array(["a"] * len(table))
    table = table.set_column(table.schema.get_field_index(column), column, words)
    pq.write_table(table.replace_schema_metadata(about), path)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda path: path.write_bytes(b"PAR1 no more"), "no Parquet file"),
        (
            lambda path: pq.write_table(pq.read_table(path).replace_schema_metadata({}), path),
            "schema unknown, this specmap reads 1",
        ),
        (lambda path: lost(path, "object"), "not as .* writes it: columns object"),
        (lambda path: texts(path, "value"), "not as .* writes it: columns value"),
    ],
)
def test_a_foreign_parquet_file_is_refused(
    tmp_path: Path, broken: Callable[[Path], None], said: str
) -> None:
    name = recorded(tmp_path)
    path, _ = convert(tmp_path, name, PLAN, NAMES)
    (tmp_path / f"{name}.spool").unlink()
    broken(path)
    with pytest.raises(TraceError, match=f"{path.name}: {said}"):
        read_run(tmp_path, NAMES)
