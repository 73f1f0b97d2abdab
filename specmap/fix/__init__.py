"""Rewrites of SGLang's source that bring a phase back under its graph or take a wait away."""
