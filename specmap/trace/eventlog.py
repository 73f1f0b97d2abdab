"""The event log: Parquet files of a rank, written once a run is over, and read again.

``R.parquet`` holds the raw records with their names, ``R.passes.parquet`` the passes. Both
carry the rank's header, its names and what was lost as key-value metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specmap.atomic import replacing
from specmap.codemap.event import Pass
from specmap.errors import TraceError
from specmap.trace.names import TraceNames
from specmap.trace.passes import Machine
from specmap.trace.plan import WrapPlan
from specmap.trace.spool import PARQUET, SPOOL, Kind, Records, Tail, header_of
from specmap.trace.summary import Summary

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "1"
PASSES = ".passes.parquet"
_KEY = "specmap."
_RECORDS = (
    ("t_ns", "uint64"), ("kind", "string"), ("target", "uint32"), ("symbol", "string"),
    ("phase", "string"), ("mode", "string"), ("size", "int32"), ("value", "int32"),
    ("object", "uint64"), ("cycle", "int64"), ("reason", "string"),
)  # fmt: skip
_PASSES = (
    ("cycle", "int64"), ("worker", "string"), ("phase", "string"), ("state", "string"),
    ("reason", "string"), ("start_ns", "uint64"), ("cpu_ns", "int64"), ("gpu_ns", "int64"),
    ("size", "int32"), ("graph_size", "int32"), ("replays", "int32"), ("sinks", "int32"),
    ("accepted", "int32"), ("graph_launches", "int32"), ("kernels", "int32"),
    ("collectives", "int32"),
)  # fmt: skip


def _arrow() -> Any:
    """Return pyarrow with its Parquet part.

    Raises:
        TraceError: it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise TraceError(
            "Parquet needs pyarrow, which is not installed: pip install 'specmap[trace]'"
        ) from None
    return pyarrow


def convert(folder: Path, name: str, plan: WrapPlan, names: TraceNames) -> tuple[Path, Path]:
    """Write both files of a rank from its spool; return their paths.

    Each is written beside its place and moved there, so that none is ever half there.

    Raises:
        TraceError: pyarrow is missing, or the spool cannot be read.
        OutputError: a file cannot be written.
    """
    arrow = _arrow()
    records, passes = folder / (name + PARQUET), folder / (name + PASSES)
    tail = Tail(folder, name)
    machine, summary = Machine(plan, names.idle_modes), Summary(plan, names)
    symbols = {t.id: t.symbol for t in plan.targets}
    with _writing(arrow, records, _RECORDS) as raw, _writing(arrow, passes, _PASSES) as made:
        while batch := tail.poll():
            places: list[tuple[int, str]] = []
            machine.feed(batch, tail.header, places)
            for _ in machine.settled():
                pass
            raw.write(_record_columns(batch, places, symbols, tail))
            made.write(_pass_columns(summary.feed(tail, batch)))
        made.write(_pass_columns(summary.finish(tail)))
        rank = summary.rank_run(tail)
        about = {
            "schema": SCHEMA,
            "rank": name,
            "header": json.dumps(tail.header, sort_keys=True),
            "names": json.dumps(list(tail.names.values()), sort_keys=True),
            "records": str(rank.records),
            "lost": str(rank.lost),
            "first_loss": "" if rank.first_loss is None else str(rank.first_loss),
            "cut_bytes": str(rank.cut_bytes),
            "cut_short": tail.cut_short,
            "damage": json.dumps(tail.damage()),
        }
        for writer in (raw, made):
            writer.describe(about)
    return records, passes


class _Writer:
    """Writes one table in row groups."""

    def __init__(self, arrow: Any, path: Path, columns: Sequence[tuple[str, str]]) -> None:
        self._arrow = arrow
        self._schema: pa.Schema = arrow.schema(
            [(name, getattr(arrow, kind)()) for name, kind in columns]
        )
        self._writer = arrow.parquet.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, columns: Sequence[Sequence[Any]]) -> None:
        """Write one row group; nothing for no rows."""
        if columns and columns[0]:
            arrays = [
                self._arrow.array(column, type=field.type)
                for column, field in zip(columns, self._schema, strict=True)
            ]
            self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def describe(self, about: Mapping[str, str]) -> None:
        """Put key-value metadata into the footer."""
        self._writer.add_key_value_metadata({_KEY + key: text for key, text in about.items()})

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


@contextmanager
def _writing(arrow: Any, path: Path, columns: Sequence[tuple[str, str]]) -> Iterator[_Writer]:
    with replacing([path], advice="make room, or the folder writable") as (fresh,):
        writer = _Writer(arrow, fresh, columns)
        try:
            yield writer
        finally:
            writer.close()


def _record_columns(
    batch: Records,
    places: Sequence[tuple[int, str]],
    symbols: Mapping[int, str],
    tail: Tail,
) -> list[Sequence[Any]]:
    modes = _modes(tail.header)
    times, targets, kinds, mode, size, value, place = zip(*batch, strict=True)
    said = [
        tail.names.get(v, {}).get("conjunct") if k == Kind.REASON else None
        for k, v in zip(kinds, value, strict=True)
    ]
    return [
        times,
        [_kind(kind) for kind in kinds],
        targets,
        [symbols.get(target) for target in targets],
        [phase or None for _, phase in places],
        [modes.get(m, str(m)) if m >= 0 else None for m in mode],
        size,
        value,
        place,
        [cycle for cycle, _ in places],
        said,
    ]


_KINDS = {kind.value: kind.name for kind in Kind}


def _kind(kind: int) -> str:
    return _KINDS.get(kind, str(kind))


def _modes(header: Mapping[str, Any]) -> dict[int, str]:
    modes = header.get("modes")
    return {int(k): str(v) for k, v in modes.items()} if isinstance(modes, dict) else {}


def _pass_columns(passes: Sequence[Pass]) -> list[list[Any]]:
    return [[_cell(each, name) for each in passes] for name, _ in _PASSES]


_COUNTS = {"graph_launches": "graphs", "kernels": "kernels", "collectives": "collectives"}


def _cell(one: Pass, name: str) -> Any:
    if name in _COUNTS:
        return None if one.launches is None else getattr(one.launches, _COUNTS[name])
    return getattr(one, name)


_NUMBERS = ("t_ns", "target", "size", "value", "object")
_READ = [*_NUMBERS, "kind", "mode"]


class ParquetTail(Tail):
    """Reads a rank from its Parquet file, as :class:`Tail` reads its spool.

    Raises:
        TraceError: pyarrow is missing, or the file is none of ours.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        arrow = _arrow()
        path = folder / (name + PARQUET)
        try:
            self._file = arrow.parquet.ParquetFile(path)
        except (OSError, ValueError) as error:
            raise TraceError(f"{path.name}: no Parquet file: {error}") from None
        about = self._file.metadata.metadata or {}
        told = {
            key.decode().removeprefix(_KEY): text.decode()
            for key, text in about.items()
            if key.startswith(_KEY.encode())
        }
        if told.get("schema") != SCHEMA:
            raise TraceError(
                f"{path.name}: schema {told.get('schema', 'unknown')}, this specmap reads {SCHEMA}"
            )
        types = {field.name: field.type for field in self._file.schema_arrow}
        wrong = [name for name in _READ if name not in types]
        wrong += [n for n in _NUMBERS if n in types and not arrow.types.is_integer(types[n])]
        if wrong or not {"header", "names", "cut_bytes"} <= told.keys():
            what = f"columns {', '.join(wrong)}" if wrong else "metadata"
            raise TraceError(f"{path.name}: not as 'specmap trace read' writes it: {what}")
        self.header = header_of(told["header"].encode(), path.name) or {}
        self.names = {int(item["id"]): item for item in json.loads(told["names"])}
        self._cut = int(told["cut_bytes"])
        self._cut_short: str = told.get("cut_short", "")
        self._damage = [str(line) for line in json.loads(told.get("damage", "[]"))]
        self._groups = iter(range(self._file.num_row_groups))

    @property
    def cut_bytes(self) -> int:
        """Bytes behind the last whole record of the spool."""
        return self._cut

    def damage(self) -> list[str]:
        """Return what was wrong with the spool and its files when this file was made of them."""
        return list(self._damage)

    @property
    def cut_short(self) -> str:
        """Why the rank wrote no more while it went on; else ""."""
        return self._cut_short

    def poll(self, limit: int = 1 << 16) -> Records:
        """Return the next row group; nothing at the end."""
        group = next(self._groups, None)
        if group is None:
            return Records(b"")
        table = self._file.read_row_group(group, columns=_READ).to_pydict()
        modes = {name: number for number, name in _modes(self.header).items()}
        kinds = [Kind[k].value if k in Kind.__members__ else int(k) for k in table["kind"]]
        mode = [-1 if m is None else modes[m] if m in modes else int(m) for m in table["mode"]]
        columns = (table["t_ns"], table["target"], kinds, mode, table["size"], table["value"])
        return Records.of(zip(*columns, table["object"], strict=True))


def tail_of(folder: Path, name: str) -> Tail:
    """Return what reads a rank: its spool, or its Parquet file where the spool is gone.

    Raises:
        TraceError: see :class:`ParquetTail`.
    """
    spooled = (folder / (name + SPOOL)).exists() or not (folder / (name + PARQUET)).exists()
    return Tail(folder, name) if spooled else ParquetTail(folder, name)
