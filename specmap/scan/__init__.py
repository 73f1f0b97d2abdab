"""The static half: reads a SGLang tree and never imports it."""
