"""Interfaces: what callers pass against what the workers that they can reach accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specmap.codemap.finding import Match, Step
from specmap.codemap.graph import CodeMap
from specmap.lint.detectors.selecting import names


def unaccepted_argument(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A call passes an argument that a worker behind it does not take."""
    workers = {line: w.id for w in codemap.workers if w.reachable for line in (w.id, *w.mro)}
    for worker in codemap.workers:
        workers.update({owned: worker.id for owned in worker.owns if owned not in workers})
    spans = {function.id: function.span for function in codemap.functions}
    for edge in codemap.edges:
        refused: dict[str, list[str]] = {}
        for callee, argument in edge.rejects:
            if callee.rpartition(".")[0] in workers:
                refused.setdefault(argument, []).append(callee)
        for argument, callees in sorted(refused.items()):
            classes = [callee.rpartition(".")[0] for callee in callees]
            yield Match(
                span=edge.span,
                holder=edge.caller,
                anchor=f"{edge.text} {argument}",
                message=f"{edge.text} is given {argument}, which {names(classes)} does not accept",
                phases=edge.phases,
                workers=tuple(sorted({workers[cls] for cls in classes})),
                related=tuple(
                    Step(spans[callee], f"does not accept {argument}")
                    for callee in sorted(callees)
                    if callee in spans
                ),
            )
