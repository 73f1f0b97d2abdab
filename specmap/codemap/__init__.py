"""The shared model: frozen records, filled by the scanner and by the tracer."""
