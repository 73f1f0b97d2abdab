"""Calls that may run a pass and that a walk cannot follow."""

from __future__ import annotations

import ast
from collections.abc import Collection

from specmap.scan.module import FunctionInfo
from specmap.scan.resolver import Resolver
from specmap.scan.values import External, FunctionRef, Opaque
from specmap.scan.walk import Walk
from specmap.scan.walked import Site


def unfollowed(resolver: Resolver, walks: Collection[Walk]) -> str:
    """Say which call that nobody can follow may run a pass; "" is none.

    It asks something unknown for what the scheduler asks of a worker, or it is given what
    runs passes.
    """
    passing = {hop.function for walk in walks for hit in walk.hits for hop in hit.chain[1:]}
    run = {activation.function for walk in walks for activation in walk.activations}
    for site in (site for walk in walks for site in walk.notes.sites.values()):
        if site.function not in run or any(site.targets.values()) or not site.scopes:
            continue
        module = site.function.module
        call, place = module.text(site.node.func), module.span(site.node)
        if _starts(resolver, site):
            return f"nothing is known about what {call} ({place.file}:{place.line}) runs"
        given = _given(resolver, site, passing)
        if given is not None:
            return (
                f"{given.qualname} is handed to {call} "
                f"({place.file}:{place.line}), which may run it"
            )
    return ""


def _starts(resolver: Resolver, site: Site) -> bool:
    function = site.node.func
    if not isinstance(function, ast.Attribute) or function.attr not in resolver.vocabulary.entry:
        return False
    arms = resolver.evaluate(function.value, site.scopes[-1])
    return any(isinstance(arm.value, External | Opaque) for arm in arms)


def _given(resolver: Resolver, site: Site, passing: set[FunctionInfo]) -> FunctionInfo | None:
    names = {function.name for function in passing}
    for given in (*site.node.args, *(k.value for k in site.node.keywords)):
        if not isinstance(given, ast.Attribute) or given.attr not in names:
            continue
        for arm in resolver.evaluate(given, site.scopes[-1]):
            if isinstance(arm.value, FunctionRef) and arm.value.function in passing:
                return arm.value.function
    return None
