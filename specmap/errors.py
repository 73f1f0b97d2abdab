"""The errors that specmap raises on purpose. Each message says what, where, what to do."""

from __future__ import annotations


class SpecmapError(Exception):
    """The tool or its input failed; the command line prints one line and exits with 2."""


class TargetError(SpecmapError):
    """The target is not a SGLang tree, or it could not be found or fetched."""


class CacheError(SpecmapError):
    """The cache folder cannot be used."""


class OutputError(SpecmapError):
    """A result could not be written."""


class RulesError(SpecmapError):
    """A file under ``rules/`` is missing or does not say what it must."""


class TraceError(SpecmapError):
    """A recorded run cannot be read, or what it needs is not installed."""
