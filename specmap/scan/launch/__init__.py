"""A launch command, and what a release's own argument code makes of it."""
