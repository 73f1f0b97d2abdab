"""What a ranking rests on: which runs may stand for the cells, and what it takes for granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from specmap.codemap.sweep import Sweep
from specmap.sweep.samples import Sample

OWN = "at the time of their own replays"
"""How a rule says that eager phases were taken as replayed."""


def elsewhere(sample: Sample, release: str | None, sm: int | None) -> str:
    """Say that a run is of another release or GPU, "" where that is not known."""
    ran, gpu = sample.run.release, sample.rank.gpu_sm
    if ran and release and ran != release:
        return f"it ran SGLang {ran} and the tree is {release}"
    if gpu is not None and sm is not None and gpu != sm:
        return f"it ran on {sample.rank.gpu or 'a GPU'} with --sm {gpu}, the launch says --sm {sm}"
    return ""


def assumes(
    sweep: Sweep, samples: Sequence[Sample], launch: Mapping[str, object], known: set[str]
) -> Iterator[str]:
    """Yield what is taken for granted; ``known`` are settings that the rules deal with."""
    if not sweep.ranked:
        return
    yield (
        "tokens a second are batch size x accept length / cycle time: every request decodes all "
        "the time, and prefill costs nothing"
    )
    yield (
        "accept lengths depend on the model, its draft, the text, steps, topk and tokens, and on "
        "nothing else here; they are those of the runs' text"
    )
    rules = {rule for cell in sweep.ranked if cell.prediction for rule in cell.prediction.rules}
    if any("as given" in rule and "steps" in rule for rule in rules):
        yield "an accept length given for its steps holds for every topk and width of the sweep"
    if any(OWN in rule for rule in rules):
        yield (
            "a replay's CPU time is that of launching it, so a cycle made of such times is the "
            "shortest that it can be"
        )
    if any(", its " in rule for rule in rules):
        yield "what a phase takes more or less is added to the cycle one to one"
    for sample in samples:
        gpu, release = sample.rank.gpu or "a GPU not recorded", sample.run.release or "not recorded"
        yield f"{sample.name}: SGLang {release} on {gpu}, and so is every cell"
        if sample.share < 1:
            yield (
                f"{sample.name}: its median cycle is one of bs {sample.size}, "
                f"the size of {sample.share:.0%} of its verify passes"
            )
        for name, value in sorted(launch.items()):
            ran = sample.rank.arguments.get(name, value)
            if name not in known and isinstance(value, bool | int | float | str) and ran != value:
                yield f"{sample.name} ran with {name} {ran}, the launch says {value}"
