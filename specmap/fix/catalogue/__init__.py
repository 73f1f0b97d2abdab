"""The catalogue: one rewrite a file."""

from __future__ import annotations

from specmap.codemap.remedy import Rewrite
from specmap.fix.catalogue import (
    async_copies,
    bypass,
    constant_decision,
    disabled,
    dropped_flag,
    false_term,
    host_flag,
    host_mirror,
    mode_excluded,
    packed,
    pinned,
    request_loop,
    static_count,
    truth_test,
    uncaptured,
    unexplained,
    verify_tail,
)

CATALOGUE: tuple[Rewrite, ...] = (
    false_term.REWRITE,
    constant_decision.REWRITE,
    mode_excluded.REWRITE,
    uncaptured.REWRITE,
    bypass.REWRITE,
    disabled.REWRITE,
    unexplained.REWRITE,
    packed.REWRITE,
    async_copies.REWRITE,
    pinned.REWRITE,
    static_count.REWRITE,
    host_mirror.REWRITE,
    truth_test.REWRITE,
    host_flag.REWRITE,
    request_loop.REWRITE,
    verify_tail.REWRITE,
    dropped_flag.REWRITE,
)
"""Every rewrite, by id."""
