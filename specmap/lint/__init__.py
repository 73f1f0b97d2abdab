"""Lint: rules as data, detectors that select from the map, findings."""
