"""A server's log as the launch of a sweep: what SGLang had derived must not stand fixed."""

from __future__ import annotations

from collections.abc import Collection

from specmap.launched import Prepared
from specmap.scan.launch.pycall import LOGGED
from specmap.scan.launch.tables import Inputs
from specmap.sweep.grid import Setting, changed


def rederived(asked: Prepared, varied: Collection[str]) -> tuple[Inputs, tuple[str, ...]]:
    """Return what a launch gives, and a note on what is left for each cell to derive.

    A log shows the list of captured sizes beside the limit that it was made from. Of these
    settings one is left out where the argument code makes it of the others again, lists first;
    ``varied`` ones stay.
    """
    inputs, limits = asked.sure.inputs, set(asked.words.limits)
    if LOGGED not in asked.question.notes:
        return inputs, ()
    given = [n for n in limits - set(varied) if inputs.values.get(n) is not None]
    given.sort(key=lambda name: (not isinstance(inputs.values[name], tuple), name))
    left = []
    for name in given:
        fewer = changed(inputs, [Setting({}, removed=(name,))])
        fact = asked.fresh(fewer).facts().facts.get(name)
        if fact is not None and fact.known and fact.value == inputs.values[name]:
            inputs = fewer
            left.append(name)
    return inputs, (f"{', '.join(left)}: left for each cell to derive",) if left else ()
