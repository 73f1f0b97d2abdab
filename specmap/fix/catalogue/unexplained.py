"""A verify that never replays, for a reason that no rewrite knows.

**Before**

    verify of EAGLEWorkerV2 never replays its graph

**After**

    the same: this entry rewrites nothing, it says that something is wrong

A tree in which nothing can be rewritten is not a tree in which all is well. Where the source
shows that verify of a worker always runs eager, and no other entry speaks of that worker, this
one does: it names the decisions on its way, and each test that alone keeps verify from its graph.
Preconditions: none; it is always refused. Proof: none, `specmap why` shows the chain.
"""

from __future__ import annotations

from collections.abc import Iterator

from specmap.codemap.remedy import Proposal, Rewrite, Safety
from specmap.fix.catalogue import (
    bypass,
    constant_decision,
    disabled,
    false_term,
    mode_excluded,
    uncaptured,
)
from specmap.fix.facts import facts_of
from specmap.fix.lost import causes, lost
from specmap.fix.tree import Tree

_OTHERS = (
    false_term.find, constant_decision.find, mode_excluded.find, uncaptured.find, bypass.find,
    disabled.find,
)  # fmt: skip


def find(tree: Tree) -> Iterator[Proposal]:
    """Name each worker whose verify is lost and that no other entry speaks of."""
    facts = facts_of(tree)
    wanting = lost(tree, facts)
    spoken = {w for find in _OTHERS for p in find(tree) for w in p.workers} if wanting else set()
    for worker, phase in wanting:
        if worker.id not in spoken:
            decided = [d.rpartition("::")[2] for d in phase.decisions]
            places = f"it is decided in {', '.join(decided)}" if decided else "no decision is asked"
            known = causes(phase.graph_when, facts)
            yield Proposal(
                REWRITE.id,
                phase.span,
                phase.holder,
                f"verify of {worker.name} never replays its graph",
                (),
                (places, *known),
                "no rewrite takes it away; specmap why shows the way"
                if known
                else "no rewrite knows the cause; specmap why shows the way",
                (worker.id,),
            )


REWRITE = Rewrite(
    id="SPF199",
    name="verify-unexplained",
    summary="A verify that never replays, for a reason that no rewrite knows",
    safety=Safety.DISPLAY,
    find=find,
    rules=("SPM101", "SPM105"),
    page=__doc__ or "",
)
