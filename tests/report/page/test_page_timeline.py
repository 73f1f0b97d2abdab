from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from specmap.codemap.event import Pass, State
from specmap.report.page.timeline import Columns, Recording, timelines

_CODES = {"u8": "B", "u16": "H", "u32": "I", "f64": "d"}


def read(column: Mapping[str, Any], content: bytes) -> list[int]:
    """Return a column as the front end reads it."""
    code = f"<{column['count']}{_CODES[column['type']]}"
    values = struct.unpack_from(code, content, column["at"])
    return [int(v) for v in (accumulate(values) if column["delta"] else values)]


def a_pass(cycle: int, start_ns: int, **changes: Any) -> Pass:
    given: dict[str, Any] = {
        "cycle": cycle, "worker": "W", "phase": "verify", "state": State.GRAPH, "reason": "",
        "start_ns": start_ns, "cpu_ns": 250_000, "size": 3, "graph_size": 4, "replays": 1,
        "sinks": 1,
    }  # fmt: skip
    return Pass(**(given | changes))


def recording() -> Recording:
    made = Recording(clock="node1")
    made.add(5, 1_000_000_000, 2_000_400, 3, [a_pass(5, 1_000_300_000)])
    made.add(7, 1_004_700_600, 900, -1, [])
    eager = a_pass(
        8, 9_000_000_000, state=State.EAGER, reason="too large", size=-1, graph_size=-1,
        replays=0, gpu_ns=499, accepted=0,
    )  # fmt: skip
    made.add(8, 8_999_999_000, 70_000_000, 300, [eager, a_pass(8, 9_001_000_000, phase="draft")])
    return made


def test_columns_give_back_what_was_recorded() -> None:
    columns = Columns()
    made = timelines({"rank-0": recording()}, columns)["rank-0"]
    content = columns.content()
    cycle = {name: read(column, content) for name, column in made["cycle"].items()}
    rows = {name: read(column, content) for name, column in made["pass"].items()}
    assert cycle == {
        "number": [5, 7, 8],
        "start": [0, 4_701, 7_999_999],
        "entry": [2_000, 1, 70_000],
        "size": [3, 0, 300],
        "passes": [1, 0, 2],
        "diverges": [0, 0, 0],
    }
    assert (made["cycles"], made["passes"]) == (3, 3)
    assert [made["keys"][k]["phase"] for k in rows["key"]] == ["verify", "verify", "draft"]
    assert [made["states"][s] for s in rows["state"]] == ["GRAPH", "EAGER", "GRAPH"]
    assert [made["reasons"][r] for r in rows["reason"]] == ["", "too large", ""]
    assert rows["start"] == [300, 1, 1_001]
    assert rows["cpu"] == [250, 250, 250]
    assert rows["gpu"] == [0, 1, 0]
    assert rows["size"] == [4, 0, 4]
    assert rows["graphSize"] == [5, 0, 5]
    assert rows["accepted"] == [0, 1, 0]


def test_columns_are_narrow_and_stand_where_typed_arrays_can_begin() -> None:
    columns = Columns()
    kinds = [
        columns.add([0, 255]), columns.add([256]), columns.add([65_536]), columns.add([1 << 32]),
        columns.add([7, 5], delta=True), columns.add([]),
    ]  # fmt: skip
    assert [column["type"] for column in kinds] == ["u8", "u16", "u32", "f64", "f64", "u8"]
    assert all(column["at"] % 8 == 0 for column in kinds)
    content = columns.content()
    assert [read(column, content) for column in kinds] == [
        [0, 255], [256], [65_536], [1 << 32], [7, 5], [],
    ]  # fmt: skip


def test_ranks_of_one_machine_share_a_clock() -> None:
    other, far = recording(), recording()
    far.clock = "node2"
    other.cycle["start"][0] -= 500_000_000
    columns = Columns()
    made = timelines({"a": recording(), "b": other, "c": far}, columns)
    starts = {n: read(t["cycle"]["start"], columns.content())[0] for n, t in made.items()}
    assert starts == {"a": 500_000, "b": 0, "c": 0}


def test_cycles_in_which_the_ranks_differ_are_marked() -> None:
    one = recording()
    one.diverges = ((0, 2), (5, 1), (7, 1), (20, 4))
    columns = Columns()
    marked = timelines({"a": one}, columns)["a"]["cycle"]["diverges"]
    assert read(marked, columns.content()) == [1, 1, 0]
