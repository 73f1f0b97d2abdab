from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specmap.codemap.graph import (
    CallEdge,
    CodeMap,
    Decision,
    EdgeStatus,
    Function,
    Guard,
    Problem,
)
from specmap.codemap.source import Span, symbol_id
from specmap.scan.excerpts import annotate
from specmap.scan.index import Tree
from tests.scan.trees import plant
from tests.small_map import small_map

FILE = "sglang/srt/speculative/eagle_worker.py"

# The shapes of SGLang 0.5.9: eagle_worker.py 315-331, 716, tp_worker.py 445.
WORKER = '''\
class EAGLEWorker:
    def step(self, batch):
        with self.draft_tp_context(
            self.draft_model_runner.tp_group
        ), speculative_moe_backend_context():
            # NOTE: We should use `check_forward_draft_extend_after_decode`
            # when DP attention is enabled, but it is slow. Skip it for now.
            if (
                self.server_args.enable_dp_attention
                or batch.spec_info.verified_id.shape[0] > 0
            ):
                # decode is not finished
                self.forward_draft_extend_after_decode(batch)
            else:  # all requests are done
                batch.clear()
                batch.filter()

        # Not about the call below.

        # Forward
        result = self.target_worker.forward_batch_generation(
            batch, is_verify=True,  # keeps logits
            # hidden states too
            hidden="# no comment",
        )  # returns a tuple
        text = """
  less indented than the method
"""
        return self.first(text) if self.ready and text else self.second(text)
'''


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(WORKER.splitlines(), 1) if text in line)


def call(text: str, *guards: Guard, last: str = "") -> CallEdge:
    """Return the call whose text stands on a line of the worker."""
    span = Span(FILE, line_of(text), line_of(last or text))
    return CallEdge(
        symbol_id(FILE, "EAGLEWorker.step"), span, text, (), EdgeStatus.EXTERNAL, guards
    )


def guard(text: str, first: int, last: int, branch: bool = True) -> Guard:
    return Guard(text, Span(FILE, first, last), branch, symbol_id(FILE, "EAGLEWorker.step"))


def annotated(tmp_path: Path, *edges: CallEdge, source: str = WORKER, lines: int = 0) -> CodeMap:
    """Annotate a map where a decision makes ``step`` a function of the cycle."""
    tree = Tree(plant(tmp_path, {FILE: source}), "sglang")
    holder = symbol_id(FILE, "EAGLEWorker.step")
    span = Span(FILE, 2, lines or len(source.splitlines()))
    made = replace(
        small_map(),
        functions=(Function(holder, "EAGLEWorker.step", span),),
        decisions=(Decision("d", "route", holder, span, "", ()),),
        edges=edges,
    )
    return annotate(made, tree)


def comments(tmp_path: Path, *edges: CallEdge) -> list[str]:
    return [edge.comment for edge in annotated(tmp_path, *edges).edges]


def test_the_first_call_of_a_branch_keeps_the_comment_above_the_if(tmp_path: Path) -> None:
    assert comments(tmp_path, call("self.forward_draft_extend_after_decode")) == [
        "NOTE: We should use `check_forward_draft_extend_after_decode` when DP attention is "
        "enabled, but it is slow. Skip it for now. decode is not finished"
    ]


def test_the_comment_behind_else_belongs_to_its_first_statement(tmp_path: Path) -> None:
    found = comments(tmp_path, call("batch.clear"), call("batch.filter"))
    assert found == ["all requests are done", ""]


def test_comments_above_inside_and_behind_a_statement(tmp_path: Path) -> None:
    edge = call("self.target_worker.forward_batch_generation", last="returns a tuple")
    assert comments(tmp_path, edge) == ["Forward keeps logits hidden states too returns a tuple"]


def test_a_call_without_a_comment_has_none(tmp_path: Path) -> None:
    assert comments(tmp_path, call("self.draft_tp_context"), call("self.first")) == ["", ""]


def test_a_long_comment_is_cut_at_a_word(tmp_path: Path) -> None:
    source = "class W:\n    def step(self):\n        # " + "words " * 80 + "\n        self.go()\n"
    edge = replace(call("self.first"), span=Span(FILE, 4, 4))
    (found,) = annotated(tmp_path, edge, source=source).edges
    assert found.comment == ("words " * 33).strip() + " \N{HORIZONTAL ELLIPSIS}"
    assert len(found.comment) <= 200


def test_true_guards_leave_no_problem(tmp_path: Path) -> None:
    first, last = line_of("if ("), line_of("shape[0]")
    last_line = line_of("self.first")
    edges = (
        call(
            "self.forward_draft_extend_after_decode",
            guard(
                "self.server_args.enable_dp_attention or batch.spec_info.verified_id.shape[0] > 0",
                first, last,
            ),
        ),
        call("self.first", guard("self.ready and text", last_line, last_line)),
        call("self.second", guard("self.ready", last_line, last_line, branch=False)),
    )  # fmt: skip
    assert annotated(tmp_path, *edges).problems == ()


def test_a_guard_that_is_no_test_is_an_internal_fault(tmp_path: Path) -> None:
    line = line_of("self.first")
    wrong = guard("self.waiting", line, line)
    result = annotated(tmp_path, call("self.first", wrong))
    text = "guard 'self.waiting' is no test in the source; please report this"
    assert result.problems == (Problem(FILE, line, text, partial=False),)
    assert not result.partial


def test_a_function_that_cannot_be_read_alone_is_left_out(tmp_path: Path) -> None:
    cut = line_of("self.target_worker") + 1
    result = annotated(tmp_path, call("self.forward_draft_extend_after_decode"), lines=cut)
    (problem,) = result.problems
    assert (problem.file, problem.line, problem.partial) == (FILE, 2, False)
    assert problem.message.startswith("comments and guards of EAGLEWorker.step not read: ")
    assert result.edges[0].comment == ""


def test_functions_off_the_cycle_are_not_read(tmp_path: Path) -> None:
    edge = call("self.forward_draft_extend_after_decode")
    other = replace(edge, caller=symbol_id(FILE, "EAGLEWorker.helper"))
    assert comments(tmp_path, other) == [""]
