"""The table of ``forks.py``: every variant beside the one it is compared with."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from specmap.codemap.event import Run
from specmap.errors import SpecmapError
from specmap.trace.names import names_of
from specmap.trace.read import read_run
from specmap.trace.spool import ranks_in

RULES = Path(__file__).resolve().parents[2] / "rules" / "vocabulary.toml"
HEADINGS = (
    "variant", "bs", "tokens, compared with", "tokens/s", "ratio (range, rounds)", "accept",
    "verify",
)  # fmt: skip
Done = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Generated tokens against the reference: how many are the same, and the first that is not."""

    same: int
    compared: int
    first: str = ""


def lined_up(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells in columns."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def rate(done: Done) -> float:
    """Return the tokens a second of a wave, its prefill included."""
    tokens, time_ns = float(done["tokens"]), float(done["end_ns"] - done["start_ns"])
    return tokens * 1e9 / time_ns


def ratios(mine: Sequence[Done], others: Sequence[Done]) -> list[float]:
    """Return my rate over theirs, for every round that both measured."""
    theirs = {done["round"]: rate(done) for done in others}
    return [rate(done) / theirs[done["round"]] for done in mine if done["round"] in theirs]


def compare(mine: Sequence[Done], reference: Sequence[Done]) -> Tokens:
    """Compare all tokens of some waves with the longest wave of the reference.

    Requests of a wave always have the same prompts, so a shorter wave is the beginning of a
    longer one. The reference's own longest wave is not compared with itself.
    """
    if not reference:
        return Tokens(0, 0)
    longest = max(reference, key=lambda done: int(done["tokens"]))
    same = compared = 0
    first = ""
    for done in mine:
        if done is longest:
            continue
        for request, (ids, wanted) in enumerate(
            zip(done["output_ids"], longest["output_ids"], strict=True)
        ):
            length = min(len(ids), len(wanted))
            equal = next((i for i in range(length) if ids[i] != wanted[i]), length)
            same, compared = same + equal, compared + length
            if equal < length and not first:
                first = f"request {request}, token {equal} in {done['label']}"
    return Tokens(same, compared, first)


def said_of(tokens: Tokens, base: str) -> str:
    """Write the outcome of a comparison of tokens."""
    if not tokens.compared:
        return "not compared"
    if tokens.same == tokens.compared:
        return f"identical ({tokens.compared}), {base}"
    return f"DIFFER at {tokens.first} ({tokens.same} of {tokens.compared} before), {base}"


def accept_length(waves: Sequence[Done]) -> str:
    """Return the tokens of a verify step, from SGLang's own counts."""
    counted = [d for d in waves if all(d.get("spec_verify_ct") or [None])]
    steps = sum(sum(d["spec_verify_ct"]) for d in counted)
    return f"{sum(d['tokens'] for d in counted) / steps:.2f}" if steps else "-"


def run_in(folder: Path) -> Run | None:
    """Return what the tracer recorded, None where it recorded nothing that can be read."""
    if not (folder / "plan.json").exists() or not ranks_in(folder):
        return None
    with contextlib.suppress(SpecmapError):
        return read_run(folder, names_of(tomllib.loads(RULES.read_text("utf-8"))))
    return None


def verify_of(folder: Path) -> str:
    """Say what the trace of a variant recorded of verify: counts by state, and the reasons."""
    run = run_in(folder)
    if run is None:
        return "no log"
    found = [phase for rank in run.ranks for phase in rank.phases if phase.phase == "verify"]
    counts = ", ".join(
        f"{count} {state.value}" for phase in found for state, count in phase.counts.items()
    )
    reasons = sorted({reason.text for phase in found for reason in phase.reasons})
    return " | ".join([counts or "no verify", *reasons])


def costs(name: str, waves: Sequence[Done], runs: Path) -> Iterator[str]:
    """Yield what the tracer cost an engine, by its own windows, and what SGLang's profiler did."""
    for kind in ("plain", "spans", "each", "launches"):
        run = run_in(runs / f"{name}.{kind}")
        for rank in run.ranks if run is not None else ():
            if (found := rank.overhead) is not None:
                yield (
                    f"{name}, {kind}: {found.cost:+.2%} ± {found.cost_error:.2%}, "
                    f"null {found.null:+.2%} ± {found.null_error:.2%}, {found.windows} windows, "
                    f"cycle {(rank.decode.median_ns or 0) / 1e6:.2f} ms, {rank.ring} ring"
                )
    mine = [d for d in waves if d["variant"] == name and d["kind"] in ("bare", "profiled")]
    cycles = [
        f"{d['kind']} {(d['end_ns'] - d['start_ns']) / max(d['spec_verify_ct']) / 1e6:.2f} ms"
        for d in mine
    ]
    if cycles:
        yield f"{name}, a cycle under SGLang's profiler and without: {', '.join(cycles)}"


def spread(values: Sequence[float]) -> str:
    """Write a median with its range and number."""
    if not values:
        return "-"
    return f"{median(values):.3f} ({min(values):.3f} to {max(values):.3f}, {len(values)})"


def rows(variants: Sequence[Done], waves: Sequence[Done], runs: Path) -> Iterator[tuple[str, ...]]:
    """Yield a line for each variant and batch size."""
    for variant in variants:
        name, base = variant["name"], variant.get("base", variant["name"])
        verify = verify_of(runs / f"{name}.trace")
        mine = [done for done in waves if done["variant"] == name]
        sizes = sorted({done["requests"] for done in mine if done["kind"] != "warm-up"})
        for size in sizes:
            at_size = [d for d in mine if d["requests"] == size and d["kind"] != "warm-up"]
            theirs = [
                d for d in waves
                if (d["variant"], d["requests"]) == (base, size) and d["kind"] != "warm-up"
            ]  # fmt: skip
            measured = [d for d in at_size if d["kind"] == "measured"]
            beside = [d for d in theirs if d["kind"] == "measured"]
            rates = [rate(d) for d in measured]
            yield (
                name, str(size), said_of(compare(at_size, theirs), base),
                f"{median(rates):.0f}" if rates else "-",
                spread(ratios(measured, beside)), accept_length(at_size), verify,
            )  # fmt: skip
            verify = '"'
        if not sizes:
            yield (name, "-", "-", "-", "-", "-", verify)


def table(
    variants: Sequence[Done], waves: Sequence[Done], fates: Mapping[str, str], runs: Path
) -> str:
    """Return the whole table.

    ``waves`` are the answers of ``forks_engine.py`` with ``variant``, ``kind`` (``warm-up``,
    ``checked``, ``measured``, ``plain`` and ``spans`` in the tracer's windows, ``bare`` and
    ``profiled``), ``round`` and ``label``; ``fates`` say which engines were lost.
    """
    cost = [line for variant in variants for line in costs(variant["name"], waves, runs)]
    lost = [f"{name} was lost: {fate}" for name, fate in sorted(fates.items())]
    return "\n".join([lined_up([HEADINGS, *rows(variants, waves, runs)]), *cost, *lost])
