"""How many tokens a cycle accepted, as the server itself counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .bind import AnyCall, around
from .faults import line_of, say
from .records import ACCEPT, NONE
from .ring import Ring
from .shape import parameters
from .wrapplan import Accept


def accepting(accept: Accept, ring: Ring) -> Callable[[AnyCall, bool], AnyCall]:
    """Return a wrapper that records ACCEPT from a call's integer arguments."""

    def wrap(function: AnyCall, bound: bool) -> AnyCall:
        names = parameters(function)
        known = (parts for parts in accept.tokens if all(part in names for part in parts))
        summed = next(known, ())

        def value(name: str, args: Any, kwargs: Any) -> int:
            found = kwargs.get(name)
            if found is None and name in names and names.index(name) < len(args):
                found = args[names.index(name)]
            return found if type(found) is int else NONE

        def record(args: Any, kwargs: Any) -> None:
            try:
                if ring.recording():
                    parts = [value(name, args, kwargs) for name in summed]
                    tokens = NONE if NONE in parts or not parts else sum(parts)
                    requests = value(accept.requests, args, kwargs)
                    ring.put(accept.id, ACCEPT, NONE, requests, tokens, 0)
            except Exception as error:
                say(f"accepted tokens were not recorded: {line_of(error)}")

        return around(function, record, None)

    return wrap
