"""Code paths of SGLang's speculative-decoding workers, read from the source.

The public names are loaded on first use, so that importing this package costs nothing and
brings in neither libcst nor torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specmap.api import (
        explain_place,
        judge_launch,
        lint_tree,
        load_run,
        scan_tree,
        sweep_launch,
        to_json,
    )
    from specmap.codemap.event import Run
    from specmap.codemap.explanation import Explanation
    from specmap.codemap.finding import Finding, LintReport
    from specmap.codemap.graph import CodeMap
    from specmap.codemap.outcome import Outcome
    from specmap.codemap.sweep import Sweep
    from specmap.codemap.verdict import PhaseName, Verdict
    from specmap.errors import SpecmapError
    from specmap.launched import Launch

__version__ = "0.1.0"

__all__ = [
    "CodeMap",
    "Explanation",
    "Finding",
    "Launch",
    "LintReport",
    "Outcome",
    "PhaseName",
    "Run",
    "SpecmapError",
    "Sweep",
    "Verdict",
    "__version__",
    "explain_place",
    "judge_launch",
    "lint_tree",
    "load_run",
    "scan_tree",
    "sweep_launch",
    "to_json",
]

_HOMES = {
    "CodeMap": "specmap.codemap.graph",
    "Explanation": "specmap.codemap.explanation",
    "Finding": "specmap.codemap.finding",
    "Launch": "specmap.launched",
    "LintReport": "specmap.codemap.finding",
    "Outcome": "specmap.codemap.outcome",
    "PhaseName": "specmap.codemap.verdict",
    "Run": "specmap.codemap.event",
    "SpecmapError": "specmap.errors",
    "Sweep": "specmap.codemap.sweep",
    "Verdict": "specmap.codemap.verdict",
    "explain_place": "specmap.api",
    "judge_launch": "specmap.api",
    "lint_tree": "specmap.api",
    "load_run": "specmap.api",
    "scan_tree": "specmap.api",
    "sweep_launch": "specmap.api",
    "to_json": "specmap.api",
}


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it; notebooks then show the records.

    Raises:
        AttributeError: ``name`` is not public here.
    """
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module("specmap.notebook").register()
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
