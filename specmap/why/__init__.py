"""One place or phase of a map -> its chain, its guards, its tests and their values."""
