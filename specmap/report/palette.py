"""Colours that all drawings share."""

from __future__ import annotations

from specmap.codemap.verdict import PhaseName

INK = "#37474f"
FAINT = "#90a4ae"
PAPER = "#fafafa"

# Verdict word -> (fill, border).
VERDICTS = {
    "GRAPH": ("#c8e6c9", "#2e7d32"),
    "PIECEWISE": ("#b3e5fc", "#0277bd"),
    "EAGER": ("#ffccbc", "#d84315"),
    "NOT_RUN": ("#eceff1", "#90a4ae"),
    "UNKNOWN": ("#e1bee7", "#7b1fa2"),
    "depends": ("#fff3c4", "#f9a825"),
}

PHASES = {
    PhaseName.TARGET_PREFILL: "#795548",
    PhaseName.DRAFT_PREFILL: "#ab47bc",
    PhaseName.DRAFT: "#1e88e5",
    PhaseName.VERIFY: "#d81b60",
    PhaseName.DRAFT_EXTEND: "#00897b",
}
