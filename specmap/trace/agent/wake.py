"""Wakes an agent in a process that was started without one; run as a plain file (``--inject``)."""

from __future__ import annotations

import os
import sys

sys.path.append(f"{os.path.dirname(os.path.abspath(__file__))}/inject")
try:
    from specmap_inject import install  # type: ignore[import-not-found]

    install()
    sys.modules["specmap_agent.door"].serve()
finally:
    sys.path.pop()
