from __future__ import annotations

from tests.trace.agent.toy import (
    ARM,
    DISARM,
    DROPS,
    ENTER,
    EXIT,
    OVERHEAD,
    RAISE,
    REASON,
    Toy,
)

CYCLES = """
    from toy.worker import Batch, Mode, Worker
    worker = Worker()
    print([worker.cycle(Batch(size)) for size in (1, 2, 3, 4)])
"""


def test_calls_sizes_and_graph_sizes_are_recorded_in_order(toy: Toy) -> None:
    done = toy.trace(CYCLES)
    assert done.stdout == "[1, 2, -3, -4]\n"
    assert done.stderr == ""
    records = toy.records()
    assert [one.kind for one in records] == [
        ARM, *[ENTER, ENTER, ENTER, EXIT, EXIT, EXIT] * 2,
        *[ENTER, ENTER, REASON, ENTER, EXIT, EXIT, EXIT] * 2, DISARM,
    ]  # fmt: skip
    cycles = [one for one in records if one.target == 1]
    assert [one.size for one in cycles] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert {one.mode for one in cycles} == {2}
    assert len({one.object for one in cycles}) == 1
    replays = [one for one in records if (one.target, one.kind) == (4, EXIT)]
    assert [(one.size, one.value) for one in replays] == [(1, 2), (2, 2)]
    times = [one.t_ns for one in records]
    assert times == sorted(times)


def test_a_reason_names_the_numbers_of_the_false_conjunct(toy: Toy) -> None:
    toy.trace(CYCLES)
    said = {one["id"]: one for one in toy.names()}
    reasons = [one for one in toy.records() if one.kind == REASON]
    assert [one.target for one in reasons] == [3, 3]
    assert [said[one.value]["operands"] for one in reasons] == [
        {"cuda_graph_bs": 3, "self.max_bs": 2},
        {"cuda_graph_bs": 4, "self.max_bs": 2},
    ]
    assert {one["conjunct"] for one in said.values()} == {"cuda_graph_bs <= self.max_bs"}
    assert {one["line"] for one in said.values()} == {11}


def test_the_header_says_what_was_watched(toy: Toy) -> None:
    toy.target(6, "toy.worker", "Worker.draft", "phase")
    toy.target(7, "toy.nowhere", "f", "phase")
    toy.trace(CYCLES.replace("Worker()", "Worker(tp_rank=3)"))
    header = toy.header()
    assert header["ring"] == toy.ring
    assert header["tp_rank"] == 3
    assert header["finished"] is True
    assert header["cycles"] == 4
    assert header["drops"] == 0
    assert header["modes"] == {"1": "EXTEND", "2": "DECODE"}
    assert set(header["classes"].values()) == {"Worker", "Runner"}
    watched = {one["id"]: one["wrapped"] for one in header["targets"]}
    assert watched == {1: True, 2: True, 3: True, 4: True, 5: True, 6: False, 7: False}
    said = {one["id"]: one["reason"] for one in header["targets"]}
    assert said[6] == "not defined here"
    assert said[7] == "its module was not loaded"
    (spool,) = toy.spools()
    assert spool.name.startswith("rank-3-0-0-")


def test_an_exception_is_recorded_and_arrives_unchanged(toy: Toy) -> None:
    done = toy.trace("""
        from toy.worker import Batch, Worker
        worker = Worker()
        try:
            worker.cycle(Batch(101))
        except ValueError as error:
            import traceback
            print(error, error.__traceback__.tb_next is not None)
        worker.cycle(batch=Batch(1))
    """)
    assert done.stdout == "too large True\n"
    counts = toy.counts()
    assert [counts[number, RAISE] for number in (5, 2, 1)] == [1, 1, 1]
    assert counts[1, EXIT] == 1
    assert [one.size for one in toy.records() if one.target == 1] == [101, 101, 1, 1]


def test_a_batch_is_looked_at_once_by_the_forwards_that_share_it(toy: Toy) -> None:
    """Looked at by the outer one, by one that got another batch, and again after a failure."""
    toy.write(
        "toy/nested.py",
        """
        class Outer:
            bs = 8
            def replay(self, forward_batch, other=None):
                return self.inner(other or forward_batch)
            def inner(self, forward_batch):
                return 1 // forward_batch.batch_size
    """,
    )
    toy.target(6, "toy.nested", "Outer.replay", "pass")
    toy.target(7, "toy.nested", "Outer.inner", "sink", sink="graph")
    toy.trace("""
        from toy.nested import Outer
        from toy.worker import Batch
        outer, shared = Outer(), Batch(3)
        outer.replay(shared)
        outer.replay(shared, Batch(5))
        try:
            outer.replay(Batch(0))
        except ZeroDivisionError:
            pass
        outer.inner(shared)
    """)
    entered = [one for one in toy.records() if one.kind == ENTER]
    assert [(one.target, one.mode, one.size) for one in entered] == [
        (6, 2, 3), (7, -1, -1), (6, 2, 3), (7, 2, 5), (6, 2, 0), (7, -1, -1), (7, 2, 3),
    ]  # fmt: skip
    ended = [one for one in toy.records() if one.kind in (EXIT, RAISE)]
    assert [(one.target, one.value) for one in ended] == [
        (7, 8), (6, 8), (7, 8), (6, 8), (7, -1), (6, -1), (7, 8),
    ]  # fmt: skip


def test_a_phase_leaves_its_batch_alone(toy: Toy) -> None:
    toy.trace(CYCLES)
    phases = [one for one in toy.records() if one.target == 2]
    assert {(one.mode, one.size) for one in phases} == {(-1, -1)}
    assert {one.mode for one in toy.records() if one.target in (1, 4, 5)} == {2}


def test_a_batch_may_lack_everything(toy: Toy) -> None:
    toy.trace("""
        from toy.worker import Worker
        class Odd:
            batch_size = property(lambda self: 1 / 0)
            @property
            def forward_mode(self):
                raise RuntimeError
        class Sized:
            forward_mode = None
            def batch_size(self):
                return 7
        worker = Worker()
        worker.verify = lambda batch: None
        for batch in (None, 5, Odd(), Sized()):
            worker.cycle(batch)
    """)
    cycles = [one for one in toy.records() if (one.target, one.kind) == (1, ENTER)]
    assert [(one.mode, one.size) for one in cycles] == [(-1, -1), (-1, -1), (-1, -1), (-1, 7)]


def test_a_full_ring_drops_and_counts(toy: Toy) -> None:
    """1000 cycles make 6 records each; the ring holds 64 and nobody reads meanwhile."""
    toy.trace(
        """
        import sys
        sys.setswitchinterval(100)
        from toy.worker import Batch, Worker
        worker, batch = Worker(), Batch(1)
        for _ in range(1000):
            worker.cycle(batch)
        """,
        SPECMAP_RING="64",
    )
    records = toy.records()
    told = sum(one.value for one in records if one.kind == DROPS)
    kept = sum(1 for one in records if one.kind in (ENTER, EXIT))
    lost = toy.header()["drops"]
    assert told == lost > 0
    # the mark of arming went through the same ring
    assert kept + 1 + lost == 6000 + 1
    assert toy.header()["cycles"] == 1000


def test_calls_of_another_thread_are_left_out_and_counted(toy: Toy) -> None:
    toy.trace("""
        import threading
        from toy.worker import Batch, Worker
        worker = Worker()
        worker.cycle(Batch(1))
        other = threading.Thread(target=worker.verify, args=(Batch(2),))
        other.start(); other.join()
        worker.cycle(Batch(1))
    """)
    assert {one.size for one in toy.records() if one.target == 4} == {1}
    assert toy.counts()[2, ENTER] == 2
    assert toy.header()["foreign"] >= 1


def test_windows_alternate_and_keep_the_entries(toy: Toy) -> None:
    toy.trace(
        """
        from toy.worker import Batch, Worker
        worker = Worker()
        for size in range(12):
            worker.cycle(Batch(1))
        """,
        SPECMAP_WINDOWS="3",
    )
    marks = [one for one in toy.records() if one.kind == OVERHEAD]
    assert [(one.value, one.size, one.object) for one in marks] == [
        (0, 3, 3), (1, 3, 6), (0, 3, 9), (1, 3, 12),
    ]  # fmt: skip
    counts = toy.counts()
    assert counts[1, ENTER] == counts[1, EXIT] == 12
    assert counts[2, ENTER] == counts[4, EXIT] == 6


def test_a_process_without_a_wrapped_call_leaves_no_file(plain_toy: Toy) -> None:
    plain_toy.trace("import toy.worker; import threading; print(threading.active_count())")
    assert [path.name for path in plain_toy.run.iterdir()] == ["plan.json"]
    assert not (plain_toy.folder / "s").exists()


def test_without_its_variable_nothing_is_loaded(plain_toy: Toy) -> None:
    done = plain_toy.trace(
        "import toy.worker, sys; print('specmap_agent' in sys.modules)", SPECMAP_TRACE=""
    )
    assert done.stdout == "False\n"


def test_no_reference_is_kept_or_lost(toy: Toy) -> None:
    done = toy.trace("""
        import gc, sys
        from toy.worker import Batch, Mode, Worker
        class Sized:
            forward_mode = Mode.EXTEND
            def __init__(self):
                self.number = [0] * 1000
            def batch_size(self):
                return 1000
        worker, batch, large, sized = Worker(), Batch(1), Batch(101), Sized()
        watched = [worker, batch, large, sized, sized.number, Mode.DECODE, Worker.cycle, Sized]
        def work():
            for _ in range(50):
                worker.cycle(batch)
                worker.cycle(batch=batch)
                try:
                    worker.cycle(large)
                except ValueError:
                    pass
                try:
                    worker.cycle(sized)
                except TypeError:
                    pass
        work(); gc.collect()
        before = [sys.getrefcount(one) for one in watched]
        work(); work(); gc.collect()
        after = [sys.getrefcount(one) for one in watched]
        print([new - old for new, old in zip(after, before)])
    """)
    assert done.stdout == "[0, 0, 0, 0, 0, 0, 0, 0]\n"
