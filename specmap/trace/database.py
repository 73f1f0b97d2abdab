"""DuckDB over the event logs of one run or many, without a server of ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specmap.errors import TraceError
from specmap.trace.eventlog import PASSES
from specmap.trace.spool import PARQUET

if TYPE_CHECKING:
    import duckdb


def open_database(folders: Sequence[Path]) -> duckdb.DuckDBPyConnection:
    """Return a database in memory with the views ``records`` and ``passes``.

    Both have the columns of the event log, and ``run`` and ``rank``, the folder's and the
    rank's name.

    Raises:
        TraceError: duckdb is missing, or no folder holds an event log.
    """
    try:
        import duckdb
    except ImportError:
        raise TraceError(
            "queries need duckdb, which is not installed: pip install 'specmap[trace]'"
        ) from None
    passes = [path for folder in folders for path in sorted(folder.glob(f"rank-*{PASSES}"))]
    if not passes:
        named = ", ".join(str(folder) for folder in folders)
        raise TraceError(f"no event log in {named}: read the run first, it writes them")
    records = [path.with_name(path.name.removesuffix(PASSES) + PARQUET) for path in passes]
    made = duckdb.connect()
    for view, files in (("records", records), ("passes", passes)):
        listed = ", ".join("'" + str(path.resolve()).replace("'", "''") + "'" for path in files)
        made.execute(
            f"create view {view} as select * exclude filename, "
            "parse_path(filename)[-2] as run, split_part(parse_filename(filename), '.', 1) as rank "
            f"from read_parquet([{listed}], filename = true)"
        )
    return made
