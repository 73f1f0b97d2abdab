"""What runs inside each rank of a server: standard library only, Python 3.10 to 3.13.

Loaded by path under the name ``specmap_agent``, so that the server needs no specmap. Nothing
but this module and ``door`` is loaded until the traced package is imported.
"""

from .door import start

__all__ = ["start"]
