"""Detectors, one topic a file: pure functions from map and parameters to matches."""
