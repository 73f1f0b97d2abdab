"""The page of ``specmap report``: what it holds (data), and the file that holds it (html).

The front end in ``app`` is built into ``bundle``; ``app/src/data.ts`` describes the data.
"""
