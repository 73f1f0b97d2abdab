from __future__ import annotations

from specmap.codemap.remedy import Attempt, FixReport, Outcome, Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.report.fix_text import render_fix


def attempt(rewrite: str, line: int, outcome: Outcome, reason: str = "") -> Attempt:
    made = Rewrite(rewrite, f"name-{rewrite}", "A summary", Safety.REVIEW, lambda tree: iter(()))
    proposal = Proposal(rewrite, Span("f.py", line, line), "f.py::g", f"what of {line}", (), ("a",))
    return Attempt(made, proposal, outcome, reason)


def test_what_is_refused_for_one_reason_is_one_block_after_the_rest() -> None:
    attempts = (
        attempt("SPF204", 1, Outcome.REFUSED, "no count"),
        attempt("SPF204", 2, Outcome.APPLIED),
        attempt("SPF204", 3, Outcome.REFUSED, "no count"),
        attempt("SPF101", 4, Outcome.REFUSED, "not fixed"),
    )
    text = render_fix(FixReport("t", "0.5.9", attempts, {}, {}))
    assert text.splitlines()[0] == "t: 1 applied, 3 refused"
    blocks = [block.splitlines() for block in text.strip().split("\n\n")[1:]]
    assert [block[0] for block in blocks] == [
        "applied SPF204 name-SPF204 (review) f.py:2",
        "refused SPF101 name-SPF101 (review) f.py:4",
        "refused SPF204 name-SPF204 (review) at 2 places",
    ]
    assert blocks[2][1:] == [
        "    why not: no count",
        "    f.py:1: what of 1",
        "    f.py:3: what of 3",
    ]
