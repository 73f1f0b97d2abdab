from __future__ import annotations

from dataclasses import replace

from specmap.codemap.condition import Atom, AtomKind, Condition, Leaf, all_of, any_of, negate
from specmap.codemap.graph import CallEdge, CodeMap, SyncKind
from specmap.codemap.source import Span
from specmap.report import RenderOptions
from specmap.report.conditions import Names, Row, condition, lines, listing, terms_in, wrapped
from specmap.report.dot import render as render_dot
from specmap.report.text import render
from specmap.report.wording import Places

PLACES = Places("sglang", frozenset())
VERIFY = RenderOptions(("EAGLEWorker",), ("verify",))


def leaf(text: str) -> Leaf:
    return Leaf(Atom(text, AtomKind.LAUNCH, Span("sglang/a.py", 3, 3)))


SHARED = any_of(*map(leaf, ("a", "b", "c", "d")))
GRAPH: Condition = all_of(leaf("graph"), SHARED)
OTHER: Condition = all_of(leaf("other"), SHARED)


def test_a_part_that_comes_again_is_a_letter() -> None:
    names = Names([GRAPH, OTHER])
    assert [line.text for line in lines(OTHER, names)] == ["all of:", "other", "A, below"]
    assert [line.text for line in lines(GRAPH, names)] == ["all of:", "graph", "A, below"]


def test_the_opposite_of_a_part_is_not_its_letter() -> None:
    whole = any_of(leaf("eager"), negate(SHARED))
    names = Names([GRAPH, whole])
    list(lines(GRAPH, names))
    assert [line.text for line in lines(whole, names)] == ["any of:", "eager", "not A, below"]
    assert list(names.printed()) == [("A", SHARED)]


def test_a_short_part_and_one_that_comes_once_are_written_out() -> None:
    short = any_of(leaf("a"), leaf("b"))
    names = Names([all_of(leaf("x"), short), all_of(leaf("y"), short), GRAPH])
    assert "any of:" in [line.text for line in lines(all_of(leaf("x"), short), names)]
    assert [line.text for line in lines(GRAPH, names)][-4:] == ["a", "b", "c", "d"]


def test_a_condition_longer_than_anybody_reads_says_how_much_is_missing() -> None:
    long = any_of(*(leaf(f"test_{number}") for number in range(60)))
    text = condition(long, PLACES, 80, Names()).plain.splitlines()
    assert len(text) == 40
    assert text[-1] == "... 22 more lines: --format json"
    assert terms_in(long) == 60


def test_notes_stand_in_columns_and_below_text_that_is_too_long() -> None:
    rows = [
        Row(0, "- ", "short", ("launch", "a.py:1")),
        Row(1, "- ", "x" * 20 + " " + "y" * 20, ("batch", "b.py:22")),
    ]
    assert listing(rows, 48).plain.splitlines() == [
        "- short                          launch  a.py:1",
        f"  - {'x' * 20} {'y' * 20}",
        "                                 batch   b.py:22",
    ]


def test_text_breaks_after_dots_and_commas_and_loses_nothing() -> None:
    text = "self.graph_runner.can_run(forward_batch, " + "z" * 50 + ")"
    found = wrapped(text, 20)
    assert max(map(len, found)) <= 20
    assert "".join(found).replace(" ", "") == text.replace(" ", "")
    assert found[0] == "self.graph_runner."


def test_the_comment_of_a_call_stands_below_its_hop(sample: CodeMap) -> None:
    def commented(edge: CallEdge) -> CallEdge:
        return replace(edge, comment="Forward") if edge.span.line == 716 else edge

    page = render(replace(sample, edges=tuple(map(commented, sample.edges))), VERIFY)
    verify = page[page.index("-> EAGLEWorker.verify  ") :].splitlines()
    assert verify[0].endswith("eagle_worker.py:716")
    assert verify[1].strip() == "# Forward"


def test_many_operations_on_cpu_tensors_are_counted(sample: CodeMap) -> None:
    base = sample.syncs[0]
    cpu = [
        replace(base, span=Span(base.span.file, n, n), kind=SyncKind.NONE, label="cpu-tensor")
        for n in range(30)
    ]
    page = render(replace(sample, syncs=(base, *cpu)), RenderOptions(("EAGLEWorker",)))
    assert "on CPU tensors, no synchronisation: 30 other operations: --format json" in page
    assert page.count(base.operation) == 1


def test_a_tooltip_is_cut_to_what_dot_can_read(sample: CodeMap) -> None:
    worker = sample.workers[0]
    long = any_of(*(leaf(f"a_rather_long_test_{number}") for number in range(2000)))
    phases = tuple(replace(phase, graph_when=long) for phase in worker.phases)
    changed = replace(sample, workers=(replace(worker, phases=phases), *sample.workers[1:]))
    text = render_dot(changed, RenderOptions(("EAGLEWorker",)))
    assert "GRAPH under 2000 terms" in text
    assert max(map(len, text.splitlines())) < 8000
