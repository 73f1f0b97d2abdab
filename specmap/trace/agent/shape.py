"""Where a wrapped call carries its batch: found once, from the signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .wrapplan import Plan, Target

NOWHERE = -1


@dataclass(frozen=True)
class Shape:
    """How to record a call.

    ``position`` and ``keyword``: the batch among the arguments (-1 and "" none); ``mode`` and
    ``sizes``: its attributes, not looked at again where a forward hands its own batch to another;
    ``keys``: attributes of self that hold a replayed graph's size, of forwards only. ``timed``:
    a phase, whose GPU time may be asked for.
    ``mark``: a record's kind; one such record stands for the call, not its start and end. It
    carries the object, or with ``counts``, places of integer arguments, the first as its size
    and the sum of the others as its value.
    """

    target: int
    position: int = NOWHERE
    keyword: str = ""
    bound: bool = False
    entry: bool = False
    mode: str = ""
    sizes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    timed: bool = False
    mark: int = 0
    counts: tuple[tuple[int, str], ...] = ()


def shape_of(function: Callable[..., Any], target: Target, plan: Plan, bound: bool) -> Shape:
    """Return how to record calls of a target; ``bound``: its first argument is an object.

    A phase leaves its batch alone: the forward in it, or else the cycle, tells mode and size,
    and to look at a batch is most of what a record costs.
    """
    position, keyword = NOWHERE, ""
    names = parameters(function)
    forwards = target.sink or "pass" in target.roles
    for name in plan.batch_parameters:
        if name in names and (forwards or "entry" in target.roles):
            position, keyword = names.index(name), name
            break
    return Shape(
        target=target.id,
        position=position,
        keyword=keyword,
        bound=bound,
        entry="entry" in target.roles,
        mode=plan.mode,
        sizes=plan.sizes,
        keys=plan.graph.size if bound and forwards else (),
        timed="phase" in target.roles,
    )


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters that a call may give by position, in order."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in signature.parameters.values() if one.kind in kinds]
