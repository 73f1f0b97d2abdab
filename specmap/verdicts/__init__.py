"""Verdicts: what one launch makes of the conditions of a code map."""
