"""The layers of proof that run code; torch is imported here and only when it is needed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from specmap.codemap.remedy import (
    Layer,
    LayerStatus,
    Obligation,
    ProofStep,
    Proposal,
    Rewrite,
)
from specmap.fix.crossing import BLOCKING
from specmap.fix.emulator import crossings, missing
from specmap.fix.helpers import HELPERS

LEVELS = ("static", "equality", "ledger")
"""How far a proof goes: without running code; on random inputs; on the emulated device."""

_TIMES = 200
_LAYERS = (Layer.EQUALITY, Layer.LEDGER, Layer.LIVE)


def prover(level: str) -> Callable[[Rewrite, Proposal], tuple[ProofStep, ...]]:
    """Return what runs the layers up to ``level`` that a rewrite needs."""

    def prove(rewrite: Rewrite, proposal: Proposal) -> tuple[ProofStep, ...]:
        asked = LEVELS[: LEVELS.index(level) + 1]
        return tuple(
            _step(layer, rewrite, str(layer) in asked)
            for layer in _LAYERS
            if layer in rewrite.layers
        )

    return prove


@cache
def _step(layer: Layer, rewrite: Rewrite, asked: bool) -> ProofStep:
    if layer is Layer.LIVE:
        return ProofStep(layer, LayerStatus.NOT_RUN, "no model is served here; serve with it")
    if not asked:
        return ProofStep(layer, LayerStatus.NOT_RUN, "--prove asks for less")
    obligation = rewrite.obligation
    if obligation is None:
        return ProofStep(layer, LayerStatus.NOT_RUN, "what it rests on cannot be run by itself")
    try:
        import torch
    except ImportError:
        return ProofStep(layer, LayerStatus.NOT_RUN, "torch is not installed")
    if layer is Layer.LEDGER:
        lacking = missing()
        if lacking:
            return ProofStep(layer, LayerStatus.NOT_RUN, lacking)
        old, new, wrong = ledger(obligation)
        detail = f"{old} waits for the device become {new} on {_TIMES} random inputs, emulated"
    else:
        wrong = difference(obligation)
        detail = f"old and new code agree on {_TIMES} random inputs, torch {torch.__version__}, CPU"
    if wrong:
        return ProofStep(layer, LayerStatus.BROKEN, wrong)
    return ProofStep(layer, LayerStatus.HELD, detail)


def difference(obligation: Obligation, times: int = _TIMES) -> str:
    """Run old and new code on random inputs; return the first difference, or nothing.

    Kinds of inputs: ``ints`` a list of 0 to 12 whole numbers; ``bits`` a list of 0 and 1;
    ``shape`` a pair of sizes from 1 to 5; ``probability`` a list of numbers from 0 to 1 that
    float32 holds exactly, half of them 1.0. The seed is fixed.
    """
    for inputs in _inputs(obligation, times):
        results = []
        for code in (obligation.old, obligation.new):
            space = _space(obligation, inputs, "cpu")
            try:
                exec(code, space)
                results.append([space[name] for name in obligation.results])
            except Exception as error:
                results.append([type(error).__name__])
        if not _same(results[0], results[1]):
            return f"old and new code differ for {inputs}: {results[0]} and {results[1]}"
    return ""


def ledger(obligation: Obligation, times: int = _TIMES) -> tuple[int, int, str]:
    """Count what waits in old and new code on the emulated device.

    Returns both counts, and why the new code is no better: it waits as often, or in a way in
    which the old code did not.
    """
    from specmap.fix.device import NAME, emulated

    counts = [0, 0]
    kinds: list[set[str]] = [set(), set()]
    for inputs in _inputs(obligation, times):
        for index, code in enumerate((obligation.old, obligation.new)):
            with emulated():
                space = _space(obligation, inputs, NAME)
            waits = [c for c in crossings(partial(exec, code, space)) if c.kind in BLOCKING]
            counts[index] += len(waits)
            kinds[index] |= {str(c.kind) for c in waits}
    added = sorted(kinds[1] - kinds[0])
    wrong = ""
    if added:
        wrong = f"the new code crosses in a new way on the emulated device: {', '.join(added)}"
    elif counts[1] >= counts[0]:
        wrong = f"the new code waits {counts[1]} times on the emulated device, the old {counts[0]}"
    return counts[0], counts[1], wrong


def _inputs(obligation: Obligation, times: int) -> Iterator[dict[str, object]]:
    made = random.Random(0)
    for _ in range(times):
        yield {name: _KINDS[kind](made) for name, kind in obligation.inputs}


def _space(obligation: Obligation, inputs: Mapping[str, object], device: str) -> dict[str, Any]:
    """The names that both pieces of code read: inputs, helper, and what the setup makes."""
    import torch

    space: dict[str, Any] = {"torch": torch, **inputs, "device": device, "pinned": device != "cpu"}
    exec(f"{HELPERS.get(obligation.helper, '')}\n{obligation.setup}", space)
    return space


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple):
        return (
            type(one) is type(other)
            and len(one) == len(other)
            and all(_same(a, b) for a, b in zip(one, other, strict=True))
        )
    if hasattr(one, "dtype"):
        return bool(
            hasattr(other, "dtype")
            and one.dtype == other.dtype
            and one.shape == other.shape
            and (one == other).all()
        )
    return bool(type(one) is type(other) and one == other)


def _ints(made: random.Random) -> list[int]:
    return [made.randint(-9, 9) for _ in range(made.randint(0, 12))]


def _bits(made: random.Random) -> list[int]:
    return [made.randint(0, 1) for _ in range(made.randint(0, 12))]


def _probabilities(made: random.Random) -> list[float]:
    return [made.choice((1.0, made.randint(0, 64) / 64)) for _ in range(made.randint(1, 6))]


_KINDS: Mapping[str, Callable[[random.Random], object]] = {
    "ints": _ints,
    "bits": _bits,
    "shape": lambda made: (made.randint(1, 5), made.randint(1, 5)),
    "probability": _probabilities,
}
