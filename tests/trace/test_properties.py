"""What holds for every run, whatever was cut from it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specmap.codemap.event import Pass
from specmap.trace.cycles import frozen
from specmap.trace.passes import Machine
from specmap.trace.read import read_run
from specmap.trace.spool import RECORD, Kind, Record, Records
from specmap.traced import trace_names
from tests.trace.spools import HEADER, PLAN, Rank

NAMES = trace_names()
PHASES = ("draft", "verify", "draft_extend")

cycles = st.lists(
    st.tuples(st.sets(st.sampled_from(PHASES)), st.integers(1, 4), st.booleans()), max_size=6
)


def written(steps: list[tuple[set[str], int, bool]]) -> Rank:
    rank = Rank()
    for eager, size, prefill in steps:
        if prefill:
            rank.prefill(size)
        rank.cycle(size=size, captured=4, eager=tuple(sorted(eager)))
        rank.accept(size, 2 * size)
    return rank


def records(rank: Rank) -> list[Record]:
    return list(RECORD.iter_unpack(b"".join(rank.records)))


def passes(machine: Machine) -> list[Pass]:
    return [frozen(draft, "") for cycle in machine.pending() for draft in cycle.drafts]


@settings(deadline=None, max_examples=40)
@given(cycles, st.integers(0, 400))
def test_a_run_cut_anywhere_is_the_beginning_of_the_whole_run(
    steps: list[tuple[set[str], int, bool]], cut: int
) -> None:
    every = records(written(steps))
    whole, part = Machine(PLAN), Machine(PLAN)
    whole.feed(Records.of(every), HEADER)
    part.feed(Records.of(every[:cut]), HEADER)
    found, known = passes(part), passes(whole)
    # Only the count of accepted tokens may still have been on its way.
    bare = [(p.cycle, p.phase, p.state, p.size, p.cpu_ns, p.graph_size) for p in known]
    assert [(p.cycle, p.phase, p.state, p.size, p.cpu_ns, p.graph_size) for p in found] == bare[
        : len(found)
    ]


@settings(deadline=None, max_examples=40)
@given(cycles, st.integers(1, 50))
def test_it_does_not_matter_in_which_parts_records_arrive(
    steps: list[tuple[set[str], int, bool]], part: int
) -> None:
    every = records(written(steps))
    whole, parts = Machine(PLAN), Machine(PLAN)
    whole.feed(Records.of(every), HEADER)
    for start in range(0, len(every), part):
        parts.feed(Records.of(every[start : start + part]), HEADER)
    assert passes(parts) == passes(whole)


@settings(deadline=None, max_examples=60)
@given(cycles, st.integers(2, 5), st.data())
def test_a_cycle_that_is_like_one_before_means_the_same(
    steps: list[tuple[set[str], int, bool]], times: int, data: st.DataObject
) -> None:
    """Cycles that come again are taken in one step, unless places of records are asked for."""
    every = records(written(steps * times))
    start = data.draw(st.integers(0, len(every)))
    end = data.draw(st.integers(start, len(every)))
    if start < end:
        kind = data.draw(st.sampled_from(
            [Kind.DROPS, Kind.CAPTURE_BEGIN, Kind.ARM, Kind.RAISE, Kind.LAUNCHES, Kind.COUNTING]
        ))  # fmt: skip
        every[start:end] = [(10**9, 1, int(kind), -1, -1, 1, 0)]
    quick, slow = Machine(PLAN), Machine(PLAN)
    events = [quick.feed(Records.of(every), HEADER), slow.feed(Records.of(every), HEADER, [])]
    assert passes(quick) == passes(slow)
    assert quick.calls == slow.calls
    assert quick.first_loss == slow.first_loss
    assert events[0] == events[1]


@settings(deadline=None, max_examples=40)
@given(cycles, st.data())
def test_a_told_gap_makes_no_pass_that_was_not_there(
    steps: list[tuple[set[str], int, bool]], data: st.DataObject
) -> None:
    every = records(written(steps))
    start = data.draw(st.integers(0, len(every)))
    end = data.draw(st.integers(start, len(every)))
    mark = (10**9, 0, int(Kind.DROPS), -1, -1, max(end - start, 1), 0)
    whole, holed = Machine(PLAN), Machine(PLAN)
    whole.feed(Records.of(every), HEADER)
    holed.feed(Records.of([*every[:start], mark, *every[end:]]), HEADER)
    known = {(p.start_ns, p.phase): p.state for p in passes(whole)}
    for found in passes(holed):
        assert known[found.start_ns, found.phase] is found.state


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(-1, 15), st.integers(0, 17)), max_size=200)
)
def test_nonsense_is_read_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]]
) -> None:
    rank = Rank()
    for target, value, kind in rows:
        rank.now += 1
        rank.records.append(RECORD.pack(rank.now, target, kind, value, value, value, 3))
    folder = tmp_path_factory.mktemp("run")
    rank.write(folder)
    assert len(read_run(folder, NAMES).ranks) == 1
