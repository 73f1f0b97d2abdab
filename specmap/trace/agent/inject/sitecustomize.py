"""Python loads this at start-up where this folder stands first on ``PYTHONPATH``.

It hands over to the ``sitecustomize`` that it hides (Debian ships one), then starts the agent.
"""

import os
import sys


def _hand_over() -> None:
    """Run the next ``sitecustomize`` on the path, as if this one were not there."""
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    path = [one for one in sys.path if os.path.abspath(one or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    mine = sys.modules.get("sitecustomize")
    sys.modules["sitecustomize"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if mine is not None:
            sys.modules["sitecustomize"] = mine
        raise


def _start() -> None:
    try:
        from specmap_inject import install  # type: ignore[import-not-found]
    except ImportError:
        return
    install()


_start()
_hand_over()
