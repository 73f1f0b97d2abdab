"""Real SGLang releases: the tree of one, and the map that a scan of it gives."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from specmap.codemap.graph import CodeMap
from specmap.pipeline import default_cache_dir, scan_tree
from specmap.report import as_json
from specmap.scan.checkout import Checkout, resolve_target


@cache
def checkout_of(release: str) -> Checkout:
    """Return the unpacked tree of a release on the package index."""
    return resolve_target(f"sglang=={release}", cwd=Path.cwd(), cache_dir=default_cache_dir())


@cache
def map_of(release: str, platform: str = "cuda") -> CodeMap:
    """Return the map of a release as its JSON gives it back, scanned once by all test processes."""
    return as_json.load(as_json.dumps(scan_tree(f"sglang=={release}", platform=platform)))
