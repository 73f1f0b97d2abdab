"""Whether the number of verify tokens is fixed when the server starts."""

from __future__ import annotations

from specmap.codemap.condition import AtomKind
from specmap.codemap.graph import StaticShape
from specmap.scan.resolver import Resolver
from specmap.scan.values import Const, External, Instance, Opaque


def static_shape(resolver: Resolver, worker: Instance) -> StaticShape:
    """Say what fixes the tokens per request of a worker's verify pass.

    A tree or chain of a width set by launch arguments gives every verify batch the same
    tokens per request, so it can be captured once per batch size.
    """
    for attribute in resolver.vocabulary.fixed_width:
        stores = resolver.attributes.stores(worker, attribute)
        if not stores:
            continue
        store = stores[0].store
        arms = resolver.members.named(worker, attribute)
        span = stores[0].function.module.span(store.target)
        values = [arm.value for arm in arms]
        launch = [v for v in values if isinstance(v, Opaque) and v.kind is AtomKind.LAUNCH]
        if launch and all(isinstance(v, Opaque | Const | External) for v in values):
            width = launch[0].text
            note = (
                f"every request verifies {width} tokens (with topk 1: steps + 1), a launch "
                "setting: verify has a static shape and can be captured"
            )
            swapped = len(stores) > 1
            if swapped:
                note += "; adaptive speculation switches between several such widths"
            return StaticShape(True, width, span, note)
    return StaticShape(
        False, "", None, "no launch setting was found that fixes the tokens per request"
    )
