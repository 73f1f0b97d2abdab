"""Tests in helper functions that the forward mode of a walk settles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmap.codemap.condition import FALSE, TRUE
from specmap.scan.truths import is_test
from specmap.scan.values import (
    NONE,
    Arms,
    Const,
    EnumMember,
    External,
    Frame,
    Instance,
    Scope,
    only,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver

_TEST = only(External("builtins.bool()"))


class ModeTests:
    """Answers calls whose annotation alone would leave the answer open."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def settled(self, frame: Frame, scope: Scope, declared: Arms) -> Arms:
        """The constant that a test comes to under the walk's mode, if any."""
        if not scope.facts or not self._is_test(frame, scope, declared):
            return ()
        found = self._resolver.calls.at_returns(self._resolver.run(frame, scope.facts))
        return only(NONE) if found == only(NONE) else self.constant(found)

    def _is_test(self, frame: Frame, scope: Scope, declared: Arms) -> bool:
        """Whether a function is asked inside a decision, is a test of a runner or worker, or
        may give nothing back for some batches."""
        asker = scope.frame.function
        if asker is not None and asker.name in self._resolver.vocabulary.decisions:
            return True
        if not frame.module.file.startswith(self._resolver.vocabulary.scope):
            return False
        return declared == _TEST or (
            any(arm.value == NONE for arm in declared) and self._takes_batch(frame, scope)
        )

    def _takes_batch(self, frame: Frame, scope: Scope) -> bool:
        """Whether a call hands on the batch whose mode the walk knows, or the mode."""
        assert frame.call is not None
        passed = [*frame.call.args, *(keyword.value for keyword in frame.call.keywords)]
        values = [arm.value for part in passed for arm in self._resolver.evaluate(part, scope)]
        modes = self._resolver.vocabulary.mode_enum
        return any(
            (isinstance(v, Instance) and v.cls.id in scope.facts)
            or (isinstance(v, EnumMember) and v.cls.name in modes)
            for v in values
        )

    def constant(self, found: Arms) -> Arms:
        """The answer of a test that is the same in every case; ``()`` where it is not."""
        if not found or not all(is_test(arm.value) for arm in found):
            return ()
        truth = self._resolver.truths.arms_truth(found)
        return only(Const(truth == TRUE)) if truth in (TRUE, FALSE) else ()
