"""Host code that takes verify for prefill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specmap.codemap.finding import Match
from specmap.codemap.graph import CodeMap
from specmap.codemap.hazards import ModeTest
from specmap.codemap.rule import takes
from specmap.codemap.verdict import PhaseName
from specmap.lint.detectors.selecting import clip, place, strings


@takes(predicates=list, prefill=list, decode=list, verify=list)
def verify_as_prefill(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A chain that tells prefill from decode sends verify to prefill's arm."""
    chains: dict[tuple[str, str, int], list[ModeTest]] = {}
    for test in codemap.hazards.mode_tests:
        chains.setdefault((test.span.file, test.holder, test.chain), []).append(test)
    prefill, decode, verify = (
        frozenset(strings(parameters, name)) for name in ("prefill", "decode", "verify")
    )
    for _, tests in sorted(chains.items()):
        met: set[str] = set()
        arms: list[tuple[ModeTest, set[str]]] = []
        for test in sorted(tests, key=lambda t: t.order):
            arms.append((test, set(test.true_for) - met))
            met |= set(test.true_for)
        decodes = [test for test, modes in arms if modes & decode and not modes & verify]
        for test, modes in arms:
            asks = test.predicate in strings(parameters, "predicates")
            if decodes and asks and modes & prefill and modes & verify:
                yield Match(
                    span=test.span,
                    holder=test.holder,
                    anchor=test.text,
                    message=_message(test, modes & verify, decodes[0]),
                    phases=(PhaseName.VERIFY,),
                )


def _message(test: ModeTest, verify: set[str], decode: ModeTest) -> str:
    return (
        f"{clip(test.text)} also holds for {', '.join(sorted(verify))}, so a verify step is taken "
        f"for prefill and {place(decode.span)} never sees it"
    )
