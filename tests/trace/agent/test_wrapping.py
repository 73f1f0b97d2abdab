"""What a wrapper and a rewritten decision must leave as it was."""

from __future__ import annotations

import pytest

from tests.trace.agent.toy import ENTER, EXIT, Toy

SHAPES = '''
    import functools
    class Base:
        @classmethod
        def made(cls, batch):
            return cls.__name__
        @staticmethod
        def free(batch):
            return batch.batch_size
        def near(self, batch):
            return "base"
    class Child(Base):
        def near(self, batch):
            return "child of " + super().near(batch)
        @property
        def size(self):
            """The size."""
            return 5
        @size.setter
        def size(self, value):
            self.kept = value
        def __hidden(self, batch):
            return 1
        def reveal(self, batch):
            return self.__hidden(batch)
        def keywords(self, first, *, batch=None):
            """Keep me."""
            return first
        @functools.lru_cache
        def cached(self):
            return 1
        async def later(self, batch):
            return 1
        def stream(self, batch):
            yield 1
    def outer(bound):
        def inner(batch):
            return bound
        return inner
    def plain(batch, extra=3):
        return extra
'''


@pytest.fixture
def shapes(toy: Toy) -> Toy:
    """A module of many kinds of callables, all planned."""
    toy.write("toy/shapes.py", SHAPES)
    names = [
        "Base.made", "Base.free", "Base.near", "Child.near", "Child.size", "Child.__hidden",
        "Child.missing", "Child.keywords", "Child.cached", "Child.later", "Child.stream",
        "plain", "outer.<locals>.inner",
    ]  # fmt: skip
    for number, name in enumerate(names, 20):
        toy.target(number, "toy.shapes", name, "entry" if name == "Base.made" else "pass")
    return toy


def test_every_kind_of_callable_keeps_its_result(shapes: Toy) -> None:
    done = shapes.trace("""
        from toy.shapes import Base, Child, plain
        from toy.worker import Batch
        batch, child = Batch(2), Child()
        child.size = 4
        print(Child.made(batch), child.made(batch), Child.free(batch), child.near(batch),
              child.size, child.kept, child.reveal(batch), child.keywords(1, batch=batch),
              plain(batch), plain(batch, extra=4), list(child.stream(batch)))
    """)
    assert done.stdout == "Child Child 2 child of base 5 4 1 1 3 4 [1]\n"
    counts = shapes.counts()
    expected = {20: 2, 21: 1, 22: 1, 23: 1, 24: 1, 25: 1, 27: 1, 31: 2}
    assert {number: counts[number, ENTER] for number in expected} == expected
    assert {number: counts[number, EXIT] for number in expected} == expected
    sizes = {one.target: one.size for one in shapes.records() if one.kind == ENTER}
    assert [sizes[number] for number in (20, 21, 23, 27, 31)] == [2, 2, 2, -1, 2]
    refused = {one["id"]: one["reason"] for one in shapes.header()["targets"] if one["reason"]}
    assert refused == {
        26: "not defined here", 28: "a _lru_cache_wrapper is not wrapped",
        29: "asynchronous: its calls do not nest", 30: "a generator: its calls do not nest",
        32: "defined inside a function",
    }  # fmt: skip


def test_wrappers_look_like_what_they_wrap(shapes: Toy) -> None:
    done = shapes.trace("""
        import copy, inspect, pickle, weakref
        from toy import shapes
        from toy.shapes import Child, plain
        assert str(inspect.signature(plain)) == "(batch, extra=3)"
        assert str(inspect.signature(Child().near)) == "(batch)"
        assert "return extra" in inspect.getsource(plain)
        assert Child.keywords.__doc__ == "Keep me."
        assert Child.size.__doc__ == "The size."
        assert plain.__name__ == "plain" and plain.__module__ == "toy.shapes"
        assert Child.near.__qualname__ == "Child.near"
        assert plain.__defaults__ == (3,) or plain.__wrapped__.__defaults__ == (3,)
        assert inspect.isroutine(Child.near) and callable(plain)
        assert pickle.loads(pickle.dumps(plain)) is plain
        assert pickle.loads(pickle.dumps(Child.near)) is Child.near
        assert copy.deepcopy(plain) is plain
        assert weakref.ref(plain)() is plain
        assert Child().near.__func__ is Child.near
        plain.mark = 1
        assert plain.mark == 1
        assert shapes.__spec__.loader is shapes.__loader__
        assert type(shapes.__loader__).__name__ == "SourceFileLoader"
        import gc; gc.collect()
        print("good")
    """)
    assert done.stdout == "good\n"


def test_a_wrong_call_fails_as_without_the_wrapper(shapes: Toy) -> None:
    done = shapes.trace("""
        from toy.shapes import Child, plain
        for call in (lambda: plain(), lambda: plain(1, 2, 3), lambda: Child().keywords(1, 2),
                     lambda: Child.near()):
            try:
                call()
            except TypeError as error:
                print(error)
    """)
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "plain()", "plain()", "Child.keywords()", "Child.near()",
    ]  # fmt: skip


def test_a_target_that_is_defined_late_or_twice_is_wrapped_once(toy: Toy) -> None:
    toy.trace("""
        import importlib, sys
        import toy.worker
        first = toy.worker.Worker.cycle
        import toy.worker as again
        assert again.Worker.cycle is first
        from toy.worker import Batch, Worker
        Worker().cycle(Batch(1))
    """)
    assert toy.counts()[1, ENTER] == 1


def test_functions_imported_elsewhere_are_reached_when_armed_late(toy: Toy) -> None:
    toy.target(6, "toy.runner", "chosen", "phase")
    done = toy.trace("""
        import toy.worker, toy.runner
        assert toy.worker.chosen is toy.runner.chosen
        print(hasattr(toy.worker.chosen, "__wrapped__"))
        toy.worker.Worker().cycle(toy.worker.Batch(1))
    """)
    assert done.stdout == "True\n"
    assert toy.counts()[6, ENTER] == 1
