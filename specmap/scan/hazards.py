"""Collects the facts that lint rules select from beside the passes."""

from __future__ import annotations

from collections.abc import Iterator

from specmap.codemap.hazards import CapturedMode, Hazards
from specmap.scan.bufferuses import BufferUses
from specmap.scan.capturetables import CaptureTables
from specmap.scan.decisions import Decisions
from specmap.scan.fallbacks import Fallbacks
from specmap.scan.metadatafields import metadata_fields
from specmap.scan.resolver import Resolver
from specmap.scan.runnerreads import runner_reads
from specmap.scan.stagetests import stage_tests
from specmap.scan.values import EnumMember


def find_hazards(resolver: Resolver, decisions: Decisions) -> Hazards:
    """Return the facts of a tree."""
    return Hazards(
        mode_tests=stage_tests(resolver),
        capture_entries=CaptureTables(resolver).find(),
        fallbacks=Fallbacks(resolver).find(),
        buffer_uses=BufferUses(resolver).find(),
        runner_reads=runner_reads(resolver, decisions),
        metadata_fields=metadata_fields(resolver),
        captured_modes=tuple(_captured_modes(resolver)),
    )


def _captured_modes(resolver: Resolver) -> Iterator[CapturedMode]:
    """The modes that runners store as the one they capture."""
    words = resolver.vocabulary
    for name in sorted(words.capture_mode):
        for module in resolver.tree.modules_storing(name, words.scope):
            for cls in module.classes.values():
                for method in cls.stores.get(name, ()):
                    this = resolver.any_instance(cls)
                    run = resolver.attributes.execution(resolver.attributes.frame(this, method))
                    for store in run.stores:
                        if store.target.attr == name:
                            for arm in resolver.evaluate(store.value, store.scope):
                                if isinstance(arm.value, EnumMember):
                                    span = module.span(store.target)
                                    yield CapturedMode(span, method.id, cls.id, arm.value.name)
