"""Folders that SGLang is taken from: a release as it was published, or rewritten by ``fix``."""

from __future__ import annotations

import zipfile
from pathlib import Path

from specmap.fixed import Request, fix_tree
from specmap.pipeline import default_cache_dir
from tests.live.broken import HALF, WRAPPED, broken
from tests.releases.trees import checkout_of

RELEASED, REWRITTEN = "released", "rewritten"
REPAIRED = {WRAPPED: f"{WRAPPED}-repaired", HALF: f"{HALF}-repaired"}


def tree(release: str, kind: str, folder: Path) -> Path:
    """Put a release into an empty folder and return it.

    ``rewritten`` has every rewrite that was not refused, those included for which only running
    workers can speak; so the static layers are all that is proven before. What is
    :data:`REPAIRED` is a broken fork after ``specmap fix --write``.
    """
    assert checkout_of(release).release == release
    # the wheel, not the checkout: workers need files that are no source
    with zipfile.ZipFile(default_cache_dir() / "wheels" / f"sglang-{release}.whl") as wheel:
        wheel.extractall(folder)
    if kind == REWRITTEN:
        fixed = fix_tree(Request(f"sglang=={release}", unsafe=True, level="static"))
        for file, text in fixed.report.after.items():
            (folder / file).write_text(text, "utf-8")
    for name, repaired in REPAIRED.items():
        if kind in (name, repaired):
            broken(folder, name)
        if kind == repaired:
            fix_tree(Request(str(folder), ("SPF1",), write=True, use_cache=False))
    return folder
