"""A server's log as a launch: what SGLang had derived must not stand as if it had been given."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.tables import Inputs


def rederived(
    inputs: Inputs,
    limits: Collection[str],
    fresh: Callable[[Inputs], Evaluator],
) -> tuple[Inputs, tuple[str, ...]]:
    """Return what a logged launch gives, and the settings that are left to be derived again.

    A log shows the list of captured sizes beside the limit that it was made from. Of
    ``limits`` one is left out where the argument code makes it of the others again, lists first.
    """
    given = [name for name in limits if inputs.values.get(name) is not None]
    given.sort(key=lambda name: (not isinstance(inputs.values[name], tuple), name))
    left = []
    for name in given:
        values = {other: value for other, value in inputs.values.items() if other != name}
        fewer = replace(inputs, values=values)
        fact = fresh(fewer).facts().facts.get(name)
        if fact is not None and fact.known and fact.value == inputs.values[name]:
            inputs = fewer
            left.append(name)
    return inputs, tuple(left)
