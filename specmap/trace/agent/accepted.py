"""How many tokens a cycle accepted, as the server itself counts them."""

from __future__ import annotations

from .bind import AnyCall
from .records import ACCEPT
from .shape import NOWHERE, Shape, parameters
from .wrapplan import Accept


def accept_shape(accept: Accept, function: AnyCall) -> Shape:
    """Return how a call's integer arguments become an ACCEPT record."""
    names = parameters(function)
    known = (parts for parts in accept.tokens if all(part in names for part in parts))
    counted = (accept.requests, *next(known, ()))
    places = ((names.index(one) if one in names else NOWHERE, one) for one in counted)
    return Shape(target=accept.id, mark=ACCEPT, counts=tuple(places))
